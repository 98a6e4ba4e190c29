"""The pure core of scheduling: who waits, who holds which slot, how many KV blocks are promised.

Keeps the rule that at most `slots` requests are inside an engine and that no request is inside one
without its KV blocks reserved. Knows no Trio, no mailbox and no engine; every method takes `now`.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from antiphon.errors import ContextLengthExceeded, QueueExpired, QueueFull
from antiphon.ids import EngineRequest, RequestId, SlotIndex

_MEAN_LEASE_START_S = 2.0
_MEAN_LEASE_WEIGHT = 0.1
_LONGEST_MEAN_LEASE_S = 86_400.0
_RETRY_MIN_S = 1.0
_RETRY_MAX_S = 60.0
"""SDKs ignore longer advice (openai-node above 60 s, openai-python above 120 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the engine offers: `kv_blocks` of `block_size` tokens, shared by `slots` generations."""

    slots: int
    kv_blocks: int
    block_size: int

    def blocks_for(self, tokens: int) -> int:
        return math.ceil(tokens / self.block_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBounds:
    """How much may wait: requests, their prompt plus longest answer in tokens, and seconds."""

    max_requests: int
    max_tokens: int
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a schedule has found out by itself and the next one would have to learn anew."""

    mean_lease_s: float = _MEAN_LEASE_START_S
    """How long a slot is held: what retry advice is made of."""


def learned_from(handoff: object) -> Learned:
    """What a former scheduler left, if it is that and in its right mind; else what nobody knows."""
    match handoff:
        case Learned(mean_lease_s=float(mean)) if 0 < mean <= _LONGEST_MEAN_LEASE_S:
            return handoff
        case _:
            return Learned()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """One generation that wants a slot; its prompt and its longest answer are in tokens."""

    request: EngineRequest
    turn: RequestId
    prompt_tokens: int
    max_tokens: int
    queued_at: float

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.max_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A ticket's hold on a slot and on KV blocks, from the grant until the engine's Released."""

    ticket: Ticket
    slot: SlotIndex
    blocks: int
    granted_at: float
    releasing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The figures of one moment."""

    running: int
    waiting: int
    waiting_tokens: int
    reserved_blocks: int


class Schedule:
    """First in, first out over slots and KV blocks; the head of the queue is never overtaken, so
    that a long request can't starve. `bounds` may be replaced at any time: they are for what comes,
    and for how long what waits may still wait."""

    def __init__(
        self, capacity: Capacity, bounds: QueueBounds, learned: Learned = Learned()
    ) -> None:
        self.bounds = bounds
        self._capacity = capacity
        self._queue: OrderedDict[EngineRequest, Ticket] = OrderedDict()
        self._queue_tokens = 0
        self._leases: dict[EngineRequest, Lease] = {}
        self._free_slots = list(range(capacity.slots - 1, -1, -1))
        self._free_blocks = capacity.kv_blocks
        self._mean_lease_s = learned.mean_lease_s

    def submit(self, *tickets: Ticket) -> None:
        """Queue the tickets of one turn, all or none, by when it came: one that had waited for a
        former engine is not behind those that came after it.

        Raises QueueFull when too much waits, ContextLengthExceeded when one could never fit.
        """
        pool_tokens = self._capacity.kv_blocks * self._capacity.block_size
        for ticket in tickets:
            if ticket.tokens > pool_tokens:
                raise ContextLengthExceeded(
                    window=pool_tokens,
                    prompt_tokens=ticket.prompt_tokens,
                    max_tokens=ticket.max_tokens,
                )
        # What a free slot takes at once never waits, so it doesn't count against the queue.
        if self._queue or not self._fits_now(tickets):
            self._check_bounds(tickets)
        newest = next(reversed(self._queue.values())).queued_at if self._queue else -math.inf
        for ticket in tickets:
            self._queue[ticket.request] = ticket
            self._queue_tokens += ticket.tokens
        if any(ticket.queued_at < newest for ticket in tickets):
            in_order = sorted(self._queue.items(), key=lambda item: item[1].queued_at)
            self._queue = OrderedDict(in_order)

    def grant(self, now: float) -> Iterator[Lease]:
        """Hand free slots to the head of the queue for as long as it fits."""
        while self._queue and self._free_slots:
            ticket = next(iter(self._queue.values()))
            blocks = self._capacity.blocks_for(ticket.tokens)
            if blocks > self._free_blocks:
                return
            self._unqueue(ticket.request)
            self._free_blocks -= blocks
            lease = Lease(
                ticket=ticket,
                slot=SlotIndex(self._free_slots.pop()),
                blocks=blocks,
                granted_at=now,
            )
            self._leases[ticket.request] = lease
            yield lease

    def cancel(self, request: EngineRequest) -> Ticket | Lease | None:
        """Forget a waiting ticket and return it, or mark a lease as releasing and return that: the
        engine must be told. None when there is nothing to give back. Idempotent."""
        if request in self._queue:
            return self._unqueue(request)
        lease = self._leases.get(request)
        if lease is None or lease.releasing:
            return None
        releasing = replace(lease, releasing=True)
        self._leases[request] = releasing
        return releasing

    def release(self, request: EngineRequest, now: float) -> Lease | None:
        """The engine gave the slot back; None for a request that holds none."""
        lease = self._leases.pop(request, None)
        if lease is None:
            return None
        self._free_slots.append(lease.slot)
        self._free_blocks += lease.blocks
        held_s = now - lease.granted_at
        self._mean_lease_s += _MEAN_LEASE_WEIGHT * (held_s - self._mean_lease_s)
        return lease

    def expire(self, now: float) -> Iterator[tuple[Ticket, QueueExpired]]:
        """Drop every ticket that waited to its deadline."""
        while self._queue:
            ticket = next(iter(self._queue.values()))
            waited_s = now - ticket.queued_at
            if waited_s < self.bounds.deadline_s:
                return
            self._unqueue(ticket.request)
            yield ticket, QueueExpired(waited_s=waited_s, retry_after_s=self.retry_after_s())

    def retry_after_s(self) -> float:
        """When what waits now should be gone, by the recent mean time a slot is held."""
        drain_s = len(self._queue) * self._mean_lease_s / self._capacity.slots
        return min(max(drain_s, _RETRY_MIN_S), _RETRY_MAX_S)

    def learned(self) -> Learned:
        return Learned(mean_lease_s=self._mean_lease_s)

    def load(self) -> Load:
        return Load(
            running=len(self._leases),
            waiting=len(self._queue),
            waiting_tokens=self._queue_tokens,
            reserved_blocks=self._capacity.kv_blocks - self._free_blocks,
        )

    def leases(self) -> tuple[Lease, ...]:
        return tuple(self._leases.values())

    @property
    def slots(self) -> int:
        return self._capacity.slots

    def _fits_now(self, tickets: tuple[Ticket, ...]) -> bool:
        blocks = sum(self._capacity.blocks_for(ticket.tokens) for ticket in tickets)
        return len(tickets) <= len(self._free_slots) and blocks <= self._free_blocks

    def _check_bounds(self, tickets: tuple[Ticket, ...]) -> None:
        if len(self._queue) + len(tickets) > self.bounds.max_requests:
            raise QueueFull(reason="too many requests wait", retry_after_s=self.retry_after_s())
        tokens = sum(ticket.tokens for ticket in tickets)
        # One request larger than the whole bound may still wait alone.
        if self._queue and self._queue_tokens + tokens > self.bounds.max_tokens:
            raise QueueFull(reason="too many tokens wait", retry_after_s=self.retry_after_s())

    def _unqueue(self, request: EngineRequest) -> Ticket:
        ticket = self._queue.pop(request)
        self._queue_tokens -= ticket.tokens
        return ticket
