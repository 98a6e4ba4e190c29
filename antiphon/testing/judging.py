"""A policy whose verdicts come when the test says so: a Moderation, its judges, and windows that
look for plain phrases. What real rules find is tested with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from antiphon.errors import ModerationUnavailable
from antiphon.events import Turn
from antiphon.moderating import Passed
from antiphon.verdicts import (
    CATEGORIES,
    Action,
    CategoryScores,
    Failure,
    Finding,
    NotRun,
    OnFailure,
    Stage,
    Verdict,
)

VERSION = "rules-1"
REPLACEMENT = "[removed]"
MODEL = "scripted-moderation"


def findings_in(text: str, phrases: Mapping[str, Action], stage: Stage) -> tuple[Finding, ...]:
    """Every place of every phrase, first places first."""
    found = [
        Finding(
            rule=phrase,
            stage=stage,
            action=action,
            start=at,
            end=at + len(phrase),
            replacement=REPLACEMENT,
        )
        for phrase, action in phrases.items()
        for at in range(len(text))
        if text.startswith(phrase, at)
    ]
    return tuple(sorted(found, key=lambda finding: finding.start))


def scores_of(text: str, flagged: Sequence[str] = ()) -> CategoryScores:
    """Violence where the text has one of those words, and nothing else."""
    is_flagged = any(word in text for word in flagged)
    scores = dict.fromkeys(CATEGORIES, 0.01) | ({"violence": 0.97} if is_flagged else {})
    return CategoryScores(
        model=MODEL, scores=scores, flagged=frozenset({"violence"} if is_flagged else ())
    )


class PhraseWindow:
    """An OutputWindow: blocks or replaces phrases, of which none overlaps another one. A phrase is
    the id of its rule."""

    def __init__(self, phrases: Mapping[str, Action]) -> None:
        self._phrases = phrases
        self._buffer = ""
        self._at = 0
        self._is_blocked = False

    @property
    def held(self) -> int:
        return len(self._buffer)

    def feed(self, text: str) -> Passed:
        self._buffer += text
        return self._pass(is_last=False)

    def finish(self) -> Passed:
        return self._pass(is_last=True)

    def _pass(self, *, is_last: bool) -> Passed:
        if self._is_blocked:
            return Passed()
        out, begins, findings = "", self._at, []
        while (found := self._next()) is not None:
            at, phrase = found
            out += self._buffer[:at]
            action = self._phrases[phrase]
            finding = Finding(
                rule=phrase,
                stage=Stage.OUTPUT,
                action=action,
                start=self._at + at,
                end=self._at + at + len(phrase),
                replacement=REPLACEMENT,
            )
            findings.append(finding)
            if action is Action.BLOCK:
                self._is_blocked = True
                source, self._buffer = self._at + len(self._buffer) - begins, ""
                return Passed(text=out, source=source, findings=tuple(findings), blocked_by=phrase)
            out += REPLACEMENT if action is Action.TRANSFORM else phrase
            self._take(at + len(phrase))
        free = len(self._buffer) if is_last else len(self._buffer) - self._hold()
        out += self._buffer[:free]
        self._take(free)
        return Passed(text=out, source=self._at - begins, findings=tuple(findings))

    def _next(self) -> tuple[int, str] | None:
        places = [(self._buffer.find(phrase), phrase) for phrase in self._phrases]
        return min((place for place in places if place[0] >= 0), default=None)

    def _take(self, count: int) -> None:
        self._buffer, self._at = self._buffer[count:], self._at + count

    def _hold(self) -> int:
        """The longest end of the buffer that may be the beginning of a phrase."""
        longest = max(map(len, self._phrases), default=1)
        return next(
            (
                count
                for count in range(min(longest - 1, len(self._buffer)), 0, -1)
                if any(phrase.startswith(self._buffer[-count:]) for phrase in self._phrases)
            ),
            0,
        )


@dataclass
class ScriptedJudge:
    """A Judge. `phrases` are looked for in texts and, as bounded rules, in the output's window;
    `scanned` only where output is scanned. While a stage is held, its verdicts wait."""

    phrases: Mapping[str, Action] = field(default_factory=dict)
    scanned: Mapping[str, Action] = field(default_factory=dict)
    stages: frozenset[Stage] = frozenset({Stage.INPUT, Stage.TOOL})
    transforms_input: bool = False
    scans_output: bool = False
    version: str = VERSION
    refuses: str = "No."
    missing: Mapping[Stage, OnFailure] = field(default_factory=dict)
    """Stages at which a rule can't be run, and what it does then."""
    scores: Callable[[str], CategoryScores] | None = None
    """What a rule's classifier says; None where there is no such rule."""
    delay_s: float = 0.0
    asked: list[tuple[Stage, tuple[str, ...]]] = field(default_factory=list)
    noted: list[tuple[str, str]] = field(default_factory=list)
    withheld: list[tuple[str, str]] = field(default_factory=list)
    """What windows found: rule and text."""
    languages: tuple[str, ...] = ()
    """In which a refusal was asked for last."""
    system_prompts: list[str] = field(default_factory=list)
    is_closed: bool = False
    _held: dict[Stage, trio.Event] = field(default_factory=dict)

    def watches(self, stage: Stage) -> bool:
        return stage in self.stages

    def hold(self, stage: Stage) -> None:
        self._held[stage] = trio.Event()

    def release(self, stage: Stage) -> None:
        self._held.pop(stage).set()

    async def judge(self, stage: Stage, texts: Sequence[str]) -> tuple[Verdict, ...]:
        self.asked.append((stage, tuple(texts)))
        if stage in self._held:
            await self._held[stage].wait()
        await trio.sleep(self.delay_s)
        return tuple(self._verdict(stage, text) for text in texts)

    def window(self, system_prompt: str) -> PhraseWindow:
        self.system_prompts.append(system_prompt)
        return PhraseWindow({} if Stage.OUTPUT not in self.stages else self.phrases)

    def refusal(self, rule: str, languages: Sequence[str]) -> str:
        self.languages = tuple(languages)
        return self.refuses

    def note_output(self, findings: Sequence[Finding], text: str) -> None:
        self.noted += [(finding.rule, text) for finding in findings]

    def note_withheld(self, rule: str, text: str) -> None:
        self.withheld.append((rule, text))

    def close(self) -> None:
        self.is_closed = True

    def _verdict(self, stage: Stage, text: str) -> Verdict:
        phrases = self.scanned if stage is Stage.OUTPUT else self.phrases
        missing: tuple[NotRun, ...] = ()
        if stage in self.missing:
            missing = (
                NotRun(
                    rule="slow",
                    stage=stage,
                    failure=Failure.DEADLINE,
                    on_failure=self.missing[stage],
                ),
            )
        return Verdict(
            version=self.version,
            findings=findings_in(text, phrases, stage),
            not_run=missing,
            scores=None if self.scores is None else self.scores(text),
        )


@dataclass
class ScriptedModeration:
    """A Moderation. Every turn has the same judge; texts with one of the `flagged` words are
    flagged."""

    judge: ScriptedJudge = field(default_factory=ScriptedJudge)
    flagged: tuple[str, ...] = ()
    unavailable: ModerationUnavailable | None = None
    turns: list[Turn] = field(default_factory=list)
    scored: list[tuple[str, ...]] = field(default_factory=list)
    model: str = MODEL

    def judge_for(self, turn: Turn) -> ScriptedJudge:
        self.turns.append(turn)
        return self.judge

    async def score(self, texts: Sequence[str]) -> tuple[CategoryScores, ...]:
        await trio.lowlevel.checkpoint()
        self.scored.append(tuple(texts))
        if self.unavailable is not None:
            raise self.unavailable
        return tuple(scores_of(text, self.flagged) for text in texts)
