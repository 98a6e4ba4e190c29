"""A session actor: one turn, from its messages to its terminal event.

Keeps the rule that a turn ends exactly once and that what it held in the engine is given back,
whoever ends it: the model, the reader, the engine's death, or the server's stop.
"""

import math
from dataclasses import dataclass
from typing import assert_never

import msgspec
import structlog
import trio

from antiphon import faults
from antiphon.actors.actor import ActorContext
from antiphon.actors.breaker import Permit, Refused
from antiphon.actors.context.view import View, encode, fit
from antiphon.actors.engines.messages import GenerationLost, GenerationNews
from antiphon.actors.monitor import Monitor
from antiphon.actors.reply import Reply
from antiphon.actors.scheduling.messages import Generation, Submit, Withdraw
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.sessions.outlet import Outlet
from antiphon.actors.sessions.transcript import Transcript
from antiphon.errors import (
    ActorCrashed,
    ActorError,
    AntiphonError,
    EngineUnavailable,
    HostLost,
    QueueExpired,
    QueueFull,
    RequestError,
    TurnInterrupted,
)
from antiphon.events import (
    CancelCause,
    ChoiceEnded,
    Delta,
    FinishReason,
    SlotText,
    Turn,
    TurnEnded,
    TurnFailed,
)
from antiphon.fault_plan import Site
from antiphon.ids import EngineRequest
from antiphon.ports import Telemetry

log = structlog.get_logger(__name__)

_SUBMIT_S = 15.0
"""How long a turn waits for an engine that is being restarted before the client is told to
retry."""
_SHORTEST_RETRY_S = 1.0
"""While a probe is out nobody knows when the next turn may pass; clients that come back at once
would only be refused again."""
_SEED_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTurn:
    """The reader is gone, or gives up. `at` is when that was known, `current_time()`."""

    cause: CancelCause
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _SchedulerDown:
    """The scheduler ended, and if it could, it has said what became of our generations."""

    requests: frozenset[EngineRequest]


SessionMessage = GenerationNews | CancelTurn | _SchedulerDown


class Session:
    """A temporary actor: it ends with its turn, and a crash of it ends only its turn."""

    def __init__(self, turn: Turn, pool: Pool, outlet: Outlet, telemetry: Telemetry) -> None:
        self._turn = turn
        self._pool = pool
        self._outlet = outlet
        self._telemetry = telemetry
        self._transcript = Transcript(0, {})
        self._view: View | None = None
        self._began = trio.current_time()
        self._heard_at: dict[EngineRequest, tuple[float, int]] = {}
        self._withdrawal = CancelCause.FAILED
        self._cancelled_at: float | None = None
        self._resubmitted = False
        self._queued_at = math.inf
        self._asked: Reply[None] | None = None
        self._monitor: Monitor | None = None
        self._finish_reason = FinishReason.STOP
        self._me: ActorContext[SessionMessage]

    def start(self, me: ActorContext[SessionMessage]) -> None:
        self._me = me
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
            case _SchedulerDown():
                for request in message.requests:
                    lost = HostLost("its scheduler ended")
                    self._on_lost(GenerationLost(request=request, error=lost))
            case _:
                assert_never(message)

    def terminate(self) -> None:
        """Whatever the turn still holds goes back; a reader that still waits hears why."""
        if self._asked is not None:
            # A Submit that is still queued is skipped from now on, as the Withdraw overtakes it.
            self._asked.close()
        if self._monitor is not None:
            self._monitor.cancel()
        now = trio.current_time()
        if self._me.stopping.is_set():
            self._on_cancel(CancelTurn(cause=CancelCause.SHUTDOWN, at=now))
        elif not self._transcript.ended:
            self._withdrawal = CancelCause.OWNER_LOST
            self._fail(ActorCrashed(self._me.path, self._me.incarnation))
        unfinished = self._transcript.unfinished
        if unfinished:
            at = now if self._cancelled_at is None else self._cancelled_at
            withdraw = Withdraw(cause=self._withdrawal, at=at, tokens_seen=unfinished)
            self._pool.scheduler.tell_system(withdraw)

    async def _submit(self) -> None:
        """Build the view and queue the generations; beside the message loop, since both may take
        long and the turn may be cancelled meanwhile."""
        try:
            if self._view is None:
                self._view = await self._build_view()
            await faults.pause(Site.SESSION_SUBMIT)
            if self._transcript.ended:  # cancelled meanwhile
                return
            generations = self._generations(self._view)
            self._transcript = Transcript(
                len(self._view.prompt),
                {generation.request: index for index, generation in enumerate(generations)},
            )
            await self._ask(generations)
        except RequestError as error:
            self._fail(error)
        except ActorError as error:
            # The scheduler is down, or its pool is: not this request's fault, and safe to retry.
            log.warning("submit_failed", request_id=self._turn.request, reason=str(error))
            self._fail(EngineUnavailable(retry_after_s=2.0))

    async def _ask(self, generations: tuple[Generation, ...]) -> None:
        self._queued_at = min(self._queued_at, trio.current_time())

        def submit(reply: Reply[None]) -> Submit:
            self._asked = reply
            return Submit(
                turn=self._turn.request,
                since=self._queued_at,
                generations=generations,
                owner=self._me.ref,
                reply=reply,
            )

        match self._pool.breaker.admit():
            case Refused(retry_after_s=seconds):
                raise EngineUnavailable(retry_after_s=max(seconds, _SHORTEST_RETRY_S))
            case Permit() as permit:
                with permit:
                    await self._pool.scheduler.ask(submit, deadline_s=_SUBMIT_S)
            case refused:
                assert_never(refused)
        requests = frozenset(generation.request for generation in generations)
        # The turn may have ended, or lost these again, before the answer was read.
        if not self._transcript.ended and requests <= self._transcript.unfinished.keys():
            down = _SchedulerDown(requests=requests)
            self._monitor = self._pool.scheduler.monitor(lambda _: self._me.ref.tell_system(down))

    async def _build_view(self) -> View:
        capabilities = self._pool.status.capabilities
        window = self._pool.card.window if capabilities is None else capabilities.window
        prompt = await encode(
            self._pool.tokenizer,
            self._turn.messages,
            window=window,
            threads=self._pool.long_prompts,
        )
        return fit(
            prompt,
            max_tokens=self._turn.max_tokens,
            default=self._pool.default_max_tokens(),
            window=window,
        )

    def _generations(self, view: View) -> tuple[Generation, ...]:
        sampling = self._turn.sampling
        return tuple(
            Generation(
                request=next(self._pool.requests),
                prompt=view.prompt,
                max_tokens=view.max_tokens,
                sampling=msgspec.structs.replace(
                    sampling, seed=(sampling.seed + choice) % (1 << _SEED_BITS)
                ),
                stop=self._turn.stop,
                salt=self._turn.salt,
                messages=self._turn.messages if self._pool.sends_messages else (),
                affinity=self._turn.affinity,
            )
            for choice in range(self._turn.choices)
        )

    def _on_text(self, news: SlotText) -> None:
        self._measure(news)
        for event in self._transcript.on_text(news):
            self._outlet.put(event)
            match event:
                case ChoiceEnded():
                    self._finish_reason = event.finish_reason
                case TurnEnded():
                    self._finish(self._finish_reason)
                case Delta() | TurnFailed():
                    pass
                case _:
                    assert_never(event)

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
            self._transcript = Transcript(0, {})
            self._me.start_soon(self._submit)
            return
        self._fail(lost.error)

    def _on_cancel(self, cancel: CancelTurn) -> None:
        self._interrupt(TurnInterrupted(_REASONS[cancel.cause]), cancel.cause, cancel.at)

    def _interrupt(self, error: TurnInterrupted, cause: CancelCause, at: float) -> None:
        if self._transcript.ended:
            return
        self._withdrawal = cause
        self._cancelled_at = at
        self._telemetry.turn_cancelled(cause)
        self._fail(error, finished="abort")

    def _fail(self, error: AntiphonError, *, finished: str = "error") -> None:
        for event in self._transcript.fail(error):
            self._outlet.put(event)
            if (reason := _rejection(error)) is not None:
                self._telemetry.admission_rejected(reason)
            self._finish(finished)

    def _finish(self, reason: str) -> None:
        seconds = trio.current_time() - self._began
        self._telemetry.turn_finished(self._pool.card.name, reason, seconds)
        faults.maybe(Site.SESSION_ENDED)
        self._me.stop()

    def _measure(self, news: SlotText) -> None:
        """Time to first token and between tokens, per choice."""
        now = trio.current_time()
        before = self._heard_at.get(news.request)
        self._heard_at[news.request] = (now, news.tokens)
        name = self._pool.card.name
        if before is None:
            self._telemetry.first_token(name, now - self._began)
            self._telemetry.tokens_generated(name, news.tokens, 0.0)
        elif news.tokens > before[1]:
            self._telemetry.tokens_generated(name, news.tokens - before[1], now - before[0])


def _rejection(error: AntiphonError) -> str | None:
    """The word for a turn that was refused for load, and not for what it asked."""
    match error:
        case QueueFull():
            return "queue_full"
        case QueueExpired():
            return "queue_deadline"
        case EngineUnavailable():
            return "engine_unavailable"
        case _:
            return None


_REASONS = {
    CancelCause.DISCONNECT: "the client disconnected",
    CancelCause.SLOW_READER: "the client read too slowly",
    CancelCause.REQUESTED: "it was cancelled",
    CancelCause.DEADLINE: "the answer took too long",
    CancelCause.SHUTDOWN: "the server is shutting down",
    CancelCause.OWNER_LOST: "the request's handler ended",
    CancelCause.FAILED: "another choice of it failed",
}
