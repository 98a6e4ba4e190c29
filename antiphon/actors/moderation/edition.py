"""One edition of the rules: the text as it was read, and the rulebook that it makes. Frozen, so
that a turn keeps the one that it began with, and every judge process is given the very same."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from antiphon.errors import RulesError
from antiphon.judging import Load
from antiphon.policy.reading import read_form
from antiphon.policy.rulebook import Rulebook, default_text, parse_rules
from antiphon.policy.rules import (
    ClassifierMatcher,
    GuardMatcher,
    InjectionMatcher,
    PhrasesMatcher,
    Rule,
    UpstreamMatcher,
)
from antiphon.verdicts import OnFailure, Stage

DEFAULT_SOURCE = "default.toml"
_LONGEST_LIST = 1 << 20


@dataclass(frozen=True, eq=False)
class Edition:
    """`digest` is of all that it was read from."""

    rulebook: Rulebook
    load: Load
    """What a judge process is told, to judge by it."""
    digest: str

    @property
    def version(self) -> str:
        return self.rulebook.version

    @cached_property
    def by_id(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in self.rulebook.rules}

    @cached_property
    def fails_closed(self) -> bool:
        """Whether some text is blocked where no judge process is there to judge it."""
        return any(
            rule.on_failure is OnFailure.CLOSED
            and not rule.shadow
            and any(needs_judge(rule, stage) for stage in rule.stages)
            for rule in self.rulebook.rules
        )


def needs_judge(rule: Rule, stage: Stage) -> bool:
    """Whether a judge process runs it: output that streams is scanned on its way, except for what
    takes a classifier."""
    match rule.match:
        case GuardMatcher() | UpstreamMatcher():
            return False
        case ClassifierMatcher() | InjectionMatcher():
            return True
        case _:
            return stage is not Stage.OUTPUT


def default_edition() -> Edition:
    """The rules that come with the server. Raises RulesError."""
    return make_edition(DEFAULT_SOURCE, default_text(), {})


def read_edition(path: Path) -> Edition:
    """The rules in a file, and in the files that they name. Reads the disk. Raises RulesError."""
    source, text = str(path), _read(str(path), path)
    # A name in a file is no reason to read whatever it names as long as the file isn't right.
    rules = read_form(source, text).rules.rules
    return make_edition(
        source, text, {name: _read(source, path.parent / name) for name in listed_files(rules)}
    )


def make_edition(source: str, text: str, lists: dict[str, str]) -> Edition:
    """`lists` are the files of phrases, by their names in the rules. Raises RulesError."""
    rulebook = parse_rules(source, text, folder=None, lists=lists)
    digest = hashlib.sha256()
    for part in (text, *(piece for item in sorted(lists.items()) for piece in item)):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    load = Load(version=rulebook.version, source=source, text=text, lists=lists)
    return Edition(rulebook, load, digest.hexdigest())


def listed_files(rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """The other files that these rules are made of."""
    return tuple(
        rule.match.file
        for rule in rules
        if isinstance(rule.match, PhrasesMatcher) and rule.match.file is not None
    )


def _read(source: str, path: Path) -> str:
    """In one read, so that it is one state of the file, whoever writes to it."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_LIST + 1).decode("utf-8-sig")
    except OSError as error:
        problem = f"{path} can't be read: {error.strerror or error}"
        raise RulesError(source, 0, "", problem) from error
    except UnicodeDecodeError as error:
        raise RulesError(source, 0, "", f"{path} is not UTF-8") from error
