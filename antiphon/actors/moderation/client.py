"""The way to the desk for everybody else: through the breaker, and never for longer than a
deadline, whatever becomes of the desk and its workers."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec
import trio

from antiphon import verdicts
from antiphon.actors.breaker import Breaker, BreakerSpec, Permit, Refused, Verdict
from antiphon.actors.moderation.messages import DeskMessage, JudgeTexts, ScoreTexts, Unjudged
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.errors import ActorCrashed, ActorStopped, AskTimeout, MailboxFull
from antiphon.judging import Job
from antiphon.verdicts import CategoryScores, Failure

R = TypeVar("R")

_PIECE_TEXTS = 32
_PIECE_CHARACTERS = 32_768
"""Of one request, at a time: others' texts are judged in between."""
_BREAKER = BreakerSpec(failures=5, reset_s=1.0, max_reset_s=5.0)
"""Each failure may cost its turn the whole deadline."""


def _judge(error: Exception) -> Verdict:
    """A queue that is full says nothing about the processes, nor does a text that is too much for
    them: or whoever sends such texts could keep everybody's from being judged."""
    match error:
        case Unjudged(failure=Failure.WORKER_LOST | Failure.DEADLINE, own=False):
            return Verdict.FAILURE
        case _:
            return Verdict.NOTHING


class DeskClient:
    """One for a server. `deadline_s` is asked for at every call."""

    def __init__(self, desk: Ref[DeskMessage], deadline_s: Callable[[], float]) -> None:
        self._desk = desk
        self._deadline_s = deadline_s
        self.breaker = Breaker("moderation", _BREAKER, judge=_judge)

    async def judge(self, job: Job) -> tuple[verdicts.Verdict | Failure, ...]:
        """For each text its verdict, or why there is none. A long history is judged piece by piece,
        the latest texts first, all of it within the deadline."""
        said: list[verdicts.Verdict | Failure] = []
        until = trio.current_time() + self._deadline_s()
        for texts in reversed(list(_pieces(job.texts))):
            said[:0] = await self._piece(msgspec.structs.replace(job, texts=texts), until)
        return tuple(said)

    async def score(self, texts: Sequence[str]) -> tuple[CategoryScores, ...]:
        """Each piece of them within a deadline of its own. Raises Unjudged."""
        scores: list[CategoryScores] = []
        for piece in _pieces(texts):

            def make(
                reply: Reply[tuple[CategoryScores, ...]], piece: tuple[str, ...] = piece
            ) -> DeskMessage:
                return ScoreTexts(texts=piece, reply=reply)

            said: tuple[CategoryScores, ...] = await self._through(make, self._deadline_s())
            scores += said
        return tuple(scores)

    async def _piece(self, job: Job, until: float) -> Sequence[verdicts.Verdict | Failure]:
        left_s = until - trio.current_time()
        if left_s <= 0:
            return [Failure.DEADLINE] * len(job.texts)
        try:
            return await self._through(lambda reply: JudgeTexts(job=job, reply=reply), left_s)
        except Unjudged as error:
            return [error.failure] * len(job.texts)

    async def _through(self, make: Callable[[Reply[R]], DeskMessage], deadline_s: float) -> R:
        match self.breaker.admit():
            case Refused():
                raise Unjudged(Failure.CIRCUIT_OPEN)
            case Permit() as permit:
                with permit:
                    return await self._ask(make, deadline_s)

    async def _ask(self, make: Callable[[Reply[R]], DeskMessage], deadline_s: float) -> R:
        try:
            return await self._desk.ask(make, deadline_s=deadline_s)
        except AskTimeout as error:
            raise Unjudged(Failure.DEADLINE) from error
        except MailboxFull as error:
            raise Unjudged(Failure.QUEUE_FULL) from error
        except (ActorCrashed, ActorStopped) as error:
            raise Unjudged(Failure.WORKER_LOST) from error


def _pieces(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """In order; a text that is longer than a piece is one of its own."""
    piece: list[str] = []
    characters = 0
    for text in texts:
        if piece and (len(piece) == _PIECE_TEXTS or characters + len(text) > _PIECE_CHARACTERS):
            yield tuple(piece)
            piece, characters = [], 0
        piece.append(text)
        characters += len(text)
    if piece:
        yield tuple(piece)
