"""Fair shares among the tenants of one lane at one priority: virtual token counters, after Sheng et
al., "Fairness in Serving Large Language Models" (OSDI 2024).

The tenant with the least service goes first; one that comes back is lifted to the least of those
that wait, so that nobody saves up. Within a tenant it is first come, first served.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from antiphon.actors.scheduling.waiting import Waiting, WaitingHeap
from antiphon.ids import EngineRequest

PROMPT_WEIGHT = 1.0
ANSWER_WEIGHT = 2.0
"""What a token costs, as the paper has it: one of an answer takes a share of a whole step."""
_TRIES = 6


@dataclass(slots=True, eq=False)
class Tenant:
    """`service` is what it has had, in weighted tokens. `fresh` are those of its tickets that never
    had a slot, the newest last."""

    name: str
    service: float = 0.0
    waiting: int = 0
    running: int = 0
    listed: bool = False
    queue: WaitingHeap = field(default_factory=WaitingHeap)
    fresh: dict[EngineRequest, Waiting] = field(default_factory=dict)


class Tenants:
    """Who waits in one lane at one priority."""

    def __init__(self) -> None:
        self.waiting = 0
        self.active = 0
        """Tenants that have something waiting."""
        self._tenants: dict[str, Tenant] = {}
        self._turns: list[tuple[float, int, Tenant]] = []
        self._turn = 0
        self._left: Tenant | None = None
        self._sizes: dict[int, dict[str, Tenant]] = {}
        self._most = 0
        self._idle: set[str] = set()
        self._long_idle: set[str] = set()

    @property
    def known(self) -> int:
        """Tenants that have or lately had something here."""
        return len(self._tenants)

    def get(self, name: str) -> Tenant | None:
        return self._tenants.get(name)

    def add(self, waiting: Waiting) -> None:
        ticket = waiting.ticket
        name = ticket.workload.tenant
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = Tenant(name)
        if not tenant.waiting:
            tenant.service = max(tenant.service, self._least_service())
            self._idle.discard(name)
            self._long_idle.discard(name)
            self.active += 1
        tenant.waiting += 1
        self.waiting += 1
        tenant.queue.push(ticket.queued_at, waiting, tenant.waiting)
        if not tenant.listed:
            self._list(tenant)
        if not waiting.paused:
            self._count(tenant, waiting)

    def remove(self, waiting: Waiting) -> Tenant:
        """It waits no more: granted, or given up."""
        waiting.gone = True
        tenant = self._tenants[waiting.ticket.workload.tenant]
        tenant.waiting -= 1
        self.waiting -= 1
        if not tenant.waiting:
            self.active -= 1
            self._left = tenant
            self.rest(tenant)
        self._uncount(tenant, waiting)
        return tenant

    def first(self) -> Waiting | None:
        """The oldest ticket of the tenant that is in turn."""
        tenant = self._in_turn()
        return None if tenant is None else tenant.queue.first()

    def another(self, may: Callable[[Waiting], bool]) -> Waiting | None:
        """Something that may be granted now, of the tenants that are soon in turn: what is first
        doesn't fit. They are where a heap has its least ones, about."""
        for _, _, tenant in self._turns[1 : 1 + _TRIES]:
            waiting = tenant.queue.first()
            if waiting is not None and may(waiting):
                return waiting
        return None

    def newest_of_the_most(self) -> tuple[Waiting, int] | None:
        """The newest ticket of a tenant that has the most waiting, and how many it has. Tickets
        that had a slot don't count: what they have gained would be lost."""
        if not self._most:
            return None
        tenant = next(reversed(self._sizes[self._most].values()))
        return next(reversed(tenant.fresh.values())), self._most

    def hide(self, waiting: Waiting) -> None:
        """It is to be given up, and doesn't count any more as what its tenant has waiting."""
        self._uncount(self._tenants[waiting.ticket.workload.tenant], waiting)

    def unhide(self, waiting: Waiting) -> None:
        self._count(self._tenants[waiting.ticket.workload.tenant], waiting)

    def rest(self, tenant: Tenant) -> None:
        """It may have nothing left here."""
        if not tenant.waiting and not tenant.running:
            self._idle.add(tenant.name)
            self._long_idle.discard(tenant.name)

    def forget(self) -> None:
        """Drop those that have been idle since the time before: neither credit nor debt is for
        ever, and nor are strangers' names."""
        for name in self._long_idle:
            if not self._tenants[name].running:  # what it had waiting may have been granted
                del self._tenants[name]
        self._idle, self._long_idle = set(), self._idle
        for _, _, tenant in self._turns:
            tenant.listed = tenant.waiting > 0
        self._turns = [turn for turn in self._turns if turn[2].listed]
        heapq.heapify(self._turns)

    def _in_turn(self) -> Tenant | None:
        turns = self._turns
        while turns:
            service, _, tenant = turns[0]
            if not tenant.waiting:
                heapq.heappop(turns)
                tenant.listed = False
            elif tenant.service > service:
                self._turn += 1
                heapq.heapreplace(turns, (tenant.service, self._turn, tenant))
            else:
                return tenant
        return None

    def _least_service(self) -> float:
        tenant = self._in_turn() or self._left
        return 0.0 if tenant is None else tenant.service

    def _list(self, tenant: Tenant) -> None:
        self._turn += 1
        heapq.heappush(self._turns, (tenant.service, self._turn, tenant))
        tenant.listed = True

    def _resize(self, tenant: Tenant, before: int, after: int) -> None:
        """Move it between the buckets by size."""
        if before:
            bucket = self._sizes[before]
            del bucket[tenant.name]
            if not bucket:
                del self._sizes[before]
        if after:
            self._sizes.setdefault(after, {})[tenant.name] = tenant
        if after > self._most or (before == self._most and before not in self._sizes):
            self._most = after

    def _count(self, tenant: Tenant, waiting: Waiting) -> None:
        before = len(tenant.fresh)
        tenant.fresh[waiting.ticket.request] = waiting
        self._resize(tenant, before, before + 1)

    def _uncount(self, tenant: Tenant, waiting: Waiting) -> None:
        before = len(tenant.fresh)
        if tenant.fresh.pop(waiting.ticket.request, None) is not None:
            self._resize(tenant, before, before - 1)
