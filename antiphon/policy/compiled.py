"""Rules made to run: those of one scope, at each stage, over a whole text or over a stream.

Compiled once and shared; whatever a text leaves behind is in the trackers that are made for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.policy.bounded import Bounded, BoundedRule
from antiphon.policy.expression import Expression
from antiphon.policy.leak import Leak, prompt_index
from antiphon.policy.malformed import Malformed
from antiphon.policy.personal import personal_rule
from antiphon.policy.repetition import Repetition
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
from antiphon.policy.secrets import secret_rule
from antiphon.policy.tracker import Tracker
from antiphon.policy.window import Window
from antiphon.verdicts import Action, Finding, Stage

ASYNCHRONOUS = (ClassifierMatcher, InjectionMatcher, GuardMatcher, UpstreamMatcher)
"""Matchers that take longer than a stream may wait for on the server's own thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """A rule and what it is run as, where it is bounded."""

    rule: Rule
    bounded: BoundedRule | None = None


def compile_rule(rule: Rule, expressions: tuple[Expression, ...]) -> CompiledRule:
    """`expressions` are those of its patterns or phrases."""
    match rule.match:
        case PatternsMatcher(normalise=disguises):
            bounded = _written(rule, expressions, disguises=disguises)
        case PhrasesMatcher():
            bounded = _written(rule, expressions, disguises=True)
        case PersonalMatcher(entities=entities):
            bounded = personal_rule(rule, entities)
        case SecretsMatcher(kinds=kinds):
            bounded = secret_rule(rule, kinds)
        case _:
            return CompiledRule(rule=rule)
    return CompiledRule(rule=rule, bounded=bounded)


def _written(rule: Rule, expressions: tuple[Expression, ...], *, disguises: bool) -> BoundedRule:
    return BoundedRule(
        rule=rule.id,
        action=rule.action,
        expressions=expressions,
        disguises=disguises,
        replacement=rule.replacement,
        shadow=rule.shadow,
    )


class ScopedRules:
    """The rules of one version that are for one scope, in the order of their file."""

    def __init__(self, version: str, compiled: Sequence[CompiledRule]) -> None:
        self.version = version
        self.rules = tuple(each.rule for each in compiled)
        self._compiled = tuple(compiled)
        self._bounded: dict[Stage, Bounded] = {}
        self.transforms_input = any(
            rule.action is Action.TRANSFORM
            and not rule.shadow
            and any(stage is not Stage.OUTPUT for stage in rule.stages)
            for rule in self.rules
        )
        self.scans_output = bool(self.asynchronous(Stage.OUTPUT))

    def watches(self, stage: Stage) -> bool:
        """Whether any rule is for the stage."""
        return any(stage in rule.stages for rule in self.rules)

    def asynchronous(self, stage: Stage) -> tuple[Rule, ...]:
        """Those that need a model, here or elsewhere."""
        return tuple(
            rule
            for rule in self.rules
            if stage in rule.stages and isinstance(rule.match, ASYNCHRONOUS)
        )

    def window(self, system_prompt: str) -> Window:
        """What an answer under this system prompt goes out through."""
        trackers = self._trackers(Stage.OUTPUT, system_prompt)
        return Window([self._bounded_at(Stage.OUTPUT).tracker(Stage.OUTPUT), *trackers])

    def search(self, stage: Stage, text: str, system_prompt: str = "") -> list[Finding]:
        """All that rules find in a whole text without a model."""
        found = list(self._bounded_at(stage).search(text, stage))
        for tracker in self._trackers(stage, system_prompt):
            found += [*tracker.feed(text), *tracker.finish()]
        return found

    def _bounded_at(self, stage: Stage) -> Bounded:
        if stage not in self._bounded:
            self._bounded[stage] = Bounded(
                [
                    each.bounded
                    for each in self._compiled
                    if each.bounded is not None and stage in each.rule.stages
                ]
            )
        return self._bounded[stage]

    def _trackers(self, stage: Stage, system_prompt: str) -> list[Tracker]:
        trackers: list[Tracker] = []
        for rule in self.rules:
            if stage not in rule.stages:
                continue
            finding = Finding(rule=rule.id, stage=stage, action=rule.action, shadow=rule.shadow)
            match rule.match:
                case LeakMatcher(words=words):
                    if system_prompt:
                        trackers.append(Leak(prompt_index(system_prompt), words, finding))
                case RepetitionMatcher(times=times, longest=longest):
                    trackers.append(Repetition(times, longest, finding))
                case MalformedMatcher(run=run):
                    trackers.append(Malformed(run, finding))
                case _:
                    pass
        return trackers
