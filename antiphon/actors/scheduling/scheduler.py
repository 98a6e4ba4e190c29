"""The scheduler actor of one pool: a queue, slot leases, and the only one that admits work.

Keeps the rule that a lease has a live owner: a withdrawal, the owner's end, the turn's deadline or
the engine's Released gives it back, each at most once. Knows no text.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import structlog
import trio

from antiphon import faults
from antiphon.actors.actor import ActorContext
from antiphon.actors.engines.messages import (
    Begin,
    DriverMessage,
    Engine,
    GenerationLost,
    GenerationNews,
    SlotReleased,
    TakeOver,
)
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.monitor import Down, Monitor
from antiphon.actors.ref import Ref
from antiphon.actors.scheduling.messages import (
    Generation,
    OwnerDown,
    SchedulerMessage,
    Submit,
    Sweep,
    Withdraw,
)
from antiphon.actors.scheduling.schedule import (
    Capacity,
    Lease,
    QueueBounds,
    Schedule,
    Ticket,
    learned_from,
)
from antiphon.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    HostLost,
    QueueFull,
    TurnInterrupted,
)
from antiphon.events import Abort, Admit, CancelCause, Capabilities
from antiphon.fault_plan import Site
from antiphon.ids import EngineRequest
from antiphon.ports import Telemetry
from antiphon.supervision.exits import is_abnormal

log = structlog.get_logger(__name__)

_TAKE_OVER_S = 5.0
"""An engine empties within a step; the supervisor would wait for twice this."""
_SWEEP_S = 0.5
"""How late a queue deadline may be noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    generation: Generation
    owner: Ref[GenerationNews]
    monitor: Monitor


@dataclass(slots=True)
class ScheduleView:
    """The schedule of the present incarnation, for status pages; None while there is none."""

    schedule: Schedule | None = None


class Scheduler:
    """First in, first out. Its driver is ready before it starts, and a new driver means a new
    scheduler, since leases on a dead host mean nothing. It grants nothing while `status` says that
    the engine is lost: what has only waited may be tried again. `bounds` and `turn_deadline_s` are
    asked for when they matter, since an operator may change them."""

    def __init__(
        self,
        driver: Ref[DriverMessage],
        status: EngineStatus,
        view: ScheduleView,
        telemetry: Telemetry,
        *,
        bounds: Callable[[], QueueBounds],
        turn_deadline_s: Callable[[], float],
    ) -> None:
        self._driver = driver
        self._status = status
        self._view = view
        self._telemetry = telemetry
        self._model = status.model
        self._bounds = bounds
        self._turn_deadline_s = turn_deadline_s
        self._schedule: Schedule
        self._me: ActorContext[SchedulerMessage]
        self._host = 0
        self._is_new = True
        self._entries: dict[EngineRequest, _Entry] = {}
        self._withdrawn: dict[EngineRequest, Withdraw] = {}

    async def start(self, me: ActorContext[SchedulerMessage]) -> None:
        """Take the engine over, emptied of what a former scheduler had running in it."""
        self._me = me
        engine: Engine = await self._driver.ask(
            lambda reply: TakeOver(reply=reply), deadline_s=_TAKE_OVER_S
        )
        self._host = engine.host
        self._schedule = Schedule(
            _capacity(engine.capabilities), self._bounds(), learned_from(me.handoff)
        )
        self._view.schedule = self._schedule
        me.start_soon(self._tick, me.ref)

    def handle(self, message: SchedulerMessage) -> None:
        """Every message ends with granting what has become possible. A new scheduler first hears
        all that came before it was ready: it comes in any order, and is served by who came first.
        """
        match message:
            case Submit():
                self._submit(message)
            case Withdraw():
                self._withdraw(message)
            case SlotReleased():
                self._released(message)
            case OwnerDown():
                self._owner_down(message)
            case Sweep():
                self._sweep()
            case _:
                assert_never(message)
        self._is_new = self._is_new and self._me.backlog > 0
        if self._status.ready and not self._is_new:
            for lease in self._schedule.grant(trio.current_time()):
                self._begin(lease)
        load = self._schedule.load()
        self._telemetry.requests_in_flight(self._model, running=load.running, waiting=load.waiting)

    def terminate(self) -> None:
        """Every owner hears at once. What had only waited may be tried again; a driver that died
        has already told those it knew a better reason, which is the one that counts."""
        self._view.schedule = None
        leased = {lease.ticket.request for lease in self._schedule.leases()}
        entries, self._entries = self._entries, {}
        for request, entry in entries.items():
            entry.monitor.cancel()
            error = (
                HostLost("its scheduler ended")
                if request in leased
                else EngineUnavailable(retry_after_s=1.0)
            )
            _tell(entry.owner, GenerationLost(request=request, error=error))
        self._telemetry.requests_in_flight(self._model, running=0, waiting=0)

    def _submit(self, submit: Submit) -> None:
        tickets = [
            Ticket(
                request=generation.request,
                turn=submit.turn,
                prompt_tokens=len(generation.prompt),
                max_tokens=generation.max_tokens,
                queued_at=submit.since,
            )
            for generation in submit.generations
        ]
        bounds = self._bounds()
        if self._is_new:  # what the free slots will take at once doesn't wait
            bounds = replace(bounds, max_requests=bounds.max_requests + self._schedule.slots)
        self._schedule.bounds = bounds
        try:
            self._schedule.submit(*tickets)
        except (QueueFull, ContextLengthExceeded) as error:
            submit.reply.fail(error)
            return
        faults.maybe(Site.SCHEDULER_SUBMIT)
        for generation in submit.generations:
            self._entries[generation.request] = _Entry(
                generation=generation,
                owner=submit.owner,
                monitor=submit.owner.monitor(partial(self._owner_ended, generation.request)),
            )
        submit.reply.send(None)

    def _owner_ended(self, request: EngineRequest, down: Down) -> None:
        # One that ended in order has withdrawn what it no longer wanted; its last tokens may be
        # out before the engine's Released, and need no abort.
        if down.exit is None or is_abnormal(down.exit):
            self._me.ref.tell_system(OwnerDown(request=request))

    def _begin(self, lease: Lease) -> None:
        faults.maybe(Site.SCHEDULER_GRANT)
        ticket = lease.ticket
        entry = self._entries[ticket.request]
        generation = entry.generation
        admit = Admit(
            request=ticket.request,
            slot=lease.slot,
            prompt=generation.prompt,
            max_tokens=generation.max_tokens,
            sampling=generation.sampling,
            stop=list(generation.stop),
            salt=generation.salt,
            messages=generation.messages,
            affinity=generation.affinity,
        )
        self._telemetry.queue_left(self._model, lease.granted_at - ticket.queued_at)
        self._telemetry.prompt_admitted(self._model, ticket.prompt_tokens)
        self._driver.tell(Begin(host=self._host, admit=admit, owner=entry.owner))

    def _withdraw(self, withdraw: Withdraw) -> None:
        for request in withdraw.tokens_seen:
            match self._schedule.cancel(request):
                case Ticket():
                    self._forget(request)
                case Lease() as lease:
                    self._withdrawn[request] = withdraw
                    self._driver.tell(Abort(request=request, slot=lease.slot))
                case None:
                    pass

    def _owner_down(self, down: OwnerDown) -> None:
        """A crashed owner withdrew nothing, or not everything."""
        self._withdraw_unseen(down.request, CancelCause.OWNER_LOST)

    def _withdraw_unseen(self, request: EngineRequest, cause: CancelCause) -> None:
        """Without its owner's word: what has been generated is what the driver has heard of."""
        self._withdraw(
            Withdraw(
                cause=cause,
                at=trio.current_time(),
                tokens_seen={request: self._status.tokens.get(request, 0)},
            )
        )

    def _released(self, message: SlotReleased) -> None:
        faults.maybe(Site.SCHEDULER_RELEASE)
        request = message.released.request
        lease = self._schedule.release(request, message.at)
        self._me.save(self._schedule.learned())
        self._forget(request)
        withdraw = self._withdrawn.pop(request, None)
        if lease is None or withdraw is None:
            return
        tokens_after = message.released.tokens - withdraw.tokens_seen[request]
        seconds = message.at - withdraw.at
        if withdraw.cause is CancelCause.DISCONNECT:
            self._telemetry.released_after_disconnect(seconds, tokens_after)
        log.info(
            "lease_cancelled",
            request_id=lease.ticket.turn,
            model=self._model,
            slot=lease.slot,
            cause=withdraw.cause.value,
            release_s=round(seconds, 4),
            tokens_after=tokens_after,
            # CLOCK_MONOTONIC, so that a client on this machine can compare it with its own.
            released_at=round(time.monotonic() - (trio.current_time() - message.at), 4),
        )

    def _sweep(self) -> None:
        self._is_new = False
        now = trio.current_time()
        self._schedule.bounds = self._bounds()
        for ticket, error in self._schedule.expire(now):
            owner = self._entries[ticket.request].owner
            self._forget(ticket.request)
            _tell(owner, GenerationLost(request=ticket.request, error=error))
        deadline_s = self._turn_deadline_s()
        for lease in self._schedule.leases():
            if lease.releasing or now - lease.granted_at < deadline_s:
                continue
            request = lease.ticket.request
            log.warning("turn_overdue", request_id=lease.ticket.turn, slot=lease.slot)
            overdue = TurnInterrupted(f"it took longer than {deadline_s:g} s")
            _tell(self._entries[request].owner, GenerationLost(request=request, error=overdue))
            self._withdraw_unseen(request, CancelCause.DEADLINE)

    async def _tick(self, me: Ref[SchedulerMessage]) -> None:
        while True:
            await trio.sleep(_SWEEP_S)
            me.tell_system(Sweep())

    def _forget(self, request: EngineRequest) -> None:
        entry = self._entries.pop(request, None)
        if entry is not None:
            entry.monitor.cancel()


def _capacity(capabilities: Capabilities) -> Capacity:
    return Capacity(
        slots=capabilities.slots,
        kv_blocks=capabilities.kv_blocks,
        block_size=capabilities.block_size,
    )


def _tell(owner: Ref[GenerationNews], news: GenerationNews) -> None:
    # On the system lane, which never refuses: these are rare, and the last the owner hears.
    owner.tell_system(news)
