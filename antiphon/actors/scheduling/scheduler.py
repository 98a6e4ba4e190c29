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
    FirstToken,
    GenerationLost,
    GenerationNews,
    PauseSlot,
    ResumeSlot,
    SlotReleased,
    TakeOver,
)
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.monitor import Down, Monitor
from antiphon.actors.ref import Ref
from antiphon.actors.scheduling.admitting import admit_of, capacity_of, is_patient, is_resumable
from antiphon.actors.scheduling.messages import (
    Generation,
    OwnerDown,
    SchedulerMessage,
    Submit,
    Sweep,
    Withdraw,
)
from antiphon.actors.scheduling.pool_forecast import PoolForecast
from antiphon.actors.scheduling.schedule import (
    LaneLoad,
    Lease,
    Policy,
    Schedule,
    Ticket,
    learned_from,
)
from antiphon.errors import (
    AntiphonError,
    ContextLengthExceeded,
    EngineUnavailable,
    HostLost,
    QueueFull,
    TurnInterrupted,
)
from antiphon.events import Abort, CancelCause, EndReason
from antiphon.fault_plan import Site
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.moments import Freed, Granted, Paused, Queued
from antiphon.supervision.exits import is_abnormal
from antiphon.telemetry import Telemetry
from antiphon.workload import WorkloadClass

log = structlog.get_logger(__name__)

_TAKE_OVER_S = 5.0
"""An engine empties within a step; the supervisor would wait for twice this."""
_BY_ITSELF = frozenset({EndReason.STOP, EndReason.LENGTH})
_NO_SLOT = SlotIndex(0)
"""Of what is paused, the slot in an Abort is of no account."""
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
    """Its driver is ready before it starts, and a new driver means a new scheduler, since leases on
    a dead host mean nothing. It grants nothing while `status` says that the engine is lost: what
    has only waited may be tried again. `policy` and `turn_deadline_s` are asked for when they
    matter, since an operator may change them."""

    def __init__(
        self,
        driver: Ref[DriverMessage],
        status: EngineStatus,
        view: ScheduleView,
        forecast: PoolForecast,
        telemetry: Telemetry,
        *,
        policy: Callable[[], Policy],
        turn_deadline_s: Callable[[], float],
    ) -> None:
        self._driver = driver
        self._status = status
        self._view = view
        self._forecast = forecast
        self._telemetry = telemetry
        self._model = status.model
        self._policy = policy
        self._turn_deadline_s = turn_deadline_s
        self._schedule: Schedule
        self._me: ActorContext[SchedulerMessage]
        self._host = 0
        self._pausable = False
        self._is_new = True
        self._entries: dict[EngineRequest, _Entry] = {}
        self._kept: set[EngineRequest] = set()
        """Paused: the host keeps them, without a slot."""
        self._withdrawn: dict[EngineRequest, Withdraw] = {}
        self._told: dict[WorkloadClass, LaneLoad] = {}

    async def start(self, me: ActorContext[SchedulerMessage]) -> None:
        """Take the engine over, emptied of what a former scheduler had running in it."""
        self._me = me
        engine: Engine = await self._driver.ask(
            lambda reply: TakeOver(reply=reply), deadline_s=_TAKE_OVER_S
        )
        self._host = engine.host
        self._pausable = engine.capabilities.pausable
        capacity = capacity_of(engine.capabilities)
        self._schedule = Schedule(capacity, self._policy(), learned_from(me.handoff))
        self._view.schedule = self._schedule
        self._forecast.started(capacity)
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
            case FirstToken():
                self._schedule.first_token(message.request, message.at)
                self._forecast.first_token(message.request, message.at)
            case OwnerDown():
                self._owner_down(message)
            case Sweep():
                self._sweep()
            case _:
                assert_never(message)
        self._is_new = self._is_new and self._me.backlog > 0
        if self._status.ready and not self._is_new:
            self._schedule_now()
        self._tell_load()

    def terminate(self) -> None:
        """Every owner hears at once. What had only waited may be tried again; a driver that died
        has already told those it knew a better reason, which is the one that counts."""
        self._view.schedule = None
        begun = {lease.ticket.request for lease in self._schedule.leases()} | self._kept
        entries, self._entries = self._entries, {}
        for request, entry in entries.items():
            entry.monitor.cancel()
            error = (
                HostLost("its scheduler ended")
                if request in begun
                else EngineUnavailable(retry_after_s=1.0)
            )
            _tell(entry.owner, GenerationLost(request=request, error=error))
        self._telemetry.requests_in_flight(self._model, running=0, waiting=0)
        for lane in WorkloadClass:
            self._telemetry.lane_in_flight(self._model, lane, running=0, waiting=0, tokens=0)

    def _schedule_now(self) -> None:
        schedule, now = self._schedule, trio.current_time()
        if schedule.has_waiting:
            self._forecast.account(schedule)
            for lease in schedule.grant(now):
                self._begin(lease)
            for lease in schedule.preempt(now):
                self._driver.tell(PauseSlot(request=lease.ticket.request, slot=lease.slot))

    def _tell_load(self) -> None:
        load = self._schedule.load()
        self._telemetry.requests_in_flight(self._model, running=load.running, waiting=load.waiting)
        for lane, figures in load.lanes.items():
            if self._told.get(lane) != figures:
                self._told[lane] = figures
                self._telemetry.lane_in_flight(
                    self._model,
                    lane,
                    running=figures.running,
                    waiting=figures.waiting,
                    tokens=figures.waiting_tokens,
                )

    def _submit(self, submit: Submit) -> None:
        tickets = [
            Ticket(
                request=generation.request,
                turn=submit.turn,
                prompt_tokens=len(generation.prompt),
                max_tokens=generation.max_tokens,
                queued_at=submit.since,
                workload=submit.workload,
                resumable=self._pausable and is_resumable(generation.sampling),
                deadline_s=submit.deadline_s,
            )
            for generation in submit.generations
        ]
        load = self._schedule.load()
        policy = self._policy()
        if self._is_new:  # what the free slots will take at once doesn't wait
            most = policy.bounds.max_requests + self._schedule.slots
            policy = replace(policy, bounds=replace(policy.bounds, max_requests=most))
        self._schedule.policy = policy
        try:
            refused = self._schedule.submit(*tickets)
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
        if submit.prediction is not None:
            self._forecast.submitted(tickets[0].request, submit.prediction)
        submit.reply.send(None)
        queued = Queued(
            lane=submit.workload.lane,
            generations=len(tickets),
            slots=self._schedule.slots,
            running=load.running,
            waiting=load.waiting,
        )
        self._telemetry.turn_noted(submit.turn, queued)
        for each in refused:
            self._lose(each.ticket.request, each.error)

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
        patient = is_patient(lease, crowds=self._schedule.crowds(ticket.workload))
        self._forecast.begun(lease, generation.prompt, generation.salt, patient=patient)
        granted = Granted(
            generation=ticket.request,
            slot=lease.slot,
            waited_s=lease.granted_at - ticket.queued_at,
            resumed=lease.resumed,
        )
        self._telemetry.turn_noted(ticket.turn, granted)
        if lease.resumed:
            self._kept.discard(ticket.request)
            resume = ResumeSlot(host=self._host, request=ticket.request, slot=lease.slot)
            self._driver.tell(resume)
            return
        admit = admit_of(generation, lease, patient=patient)
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
        released = message.released
        request = released.request
        self._schedule.gained(request, released.tokens)
        self._forecast.ended(request, released.tokens, whole=released.reason in _BY_ITSELF)
        paused = released.reason is EndReason.PAUSED
        if paused and (ticket := self._schedule.paused(request, message.at)) is not None:
            self._kept.add(request)
            self._forecast.forget(request)
            self._telemetry.generation_paused(self._model)
            moment = Paused(generation=request, tokens=released.tokens)
            self._telemetry.turn_noted(ticket.turn, moment)
            return
        lease = self._schedule.release(request, message.at)
        self._me.save(self._schedule.learned())
        self._forget(request)
        withdraw = self._withdrawn.pop(request, None)
        if lease is None:
            return
        turn, slot = lease.ticket.turn, lease.slot
        freed = Freed(generation=request, slot=slot, reason=released.reason, tokens=released.tokens)
        self._telemetry.turn_noted(turn, freed)
        if withdraw is None:
            return
        tokens_after = message.released.tokens - withdraw.tokens_seen[request]
        seconds = message.at - withdraw.at
        if withdraw.cause is CancelCause.DISCONNECT:
            self._telemetry.released_after_disconnect(seconds, tokens_after)
        log.info(
            "lease_cancelled",
            request_id=turn,
            model=self._model,
            slot=slot,
            cause=withdraw.cause.value,
            release_s=round(seconds, 4),
            tokens_after=tokens_after,
            # CLOCK_MONOTONIC, so that a client on this machine can compare it with its own.
            released_at=round(time.monotonic() - (trio.current_time() - message.at), 4),
        )

    def _sweep(self) -> None:
        self._is_new = False
        now = trio.current_time()
        self._schedule.policy = self._policy()
        for ticket, error in self._schedule.expire(now):
            self._lose(ticket.request, error)
        deadline_s = self._turn_deadline_s()
        for lease in self._schedule.leases():
            if lease.releasing or lease.held_s + now - lease.granted_at < deadline_s:
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

    def _lose(self, request: EngineRequest, error: AntiphonError) -> None:
        """It has waited in vain."""
        owner = self._entries[request].owner
        self._forget(request)
        _tell(owner, GenerationLost(request=request, error=error))

    def _forget(self, request: EngineRequest) -> None:
        entry = self._entries.pop(request, None)
        if entry is not None:
            entry.monitor.cancel()
        self._forecast.forget(request)
        if request in self._kept:
            self._kept.discard(request)
            self._driver.tell(Abort(request=request, slot=_NO_SLOT))


def _tell(owner: Ref[GenerationNews], news: GenerationNews) -> None:
    # On the system lane, which never refuses: these are rare, and the last the owner hears.
    owner.tell_system(news)
