"""What a rules' file must keep besides its form: names that are known, matchers that can run where
they are to, bounds that make sense.

Raises RulesError, with line and key, at the first thing that is wrong.
"""

import re
from collections.abc import Mapping
from typing import NoReturn, assert_never

from antiphon.policy.expression import Expression, ExpressionError, literal, parse
from antiphon.policy.personal import ENTITIES
from antiphon.policy.reading import RulesFile, meant
from antiphon.policy.rules import (
    ClassifierMatcher,
    GuardMatcher,
    InjectionMatcher,
    LeakMatcher,
    MalformedMatcher,
    PatternsMatcher,
    PersonalMatcher,
    PhrasesMatcher,
    RepetitionMatcher,
    Rule,
    SecretsMatcher,
    UpstreamMatcher,
)
from antiphon.policy.secrets import SECRETS
from antiphon.verdicts import CATEGORIES, Action, Stage

MOST_RULES = 500
LONGEST_MESSAGE = 2_000
LONGEST_REPLACEMENT = 200
BOUNDED = (PatternsMatcher, PhrasesMatcher, PersonalMatcher, SecretsMatcher)
"""Matchers of which every match has a longest length, so that it can be replaced in a stream."""

_ID = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?")
_VERSION = re.compile(r"[!-~]{1,64}")
_LANGUAGE = re.compile(r"default|[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_WORDS, _TIMES, _LONGEST, _RUN = (3, 64), (3, 1_000), (1, 512), (1, 1_000)


def check_file(file: RulesFile) -> None:
    """All that no single rule can tell. Raises RulesError."""
    rules = file.rules
    if rules.version is not None and _VERSION.fullmatch(rules.version) is None:
        file.fail(("version",), "must have 1 to 64 characters of ASCII without spaces")
    _check_texts(file, ("refusal",), rules.refusal)
    if len(rules.rules) > MOST_RULES:
        file.fail(("rules", MOST_RULES), f"is one more than the {MOST_RULES} that may be")
    first: dict[str, int] = {}
    for index, rule in enumerate(rules.rules):
        if rule.id in first:
            line = file.positions.line(("rules", first[rule.id]))
            file.fail(("rules", index, "id"), f"{rule.id!r} is the id of the rule in line {line}")
        first[rule.id] = index


def expressions_in(file: RulesFile, index: int, phrases: tuple[str, ...]) -> tuple[Expression, ...]:
    """One rule checked: the expressions that its file or its lists have. Raises RulesError."""
    return _RuleCheck(file, index).expressions(phrases)


class _RuleCheck:
    def __init__(self, file: RulesFile, index: int) -> None:
        self._file = file
        self._at = ("rules", index)
        self._rule: Rule = file.rules.rules[index]

    def expressions(self, phrases: tuple[str, ...]) -> tuple[Expression, ...]:
        self._check_head()
        self._check_action()
        return self._check_matcher(phrases)

    def _check_head(self) -> None:
        rule = self._rule
        if _ID.fullmatch(rule.id) is None:
            self._fail("id", "must be lower-case letters, digits and - _ . (at most 64)")
        if not rule.stages:
            self._fail("stages", "names none")
        for number, stage in enumerate(rule.stages):
            if stage in rule.stages[:number]:
                self._fail("stages", number, f"{stage.value!r} is there twice")
        for name in ("plans", "tenants"):
            for number, each in enumerate(getattr(rule, name)):
                if not each.strip():
                    self._fail(name, number, "is empty")

    def _check_action(self) -> None:
        rule = self._rule
        if rule.action is Action.TRANSFORM and not isinstance(rule.match, BOUNDED):
            kind = type(rule.match).__struct_config__.tag
            self._fail("action", f"a {kind} rule can't transform: what it finds has no bounds")
        if rule.action is not Action.TRANSFORM and self._written("replacement"):
            self._fail("replacement", f"means nothing for a rule that does {rule.action.value!r}")
        if len(rule.replacement) > LONGEST_REPLACEMENT:
            self._fail("replacement", f"has more than {LONGEST_REPLACEMENT} characters")
        if rule.action is not Action.BLOCK and rule.message:
            self._fail("message", f"means nothing for a rule that does {rule.action.value!r}")
        if rule.keep_blocked and (rule.action is not Action.BLOCK or not _is_at_output(rule)):
            self._fail("keep_blocked", "means something only for a rule that blocks output")
        _check_texts(self._file, (*self._at, "message"), rule.message)

    def _check_matcher(self, phrases: tuple[str, ...]) -> tuple[Expression, ...]:
        match self._rule.match:
            case PatternsMatcher() as matcher:
                return self._patterns(matcher)
            case PhrasesMatcher() as matcher:
                return self._phrases(matcher, phrases)
            case PersonalMatcher(entities=entities):
                self._names("entities", entities, ENTITIES, "entity")
                if not entities:
                    self._fail("match", "entities", "names none")
            case SecretsMatcher(kinds=kinds):
                self._names("kinds", kinds, SECRETS, "kind of secret")
                self._whole_secrets(kinds)
            case ClassifierMatcher(thresholds=thresholds):
                self._thresholds(thresholds)
            case UpstreamMatcher(thresholds=thresholds):
                self._thresholds(thresholds)
            case InjectionMatcher(at_least=at_least):
                self._never_at(Stage.OUTPUT, "injections are found in what the model reads")
                if at_least is not None and not 0 <= at_least <= 1:
                    self._fail("match", "at_least", "must be from 0 to 1")
            case LeakMatcher(words=words):
                for stage in (Stage.INPUT, Stage.RETRIEVED, Stage.TOOL):
                    self._never_at(stage, "a system prompt leaks in the output")
                self._within("words", words, _WORDS)
            case RepetitionMatcher(times=times, longest=longest):
                self._within("times", times, _TIMES)
                self._within("longest", longest, _LONGEST)
            case MalformedMatcher(run=run):
                self._within("run", run, _RUN)
            case GuardMatcher(model=model):
                if not model.strip():
                    self._fail("match", "model", "is empty")
            case _ as never:
                assert_never(never)
        return ()

    def _patterns(self, matcher: PatternsMatcher) -> tuple[Expression, ...]:
        if not matcher.patterns:
            self._fail("match", "patterns", "names none")
        found = []
        for number, pattern in enumerate(matcher.patterns):
            try:
                found.append(parse(pattern, ignore_case=matcher.ignore_case))
            except ExpressionError as error:
                problem = f"character {error.position + 1} of {pattern!r}: {error.problem}"
                self._fail("match", "patterns", number, problem)
        return tuple(found)

    def _phrases(self, matcher: PhrasesMatcher, listed: tuple[str, ...]) -> tuple[Expression, ...]:
        if not matcher.phrases and not listed:
            self._fail("match", "phrases", "names none, nor a file that does")
        found = []
        for number, phrase in enumerate((*matcher.phrases, *listed)):
            try:
                found.append(literal(phrase, whole_words=matcher.whole_words, ignore_case=True))
            except ExpressionError as error:
                if number < len(matcher.phrases):
                    self._fail("match", "phrases", number, error.problem)
                self._fail("match", "file", f"{phrase!r}: {error.problem}")
        return tuple(found)

    def _whole_secrets(self, kinds: tuple[str, ...]) -> None:
        if self._rule.action is not Action.TRANSFORM:
            return
        longer = [kind for kind in kinds or SECRETS if not SECRETS[kind].whole]
        if longer:
            names = " and ".join(longer)
            self._fail(
                "match",
                "kinds",
                f"{names} may be longer than what can be replaced: block them, name the others",
            )

    def _thresholds(self, thresholds: Mapping[str, float]) -> None:
        for name, threshold in thresholds.items():
            if name not in CATEGORIES:
                self._fail(
                    "match", "thresholds", name, f"is no category; {meant(name, CATEGORIES)}"
                )
            if not 0 <= threshold <= 1:
                self._fail("match", "thresholds", name, "must be from 0 to 1")

    def _names(
        self, key: str, names: tuple[str, ...], known: Mapping[str, object], what: str
    ) -> None:
        for number, name in enumerate(names):
            if name not in known:
                self._fail("match", key, number, f"{name!r} is no {what}; {meant(name, known)}")

    def _never_at(self, stage: Stage, reason: str) -> None:
        if stage in self._rule.stages:
            number = self._rule.stages.index(stage)
            self._fail("stages", number, f"not at {stage.value!r}: {reason}")

    def _within(self, key: str, value: int, bounds: tuple[int, int]) -> None:
        if not bounds[0] <= value <= bounds[1]:
            self._fail("match", key, f"must be from {bounds[0]} to {bounds[1]}")

    def _written(self, key: str) -> bool:
        return self._file.written((*self._at, key))

    def _fail(self, *path_and_problem: str | int) -> NoReturn:
        *path, problem = path_and_problem
        self._file.fail((*self._at, *path), str(problem))


def _is_at_output(rule: Rule) -> bool:
    return Stage.OUTPUT in rule.stages


def _check_texts(file: RulesFile, path: tuple[str | int, ...], texts: Mapping[str, str]) -> None:
    for language, text in texts.items():
        if _LANGUAGE.fullmatch(language) is None:
            file.fail(
                (*path, language), "is neither a language (BCP 47, such as pt-BR) nor default"
            )
        if not text.strip() or len(text) > LONGEST_MESSAGE:
            file.fail((*path, language), f"must have 1 to {LONGEST_MESSAGE} characters")
