"""Whose turn it is: the rules by which lanes share slots, over who waits and who holds what.

Shares first, but every fourth grant that passes over somebody who has aged goes to the oldest: so
nothing starves, and a deep backlog of old work still can't shut out what is new.
"""

from collections.abc import Iterator
from itertools import chain

from antiphon.actors.scheduling.claim import Claim
from antiphon.actors.scheduling.holdings import Held, Holdings
from antiphon.actors.scheduling.lanes import Lane
from antiphon.actors.scheduling.policy import AGED_EVERY, Policy, is_urgent
from antiphon.actors.scheduling.tenants import Tenant
from antiphon.actors.scheduling.waiting import Waiting
from antiphon.actors.scheduling.yielding import yielding
from antiphon.workload import Workload, WorkloadClass

_ROOMY = 16
"""With so many slots, a tenant may hold half of them while there are others: theirs don't wait for
one of its answers to end, and every step of the engine is the shorter for it."""


class Turns:
    """Decides; what it decides is done by the schedule."""

    def __init__(self, lanes: tuple[Lane, ...], holdings: Holdings, policy: Policy) -> None:
        self._lanes = lanes
        self._by_name = {lane.name: lane for lane in lanes}
        self._urgent = tuple(lane for lane in lanes if lane.urgent)
        self._holdings = holdings
        self._slots = holdings.capacity.slots
        self._spare = self._slots // 2 if self._slots >= _ROOMY else 0
        self._passes = 0
        self._service = 0.0
        """Where a lane begins that comes back while no other waits."""
        self.claim = Claim(holdings)
        self._stuck = False
        """Nothing that waits may begin, until something changes."""
        self.follow(policy)

    def follow(self, policy: Policy) -> None:
        self.policy = policy
        self._fair = policy.fair
        self.others = self._slots - policy.reserve(self._slots)
        for lane in self._lanes:
            lane.weight = policy.weight(lane.name)
        self._stuck = False

    def join(self, waiting: Waiting, lane: Lane) -> None:
        if not lane.waiting:
            lane.service = max(lane.service, self._least_service())
        lane.add(waiting)
        if waiting.blocks <= self._holdings.free_blocks:
            self._stuck = False

    def leave(self, waiting: Waiting, lane: Lane) -> Tenant:
        self._service = max(self._service, self._least_service())
        self.claim.drop(waiting)
        self._stuck = False
        return lane.remove(waiting)

    def changed(self) -> None:
        """A slot is free, or a prompt is through: something may begin."""
        self._stuck = False

    def next(self, now: float) -> tuple[Waiting, bool] | None:
        """What is to have a free slot, and whether it must be left in it for a while."""
        if self._stuck:
            return None
        turn = self._next(now)
        self._stuck = turn is None
        return turn

    def _next(self, now: float) -> tuple[Waiting, bool] | None:
        if not self._fair:
            first = self._oldest()
            fits = first is not None and first.blocks <= self._holdings.free_blocks
            return (first, False) if first is not None and fits else None
        claim = self.claim.of
        if claim is not None and self._may_have_slot(claim) and self._fits(claim):
            return claim, True
        aged = self._aged(now)
        if aged is not None and not self._fits(aged):
            self.claim.make(aged)
            aged = None
        if aged is not None and self._passes >= AGED_EVERY - 1:
            self._passes = 0
            return aged, True
        waiting = self._by_share()
        if waiting is None:
            return None if aged is None else (aged, True)
        if aged is None or waiting is aged:
            self._passes = 0
        else:
            self._passes += 1
        return waiting, waiting.paused

    def returned(self, held: Held) -> None:
        self.claim.returned(held)
        self._stuck = False

    def yielding(self, now: float) -> Iterator[Held]:
        """Whose slots to ask back for the urgent tickets that wait."""
        if not self._fair or not self.policy.scheduling.preempt:
            return iter(())
        if not self._holdings.yielding or not self._is_urgent():
            return iter(())
        urgent = chain.from_iterable(lane.first(self._slots) for lane in self._urgent)
        return yielding(urgent, self._holdings, self.claim, now)

    def fits_now(self, lane: Lane, count: int, blocks: int) -> bool:
        holdings = self._holdings
        if not self._fair:
            return count <= holdings.free_slots and blocks <= holdings.free_blocks
        room = self.others - holdings.others
        slots = holdings.free_slots if lane.urgent else min(holdings.free_slots, room)
        return count <= slots and blocks <= self.claim.free_blocks

    def queued(self, lane: Lane) -> tuple[int, int]:
        """Requests and tokens that count against the bounds: those that had a slot don't."""
        if self._fair:
            return len(lane.waiting) - lane.paused, lane.tokens - lane.paused_tokens
        lanes = self._lanes
        return (
            sum(len(each.waiting) - each.paused for each in lanes),
            sum(each.tokens - each.paused_tokens for each in lanes),
        )

    def _by_share(self) -> Waiting | None:
        lanes = [lane for lane in self._lanes if lane.waiting]
        if len(lanes) > 1:
            lanes.sort(key=_service)
        urgent = self._is_urgent()
        full = self._holdings.others >= self.others
        for lane in lanes:
            if not lane.urgent and full:
                continue
            if urgent and self.gives_way(lane):
                continue
            if (waiting := lane.choose(self._may_begin)) is not None:
                return waiting
        return None

    def _is_urgent(self) -> bool:
        """Whether somebody urgent waits."""
        return any(lane.waiting for lane in self._urgent)

    def _oldest(self) -> Waiting | None:
        found = [first for lane in self._lanes if (first := lane.first_come()) is not None]
        return min(found, key=_age) if found else None

    def _aged(self, now: float) -> Waiting | None:
        """The oldest of those that have aged and may have a slot; not the claim."""
        before = now - self.policy.scheduling.aging_s
        best = None
        for lane in self._lanes:
            if not lane.waiting or (oldest := lane.oldest()) is None:
                continue
            if oldest.ticket.queued_at > before or oldest is self.claim.of:
                continue
            if (best is None or _age(oldest) < _age(best)) and self._may_have_slot(oldest):
                best = oldest
        return best

    def _may_have_slot(self, waiting: Waiting) -> bool:
        """As far as its kind goes."""
        if self._holdings.others >= self.others and not is_urgent(waiting.ticket.workload.lane):
            return False
        if self._holdings.free_slots <= self.spare_of(waiting.ticket.workload):
            return False
        return not (waiting.long and self.long_is_full())

    def _may_begin(self, waiting: Waiting) -> bool:
        # First what is cheap, and what most fail by where KV is short: then many are asked.
        if not self._fits(waiting) or (waiting.long and self.long_is_full()):
            return False
        return self._holdings.free_slots > self.spare_of(waiting.ticket.workload)

    def gives_way(self, lane: Lane) -> bool:
        """Whether it gets nothing while somebody urgent waits: it would only be paused again."""
        return self.policy.scheduling.preempt and lane.name is WorkloadClass.BACKGROUND

    def spare_of(self, workload: Workload) -> int:
        """Slots that are kept for other tenants than this one."""
        if not self._spare or self._holdings.free_slots > self._spare:
            return 0
        return self._spare if self.crowds(workload) else 0

    def crowds(self, workload: Workload) -> bool:
        """Whether its tenant holds half of all slots while there are others."""
        return self._fair and 2 * self._by_name[workload.lane].running_of(workload) >= self._slots

    def long_is_full(self) -> bool:
        return self._holdings.long_prefills >= self.policy.scheduling.long_prefills

    def _fits(self, waiting: Waiting) -> bool:
        return waiting.blocks <= self._holdings.free_blocks and not self.claim.bars(waiting)

    def _least_service(self) -> float:
        return min((lane.service for lane in self._lanes if lane.waiting), default=self._service)


def _service(lane: Lane) -> float:
    return lane.service


def _age(waiting: Waiting) -> tuple[float, int]:
    return waiting.ticket.queued_at, waiting.order
