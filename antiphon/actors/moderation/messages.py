"""What the actors of the policy's room tell each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.actors.moderation.edition import Edition
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.judging import Job
from antiphon.verdicts import CategoryScores, Failure, Verdict


class Unjudged(Exception):
    """An answer to whoever waits for a verdict: there will be none, and why. `own` where the text
    itself is the reason, and others would be judged."""

    def __init__(self, failure: Failure, *, own: bool = False) -> None:
        super().__init__(failure.value)
        self.failure = failure
        self.own = own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgeTexts:
    """Judge one request's texts. Fails with Unjudged."""

    job: Job
    reply: Reply[tuple[Verdict, ...]]

    @property
    def texts(self) -> Sequence[str]:
        return self.job.texts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreTexts:
    """What does the classifier say of them? Fails with Unjudged."""

    texts: Sequence[str]
    reply: Reply[tuple[CategoryScores, ...]]


Wanted = JudgeTexts | ScoreTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOut:
    """The desk to itself, behind all that has come by now: give the workers what waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFree:
    """A worker's process is ready, or has done all that it was given."""

    worker: "Ref[WorkerMessage]"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDown:
    """The incarnation of a worker that was last heard of has ended."""

    worker: "Ref[WorkerMessage]"


DeskMessage = JudgeTexts | ScoreTexts | HandOut | WorkerFree | WorkerDown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Everything here in one go."""

    wanted: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepare:
    """Have the process load this edition; answered with what is wrong with it, or None."""

    edition: Edition
    reply: Reply[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """No turn needs that version any more."""

    version: str


WorkerMessage = Run | Prepare | Drop
