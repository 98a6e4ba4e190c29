"""A session actor: one turn, from its messages to its terminal event.

Keeps the rule that a turn ends exactly once and that what it held in the engine is given back,
whoever ends it: the model, the reader, the engine's death, or the server's stop.
"""

import math
from dataclasses import dataclass, replace
from typing import assert_never

import structlog
import trio

from antiphon import faults
from antiphon.actors.actor import ActorContext
from antiphon.actors.engines.messages import GenerationLost, GenerationNews
from antiphon.actors.scheduling.messages import Withdraw
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.sessions.calling import LEAST_FOR_A_CALL, Calling
from antiphon.actors.sessions.charges import Tab
from antiphon.actors.sessions.endings import FORGONE, REASONS, rejection
from antiphon.actors.sessions.generations import generations_of, once_more
from antiphon.actors.sessions.judging import Judging
from antiphon.actors.sessions.outlet import Outlet
from antiphon.actors.sessions.pace import Pace
from antiphon.actors.sessions.placing import Placement, Placing
from antiphon.actors.sessions.policing import Policing
from antiphon.actors.sessions.session_tools import SessionTools
from antiphon.actors.sessions.submitting import SchedulerDown, Submitting
from antiphon.actors.sessions.transcript import Transcript
from antiphon.errors import (
    ActorCrashed,
    AntiphonError,
    ContextLengthExceeded,
    EngineUnavailable,
    HostLost,
    QueueFull,
    RequestError,
    StoreError,
    TurnInterrupted,
)
from antiphon.events import CancelCause, SlotText, Turn
from antiphon.fault_plan import Site
from antiphon.ids import EngineRequest
from antiphon.moments import CancelAsked, EngineLost, InputJudged, Moment, OutputBlocked
from antiphon.turn_events import ChoiceEnded, FinishReason, TurnEnded, TurnPlaced

log = structlog.get_logger(__name__)

_SETTLE_S = 2.0
"""How long the end of a turn waits to be in the books: whoever reads it may ask again at once, and
this turn must not count as running then. What takes longer goes on behind it."""

_HEAD_START = 3
"""Passes of the event loop after which the input is with the judge: it is asked, the desk hands it
out, a worker sends it. Then the judge works while this process places the turn. A moment later it
would take a core from the prefill, whose threads wait for one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTurn:
    """The reader is gone, or gives up. `at` is when that was known, `current_time()`."""

    cause: CancelCause
    at: float


SessionMessage = GenerationNews | CancelTurn | SchedulerDown


class Session:
    """A temporary actor: it ends with its turn, and a crash of it ends only its turn. Whoever
    outlives it closes its `tab`."""

    def __init__(
        self,
        turn: Turn,
        meant: Pool,
        outlet: Outlet,
        tab: Tab,
        judging: Judging,
        tools: SessionTools,
    ) -> None:
        self._turn = turn
        self._outlet = outlet
        self._tab = tab
        self._router = tools.router
        self._charges = tools.charges
        self._telemetry = tools.telemetry
        self._policing = Policing(turn, judging, tools.abuse, tools.turns)
        self._outgoing = self._policing.outgoing
        self._viewer = tools.viewer
        self._placing = self._placing_of(turn)
        self._pool = meant
        """Until it is placed; then where it was."""
        self._placement: Placement | None = None
        """Until it is announced."""
        self._placed: Placement | None = None
        self._retries: set[EngineRequest] = set()
        self._is_announced = False
        self._wakes_at = math.inf
        self._transcript = Transcript(0, {})
        tab.used = lambda: self._transcript.told
        self._pace = Pace(tools.telemetry, turn.request)
        self._calling = Calling(turn.tools, turn.choices, tools.telemetry.tool_call)
        self._withdrawal = CancelCause.FAILED
        self._cancelled_at: float | None = None
        self._resubmitted = False
        self._queued_at = math.inf
        self._finish_reason = FinishReason.STOP
        self._ending: TurnEnded | None = None
        self._me: ActorContext[SessionMessage]
        self._submitting: Submitting

    def start(self, me: ActorContext[SessionMessage]) -> None:
        self._me = me
        self._submitting = Submitting(self._turn.request, me.ref)
        if self._policing.is_watched:
            me.start_soon(self._judge_input)
        me.start_soon(self._submit)

    def handle(self, message: SessionMessage) -> None:
        """One piece of news; the last one ends the actor."""
        match message:
            case SlotText():
                self._on_text(message)
            case GenerationLost():
                self._on_lost(message)
            case CancelTurn():
                self._on_cancel(message)
            case SchedulerDown():
                for request in message.requests:
                    lost = HostLost("its scheduler ended")
                    self._on_lost(GenerationLost(request=request, error=lost))
            case _:
                assert_never(message)

    def terminate(self) -> None:
        """Whatever the turn still holds goes back; a reader that still waits hears why."""
        self._submitting.close()
        self._conclude()
        now = trio.current_time()
        if self._me.stopping.is_set():
            self._on_cancel(CancelTurn(cause=CancelCause.SHUTDOWN, at=now))
        elif not self._transcript.ended:
            self._withdrawal = CancelCause.OWNER_LOST
            self._fail(ActorCrashed(self._me.path, self._me.incarnation))
        at = now if self._cancelled_at is None else self._cancelled_at
        self._withdraw(self._withdrawal, at)

    async def _submit(self) -> None:
        """Find a pool that queues the turn; beside the message loop, since it may take long and the
        turn may be cancelled meanwhile."""
        if self._policing.transforms_input:
            await self._policing.judged_input.wait()
        elif self._policing.is_watched:
            for _ in range(_HEAD_START):
                await trio.lowlevel.checkpoint()
        try:
            while not self._transcript.ended:
                placement = await self._placing.place()
                await faults.pause(Site.SESSION_SUBMIT)
                if self._transcript.ended:  # cancelled meanwhile
                    return
                try:
                    await self._ask(placement)
                    return
                except (QueueFull, EngineUnavailable, ContextLengthExceeded) as error:
                    await self._placing.refused(placement.decision.model, error)
        except (RequestError, StoreError) as error:
            self._fail(error)

    async def _resubmit(self) -> None:
        await self._placing.anew()
        await self._submit()

    async def _ask(self, placement: Placement) -> None:
        """Raises QueueFull, EngineUnavailable, ContextLengthExceeded."""
        pool = self._pool = placement.pool
        generations = generations_of(self._turn, pool, placement.view)
        self._transcript = Transcript(
            len(placement.view.prompt),
            {generation.request: index for index, generation in enumerate(generations)},
        )
        self._calling.begin(pool.tokenizer.tool_format, may_retry=pool.knows_schemas)
        self._placement = self._placed = placement
        self._queued_at = min(self._queued_at, trio.current_time())
        self._note(placement.noted)
        try:
            await self._submitting.submit(placement, generations, since=self._queued_at)
        except EngineUnavailable:
            self._withdraw(CancelCause.FAILED, trio.current_time())
            raise
        self._announce()
        self._watch(pool, frozenset(generation.request for generation in generations))

    def _watch(self, pool: Pool, requests: frozenset[EngineRequest]) -> None:
        # The turn may have ended, or lost these again, before the answer was read.
        if not self._transcript.ended and requests <= self._transcript.unfinished.keys():
            self._submitting.watch(pool, requests)

    async def _retry(self, choice: int) -> None:
        """Its call was malformed. Once more, held to a schema; where that can't be had, it ends
        with what there is."""
        if self._placed is None or self._transcript.ended or not self._outgoing.wants(choice):
            return
        placed = replace(self._placed, prediction=None)  # it was one of the first attempt
        left = placed.view.max_tokens - self._transcript.tokens_of(choice)
        if left < LEAST_FOR_A_CALL:
            self._settle_for(choice)
            return
        schema = self._calling.retry(choice)
        generation = once_more(self._turn, placed, choice=choice, schema=schema, max_tokens=left)
        request, since = generation.request, trio.current_time()
        self._transcript.add(request, choice)
        self._retries.add(request)
        try:
            await self._submitting.submit(placed, (generation,), since=since)
        except (QueueFull, EngineUnavailable, ContextLengthExceeded) as error:
            log.info("call_not_retried", request_id=self._turn.request, reason=str(error))
            self._forgo(request)
            return
        self._watch(placed.pool, frozenset({request}))

    def _forgo(self, request: EngineRequest) -> None:
        """A retry that comes to nothing."""
        if self._transcript.ended:
            return
        self._give_back(self._transcript.drop(request), CancelCause.FAILED, trio.current_time())
        self._settle_for(self._transcript.choice_of(request))

    def _settle_for(self, choice: int) -> None:
        for said in self._calling.give_up(choice):
            self._outgoing.take(said)
        self._let_out()

    def _announce(self) -> None:
        """The turn is taken: once for each placement, and before any of its text."""
        placement, self._placement = self._placement, None
        if placement is not None:
            self._router.placed(self._turn, placement.decision, placement.view)
            self._tell_place(placement.told)

    def _placing_of(self, turn: Turn) -> Placing:
        return Placing(turn, self._router, self._charges, self._tab, self._viewer)

    def _tell_place(self, placed: TurnPlaced) -> None:
        self._is_announced = True
        self._outlet.put(replace(placed, policy=self._policing.version))

    def _withdraw(self, cause: CancelCause, at: float) -> None:
        self._give_back(self._transcript.unfinished, cause, at)

    def _give_back(self, requests: dict[EngineRequest, int], cause: CancelCause, at: float) -> None:
        if requests:
            withdraw = Withdraw(cause=cause, at=at, tokens_seen=requests)
            self._pool.scheduler.tell_system(withdraw)

    async def _judge_input(self) -> None:
        """Beside placing and prefill, so that a verdict costs no time that they don't."""
        asked_at = trio.current_time()
        decided = await self._policing.judge_input()
        seconds = trio.current_time() - asked_at
        self._note(InputJudged(seconds=seconds, rule=decided.blocked_by))
        if self._transcript.ended:
            return
        if decided.blocked_by is not None:
            self._drop()
        elif self._policing.transforms_input:
            self._turn = replace(self._turn, messages=decided.messages, tools=decided.tools)
            self._placing = self._placing_of(self._turn)
        self._policing.decided(decided)
        self._let_out()

    def _drop(self) -> None:
        """Nobody is to see what this turn brings, wherever its generations are by now."""
        self._submitting.give_up()
        cut = self._transcript.cut(range(self._turn.choices))
        self._give_back(cut, CancelCause.POLICY, trio.current_time())
        if not self._is_announced:
            placed, self._placement = self._placement, None
            self._tell_place(placed.told if placed else TurnPlaced(model=self._pool.card.name))

    async def _scan(self, choice: int, text: str) -> None:
        await self._policing.scan(choice, text)
        if not self._transcript.ended:
            self._let_out()

    async def _wake(self, at: float) -> None:
        """What waits for a scan is scanned then, also when no token comes any more."""
        await trio.sleep_until(at)
        if self._wakes_at == at:
            self._wakes_at = math.inf
        if not self._transcript.ended:
            self._let_out()

    def _let_out(self) -> None:
        """Whatever may leave by now; what was blocked gives its slot back first."""
        if cut := self._transcript.cut(self._outgoing.cut()):
            self._give_back(cut, CancelCause.POLICY, trio.current_time())
            self._note(OutputBlocked(choices=len(cut)))
        for event in self._outgoing.leaving():
            if isinstance(event, ChoiceEnded):
                self._finish_reason = event.finish_reason
            self._pace.shown()
            self._outlet.put(event)
        for choice, text in self._outgoing.due(trio.current_time()):
            self._me.start_soon(self._scan, choice, text)
        if (due_at := self._outgoing.due_at) < self._wakes_at:
            self._wakes_at = due_at
            self._me.start_soon(self._wake, due_at)
        if self._outgoing.is_over and not self._transcript.ended:
            self._end(self._transcript.end(self._policing.judged))

    def _on_text(self, news: SlotText) -> None:
        self._announce()
        self._pace.note(self._pool.card.name, news, is_retry=news.request in self._retries)
        for event in self._transcript.on_text(news):
            for said in self._calling.take(event):
                self._outgoing.take(said)
        for choice in self._calling.due():
            self._me.start_soon(self._retry, choice)
        self._let_out()

    def _on_lost(self, lost: GenerationLost) -> None:
        if self._transcript.ended or lost.request not in self._transcript.unfinished:
            return
        if isinstance(lost.error, TurnInterrupted):
            self._interrupt(lost.error, CancelCause.DEADLINE, trio.current_time())
            return
        unavailable = isinstance(lost.error, EngineUnavailable)
        if unavailable and not self._transcript.begun and not self._resubmitted:
            # It never reached an engine, so nothing can be done twice.
            self._resubmitted = True
            self._note(EngineLost(error=type(lost.error).__name__))
            self._transcript = Transcript(0, {})
            self._outgoing.reset()
            self._me.start_soon(self._resubmit)
            return
        is_retry = lost.request in self._retries and not self._transcript.unfinished[lost.request]
        if is_retry and isinstance(lost.error, FORGONE):
            self._forgo(lost.request)
            return
        self._fail(lost.error)

    def _on_cancel(self, cancel: CancelTurn) -> None:
        self._interrupt(TurnInterrupted(REASONS[cancel.cause]), cancel.cause, cancel.at)

    def _interrupt(self, error: TurnInterrupted, cause: CancelCause, at: float) -> None:
        if self._transcript.ended:
            return
        self._withdrawal = cause
        self._cancelled_at = at
        self._telemetry.turn_cancelled(cause)
        self._note(CancelAsked(cause=cause))
        self._fail(error, finished="abort")

    def _fail(self, error: AntiphonError, *, finished: str = "error") -> None:
        for event in self._transcript.fail(error):
            self._outlet.put(event)
            if (reason := rejection(error)) is not None:
                self._telemetry.admission_rejected(reason)
            self._finish(finished, error)

    def _end(self, ending: TurnEnded) -> None:
        """The answer is whole: it is settled before anybody is told what it cost."""
        self._ending = ending
        if self._tab.charge is None:
            self._conclude()
        else:
            self._me.start_soon(self._settle)

    async def _settle(self) -> None:
        with trio.move_on_after(_SETTLE_S):
            await self._charges.settle(self._tab)
        self._conclude()

    def _conclude(self) -> None:
        ending, self._ending = self._ending, None
        if ending is not None:
            self._outlet.put(ending)
            self._finish(self._finish_reason)

    def _note(self, moment: Moment) -> None:
        self._telemetry.turn_noted(self._turn.request, moment)

    def _finish(self, reason: str, error: AntiphonError | None = None) -> None:
        self._pace.ended(self._pool.card.name, reason, error, self._transcript.told)
        self._telemetry.prompt_used(self._turn.prompt_version, reason)
        faults.maybe(Site.SESSION_ENDED)
        self._me.stop()
