"""Asks a guard model that one of our own pools serves: one short turn in the background lane for
each text. Its answer is read by the guard's own format."""

from collections.abc import Callable, Sequence
from typing import assert_never

import trio

from antiphon.actors.breaker import (
    Breaker,
    BreakerSpec,
    BreakerStatistics,
    Permit,
    Refused,
    Verdict,
)
from antiphon.actors.moderation.guards import llama_guard, qwen3guard
from antiphon.actors.moderation.guards.opinion import Opinion
from antiphon.actors.moderation.messages import Unjudged
from antiphon.errors import ActorError, RequestError
from antiphon.events import CancelCause, Sampling, Turn
from antiphon.ids import ModelName, new_request_id
from antiphon.policy.rules import GuardMatcher, Rule
from antiphon.ports import Chat
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import ChoiceEnded, Cited, Delta, TurnEnded, TurnFailed, TurnPlaced
from antiphon.turn_events import Refused as TurnRefused
from antiphon.verdicts import Failure, Finding, Stage

_FORMATS = {"llama_guard": llama_guard, "qwen3guard": qwen3guard}
_AT_ONCE = 8
"""Turns of guards that may be open: they share the engine with those that people wait for."""
_BREAKER = BreakerSpec(failures=5, reset_s=2.0, max_reset_s=30.0)


def _judge(error: Exception) -> Verdict:
    return Verdict.FAILURE if isinstance(error, Unjudged) else Verdict.NOTHING


class Guards:
    """All guard models; `chat` is asked for when it is needed, since it needs the policy too."""

    def __init__(self, chat: Callable[[], Chat]) -> None:
        self._chat = chat
        self._places = trio.CapacityLimiter(_AT_ONCE)
        self._breakers: dict[str, Breaker] = {}

    def statistics(self) -> tuple[BreakerStatistics, ...]:
        return tuple(breaker.statistics() for breaker in self._breakers.values())

    async def judge(
        self, rule: Rule, stage: Stage, texts: Sequence[str], of: Turn, deadline_s: float
    ) -> tuple[tuple[Finding, ...], ...]:
        """What the guard finds in each text. Raises Unjudged."""
        assert isinstance(rule.match, GuardMatcher)
        breaker = self._breakers.get(rule.match.model)
        if breaker is None:
            name = f"guard {rule.match.model}"
            breaker = self._breakers[rule.match.model] = Breaker(name, _BREAKER, judge=_judge)
        match breaker.admit():
            case Refused():
                raise Unjudged(Failure.CIRCUIT_OPEN)
            case Permit() as permit:
                with permit:
                    with trio.move_on_after(deadline_s):
                        return await self._all(rule, stage, texts, of)
                    raise Unjudged(Failure.DEADLINE)
            case _ as never:
                assert_never(never)

    async def _all(
        self, rule: Rule, stage: Stage, texts: Sequence[str], of: Turn
    ) -> tuple[tuple[Finding, ...], ...]:
        found: list[tuple[Finding, ...] | None] = [None] * len(texts)

        async def one(number: int, text: str) -> None:
            async with self._places:
                found[number] = await self._one(rule, stage, text, of)

        async with trio.open_nursery() as nursery:
            for number, text in enumerate(texts):
                nursery.start_soon(one, number, text)
        if any(each is None for each in found):
            raise Unjudged(Failure.UPSTREAM)
        return tuple(each or () for each in found)

    async def _one(
        self, rule: Rule, stage: Stage, text: str, of: Turn
    ) -> tuple[Finding, ...] | None:
        """None where the guard did not judge."""
        matcher = rule.match
        assert isinstance(matcher, GuardMatcher)
        form = _FORMATS[matcher.format]
        answer = await self._answer(
            Turn(
                request=new_request_id(),
                model=ModelName(matcher.model),
                messages=form.prompt(stage, text),
                sampling=Sampling(temperature=0.0),
                max_tokens=form.TOKENS,
                tenant=of.tenant,
                salt=of.salt,
                background=True,
                judges=True,
            )
        )
        opinion = None if answer is None else form.opinion(answer)
        return None if opinion is None else findings_of(rule, stage, text, opinion)

    async def _answer(self, turn: Turn) -> str | None:
        try:
            stream = await self._chat().open_turn(turn)
        except (RequestError, ActorError):
            return None
        pieces: list[str] = []
        try:
            while True:
                match await stream.next_event():
                    case Delta(text=text):
                        pieces.append(text)
                    case TurnEnded():
                        return "".join(pieces)
                    case TurnFailed() | TurnRefused():
                        return None
                    case TurnPlaced() | ChoiceEnded() | CallStarted() | CallDelta() | CallEnded():
                        pass
                    case Cited():
                        pass  # it was shown nothing to cite
                    case never:
                        assert_never(never)
        finally:
            stream.cancel(CancelCause.DEADLINE)


def findings_of(rule: Rule, stage: Stage, text: str, opinion: Opinion) -> tuple[Finding, ...]:
    """A guard judges a text as a whole. Of its categories those count that the rule names."""
    assert isinstance(rule.match, GuardMatcher)
    wanted = rule.match.categories
    if not opinion.unsafe:
        return ()
    named: list[str | None] = [name for name in opinion.categories if not wanted or name in wanted]
    if wanted and not named:
        return ()
    return tuple(rule.finding(stage, end=len(text), category=name) for name in (named or [None]))
