"""The pure core of scheduling: who waits, who holds which slot, how many KV blocks are promised.

Keeps the rule that at most `slots` requests are inside an engine and that no request is inside one
without its KV blocks reserved. Knows no Trio, no mailbox and no engine; every method takes `now`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.actors.scheduling.holdings import Held, Holdings
from antiphon.actors.scheduling.lanes import Lane
from antiphon.actors.scheduling.outlook import Outlook
from antiphon.actors.scheduling.policy import Policy, QueueBounds
from antiphon.actors.scheduling.prospects import Prospects
from antiphon.actors.scheduling.tenants import ANSWER_WEIGHT, PROMPT_WEIGHT
from antiphon.actors.scheduling.tickets import (
    LANES,
    Capacity,
    LaneLoad,
    Learned,
    Lease,
    Load,
    Room,
    Ticket,
    learned_from,
)
from antiphon.actors.scheduling.turns import Turns
from antiphon.actors.scheduling.waiting import Waiting
from antiphon.errors import ContextLengthExceeded, QueueExpired, QueueFull
from antiphon.ids import EngineRequest
from antiphon.workload import Workload, WorkloadClass

__all__ = [
    "Capacity",
    "LaneLoad",
    "Learned",
    "Lease",
    "Load",
    "Outlook",
    "Policy",
    "QueueBounds",
    "Refused",
    "Schedule",
    "Ticket",
    "learned_from",
]

_MEAN_LEASE_WEIGHT = 0.1
_RETRY_MIN_S = 1.0
_RETRY_MAX_S = 60.0
"""SDKs ignore longer advice (openai-node above 60 s, openai-python above 120 s)."""
_FORGET_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A ticket that has waited in vain."""

    ticket: Ticket
    error: QueueFull


class Schedule:
    """Lanes over slots and KV blocks. `policy` may be replaced at any time: it is for what comes,
    and for how what waits is served from now on."""

    def __init__(self, capacity: Capacity, policy: Policy, learned: Learned = Learned()) -> None:
        self._capacity = capacity
        self._pool_tokens = capacity.kv_blocks * capacity.block_size
        self._holdings = Holdings(capacity)
        self._lanes = {name: Lane(name, learned.of(name)) for name in LANES}
        self._all = tuple(self._lanes.values())
        self._turns = Turns(self._all, self._holdings, policy)
        self._prospects = Prospects(self._all, self._holdings, self._turns)
        self._mean_lease_s = learned.mean_lease_s
        self._order = 0
        self._forgot_at: float | None = None

    @property
    def policy(self) -> Policy:
        return self._turns.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        if policy != self._turns.policy:
            self._turns.follow(policy)

    def submit(self, *tickets: Ticket) -> tuple[Refused, ...]:
        """Queue the tickets of one turn, of one workload, all or none, by when it came: one that
        had waited for a former engine is not behind those that came after it. Returns those whose
        places they took.

        Raises QueueFull when too much waits, ContextLengthExceeded when one could never fit.
        """
        for ticket in tickets:
            if ticket.tokens > self._pool_tokens:
                raise ContextLengthExceeded(
                    window=self._pool_tokens,
                    prompt_tokens=ticket.prompt_tokens,
                    max_tokens=ticket.max_tokens,
                )
        refused = self._make_room(tickets) if tickets else ()
        for ticket in tickets:
            self._order += 1
            waiting = Waiting(
                ticket,
                self._capacity.blocks_for(ticket.tokens),
                self._order,
                ticket.queued_at,
                self.policy.is_long(ticket),
            )
            self._turns.join(waiting, self._lanes[ticket.workload.lane])
        return refused

    def grant(self, now: float) -> Iterator[Lease]:
        """Hand out free slots for as long as something that may have one fits."""
        turns, holdings = self._turns, self._holdings
        while holdings.free_slots and (turn := turns.next(now)) is not None:
            waiting, settled = turn
            lane = self._lanes[waiting.ticket.workload.lane]
            tenant = turns.leave(waiting, lane)
            held = holdings.take(
                waiting, lane, tenant, now, settled=settled, passed=turns.claim.passed_by(waiting)
            )
            if not waiting.paused:
                held.charge(PROMPT_WEIGHT * waiting.ticket.prompt_tokens)
            yield held.lease

    def preempt(self, now: float) -> Iterator[Lease]:
        """Leases to be paused now, for the urgent tickets that the last grant left waiting. Each
        is named once; what becomes of it says `paused` or `release`."""
        for held in self._turns.yielding(now):
            self._holdings.ask_back(held, pause=True)
            yield held.lease

    def first_token(self, request: EngineRequest, now: float) -> None:
        held = self._holdings.by_request.get(request)
        if held is not None and self._holdings.begun(held):
            held.lane.observe_prefill(now - held.lease.granted_at)
            self._turns.changed()

    def gained(self, request: EngineRequest, tokens: int) -> None:
        """It has so many tokens by now."""
        held = self._holdings.by_request.get(request)
        if held is not None and tokens > held.tokens:
            held.charge(ANSWER_WEIGHT * (tokens - held.tokens))
            if self._holdings.gained(held, tokens):
                self._turns.changed()

    def prefilled(self, tokens: int) -> None:
        """The engine has computed so many more tokens of prompts."""
        self._holdings.prefilled(tokens)

    def paused(self, request: EngineRequest, now: float) -> Ticket | None:
        """The engine gave the slot back and keeps what was generated: the ticket waits again, as
        old as it is. None for one that was cancelled meanwhile: it is to be released."""
        held = self._holdings.by_request.get(request)
        if held is None or held.releasing:
            return None
        self._give_back(request)
        former = held.waiting
        waiting = Waiting(
            former.ticket,
            former.blocks,
            former.order,
            since=now,
            long=former.long,
            paused=True,
            tokens=held.tokens,
            held_s=former.held_s + now - held.lease.granted_at,
        )
        self._turns.join(waiting, held.lane)
        return former.ticket

    def cancel(self, request: EngineRequest) -> Ticket | Lease | None:
        """Forget a waiting ticket and return it, or mark a lease as releasing and return that: the
        engine must be told. None when there is nothing to give back. Idempotent."""
        for lane in self._all:
            if (waiting := lane.waiting.get(request)) is not None:
                self._turns.leave(waiting, lane)
                return waiting.ticket
        held = self._holdings.by_request.get(request)
        if held is None or held.releasing:
            return None
        self._holdings.ask_back(held, pause=False)
        return held.lease

    def release(self, request: EngineRequest, now: float) -> Lease | None:
        """The engine gave the slot back; None for a request that holds none."""
        held = self._give_back(request)
        if held is None:
            return None
        self._over(held, now)
        return held.lease

    def expire(self, now: float) -> Iterator[tuple[Ticket, QueueExpired]]:
        """Drop every ticket that waited to its deadline; of one that was paused, since then."""
        for lane in self._all:
            for waiting in lane.overdue(now, self.policy.deadline_s(lane.name)):
                retry_after_s = self.retry_after_s(lane.name)
                self._turns.leave(waiting, lane)
                error = QueueExpired(waited_s=now - waiting.since, retry_after_s=retry_after_s)
                yield waiting.ticket, error
        if self._forgot_at is None or now - self._forgot_at >= _FORGET_S:
            self._forgot_at = now
            for lane in self._all:
                lane.forget()
            self._turns.changed()

    def retry_after_s(self, lane: WorkloadClass = WorkloadClass.INTERACTIVE) -> float:
        """When what waits now should be gone, by the recent mean time a slot is held and by the
        share of slots that the lane has now."""
        drain_s = self._prospects.drain_s(self._lanes[lane], self._mean_lease_s)
        return min(max(drain_s, _RETRY_MIN_S), _RETRY_MAX_S)

    def learned(self) -> Learned:
        return Learned(
            mean_lease_s=self._mean_lease_s,
            lanes=tuple(lane.mean_lease_s for lane in self._all),
        )

    def load(self) -> Load:
        lanes = {lane.name: lane.load() for lane in self._all}
        return Load(
            running=len(self._holdings.by_request),
            waiting=sum(lane.waiting for lane in lanes.values()),
            waiting_tokens=sum(lane.waiting_tokens for lane in lanes.values()),
            reserved_blocks=self._capacity.kv_blocks - self._holdings.free_blocks,
            free_slots=self._holdings.free_slots,
            lanes=lanes,
        )

    def room(self) -> Room:
        blocks = self._capacity.kv_blocks
        return Room(
            slots=self._capacity.slots,
            free_slots=self._holdings.free_slots,
            reserved=1 - self._holdings.free_blocks / blocks if blocks else 0.0,
        )

    def outlook(self, workload: Workload, now: float) -> Outlook:
        """How things stand for one more ticket of that workload."""
        return self._prospects.outlook(workload, self._lanes[workload.lane], now)

    def crowds(self, workload: Workload) -> bool:
        """Whether its tenant holds half of all slots while there are others."""
        return self._turns.crowds(workload)

    @property
    def has_waiting(self) -> bool:
        return any(lane.waiting for lane in self._all)

    def leases(self) -> tuple[Lease, ...]:
        return tuple(held.lease for held in self._holdings.by_request.values())

    @property
    def context_tokens(self) -> int:
        """Prompts and answers so far of all that holds a slot."""
        return self._holdings.context_tokens

    @property
    def slots(self) -> int:
        return self._capacity.slots

    def _make_room(self, tickets: tuple[Ticket, ...]) -> tuple[Refused, ...]:
        """Raises QueueFull."""
        lane = self._lanes[tickets[0].workload.lane]
        queued, queued_tokens = self._turns.queued(lane)
        if not queued:
            # What a free slot takes at once never waits, so it doesn't count against the queue.
            blocks = sum(self._capacity.blocks_for(ticket.tokens) for ticket in tickets)
            if self._turns.fits_now(lane, len(tickets), blocks):
                return ()
        bounds = self.policy.bounds
        requests = queued + len(tickets) - bounds.max_requests
        # One request larger than the whole bound may still wait alone.
        tokens = sum(ticket.tokens for ticket in tickets) + queued_tokens - bounds.max_tokens
        if not queued:
            tokens = 0
        if requests <= 0 and tokens <= 0:
            return ()
        what = "requests" if requests > 0 else "tokens"
        full = QueueFull(
            reason=f"too many {what} wait", retry_after_s=self.retry_after_s(lane.name)
        )
        evicted: list[Waiting] = []

        def enough(waiting: Waiting) -> bool:
            nonlocal requests, tokens
            evicted.append(waiting)
            requests -= 1
            tokens -= waiting.ticket.tokens
            return requests <= 0 and (tokens <= 0 or len(evicted) == queued)

        if not self.policy.fair or not lane.evict(tickets[0], len(tickets), enough):
            raise full
        for waiting in evicted:
            self._turns.leave(waiting, lane)
        return tuple(Refused(ticket=waiting.ticket, error=full) for waiting in evicted)

    def _give_back(self, request: EngineRequest) -> Held | None:
        held = self._holdings.give_back(request)
        if held is not None:
            self._turns.returned(held)
        return held

    def _over(self, held: Held, now: float) -> None:
        held.lane.rest(held.lease.ticket, held.tenant)
        seconds = held.waiting.held_s + now - held.lease.granted_at
        held.lane.observe_lease(seconds)
        self._mean_lease_s += _MEAN_LEASE_WEIGHT * (seconds - self._mean_lease_s)
