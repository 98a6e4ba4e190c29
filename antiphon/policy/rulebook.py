"""The rules of one version: read and checked once, then asked by scope.

Whatever is wrong with a file is said when it is read; nothing that a rulebook is asked later fails
because of it.
"""

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from antiphon.errors import RulesError
from antiphon.policy.checks import check_file, expressions_in
from antiphon.policy.compiled import CompiledRule, ScopedRules, compile_rule
from antiphon.policy.reading import LONGEST_FILE, RulesFile, read_form
from antiphon.policy.rules import PhrasesMatcher, Rule
from antiphon.verdicts import REFUSAL, PolicyScope

MOST_PHRASES = 10_000
"""Of one file. More would make the first texts slow, as long as their automaton is built."""

_SCOPES = 64
"""Different selections of rules that are kept compiled: most scopes select the same ones."""


class Rulebook:
    """All rules of one version."""

    def __init__(
        self, *, version: str, refusals: Mapping[str, str], compiled: Sequence[CompiledRule]
    ) -> None:
        self.version = version
        self.rules: tuple[Rule, ...] = tuple(each.rule for each in compiled)
        self._refusals = _by_tag(refusals)
        self._messages = {rule.id: _by_tag(rule.message) for rule in self.rules}
        self._compiled = tuple(compiled)
        self._scoped: OrderedDict[tuple[bool, ...], ScopedRules] = OrderedDict()

    def refusal(self, rule_id: str, languages: Sequence[str]) -> str:
        """The rule's own message before the file's text, each in the first language it has, else
        its `default`."""
        for texts in (self._messages.get(rule_id, {}), self._refusals):
            for language in languages:
                tag = language.lower()
                found = texts.get(tag) or texts.get(tag.partition("-")[0])
                if found is not None:
                    return found
            if "default" in texts:
                return texts["default"]
        return REFUSAL

    def for_scope(self, scope: PolicyScope) -> ScopedRules:
        """The rules that are for this tenant and plan; compiled once for all whom the same rules
        are for."""
        chosen = tuple(_is_for(rule, scope) for rule in self.rules)
        scoped = self._scoped.get(chosen)
        if scoped is None:
            compiled = [each for each, is_in in zip(self._compiled, chosen, strict=True) if is_in]
            scoped = self._scoped[chosen] = ScopedRules(self.version, compiled)
            if len(self._scoped) > _SCOPES:
                self._scoped.popitem(last=False)
        self._scoped.move_to_end(chosen)
        return scoped


def parse_rules(
    source: str, text: str, *, folder: Path | None, lists: Mapping[str, str] | None = None
) -> Rulebook:
    """`folder` is where the files of phrases are looked for, unless `lists` has what they hold, by
    their names. Raises RulesError."""
    file = read_form(source, text)
    check_file(file)
    digest = hashlib.sha256(text.encode())
    compiled = []
    for index, rule in enumerate(file.rules.rules):
        phrases: tuple[str, ...] = ()
        if isinstance(rule.match, PhrasesMatcher) and rule.match.file is not None:
            listed = (lists or {}).get(rule.match.file)
            if listed is None:
                listed = _phrase_file(file, index, rule.match.file, folder)
            digest.update(listed.encode())
            phrases = _phrases(listed)
            if len(phrases) > MOST_PHRASES:
                file.fail(
                    ("rules", index, "match", "file"), f"lists more than {MOST_PHRASES} phrases"
                )
        compiled.append(compile_rule(rule, expressions_in(file, index, phrases)))
    return Rulebook(
        version=file.rules.version or digest.hexdigest()[:12],
        refusals=file.rules.refusal,
        compiled=compiled,
    )


def read_rules(path: Path) -> Rulebook:
    """Raises RulesError."""
    try:
        text = _read(path)
    except (OSError, ValueError) as error:
        raise RulesError(str(path), 0, "", _unreadable(error)) from error
    return parse_rules(str(path), text, folder=path.parent)


def default_text() -> str:
    """The rules that come with the server, as TOML."""
    return (resources.files("antiphon.policy") / "default.toml").read_text(encoding="utf-8")


@functools.cache
def default_rules() -> Rulebook:
    """The rules that come with the server."""
    return parse_rules("default.toml", default_text(), folder=None)


def _phrase_file(file: RulesFile, index: int, name: str, folder: Path | None) -> str:
    path = ("rules", index, "match", "file")
    if folder is None:
        file.fail(path, "can't be used here: these rules are in no folder")
    try:
        return _read(folder / name)
    except (OSError, ValueError) as error:
        file.fail(path, f"{name}: {_unreadable(error)}")


def _read(path: Path) -> str:
    """Raises OSError, ValueError."""
    with path.open("rb") as file:
        data = file.read(LONGEST_FILE + 1)
    if len(data) > LONGEST_FILE:
        raise ValueError(f"is longer than {LONGEST_FILE >> 20} MiB")
    return data.decode("utf-8-sig")


def _unreadable(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8"
    return f"can't be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)


def _phrases(listed: str) -> tuple[str, ...]:
    """One a line; empty lines and those that begin with # are none."""
    lines = (line.strip() for line in listed.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _is_for(rule: Rule, scope: PolicyScope) -> bool:
    return (not rule.plans or scope.plan in rule.plans) and (
        not rule.tenants or scope.tenant in rule.tenants
    )


def _by_tag(texts: Mapping[str, str]) -> dict[str, str]:
    return {language.lower(): text for language, text in texts.items()}
