"""One lane of a pool: who waits in it, in which order, and what it has had. Knows no slots."""

import math
from bisect import insort
from collections.abc import Callable, Iterator
from itertools import islice

from antiphon.actors.scheduling.policy import is_urgent
from antiphon.actors.scheduling.tenants import Tenant, Tenants
from antiphon.actors.scheduling.tickets import LaneLoad, Ticket
from antiphon.actors.scheduling.waiting import Waiting, WaitingHeap
from antiphon.ids import EngineRequest
from antiphon.workload import Workload, WorkloadClass

_MEAN_WEIGHT = 0.1
_ARRIVALS_OVER_S = 30.0


class Lane:
    """`service` is what it has had, in weighted tokens over its weight: as tenants share a lane, so
    lanes share the pool. Priorities are strict inside it; only age goes over them."""

    def __init__(self, name: WorkloadClass, mean_lease_s: float) -> None:
        self.name = name
        self.urgent = is_urgent(name)
        self.weight = 1.0
        self.service = 0.0
        self.running = 0
        self.paused = 0
        self.paused_tokens = 0
        self.tokens = 0
        self.prompt_tokens = 0
        self.blocks = 0
        self.mean_lease_s = mean_lease_s
        self.mean_prefill_s = 0.0
        self._arrivals_s = 0.0
        self._arrived_at = -math.inf
        self.waiting: dict[EngineRequest, Waiting] = {}
        self._tenants: dict[int, Tenants] = {}
        self._priorities: list[int] = []
        """The negative of each, so that the highest is first."""
        self._by_age = WaitingHeap()
        """Those that age."""
        self._by_wait = WaitingHeap()
        self._by_deadline = WaitingHeap()
        """Those that have one of their own."""

    def add(self, waiting: Waiting) -> None:
        ticket = waiting.ticket
        priority = ticket.workload.priority
        tenants = self._tenants.get(priority)
        if tenants is None:
            tenants = self._tenants[priority] = Tenants()
            insort(self._priorities, -priority)
        self.waiting[ticket.request] = waiting
        tenants.add(waiting)
        if not waiting.paused:
            self._arrivals_s = self.arrivals_s(waiting.since) + 1 / _ARRIVALS_OVER_S
            self._arrived_at = waiting.since
        live = len(self.waiting)
        if not ticket.workload.upkeep:
            self._by_age.push(ticket.queued_at, waiting, live)
        self._by_wait.push(waiting.since, waiting, live)
        if ticket.deadline_s is not None and not waiting.paused:
            self._by_deadline.push(ticket.queued_at + ticket.deadline_s, waiting, live)
        self._count(waiting, 1)

    def remove(self, waiting: Waiting) -> Tenant:
        """It waits no more: granted, or given up. The tenant it is of."""
        del self.waiting[waiting.ticket.request]
        self._count(waiting, -1)
        return self._tenants[waiting.ticket.workload.priority].remove(waiting)

    def rest(self, ticket: Ticket, tenant: Tenant) -> None:
        self._tenants[ticket.workload.priority].rest(tenant)

    def oldest(self) -> Waiting | None:
        """Of those that age."""
        return self._by_age.first()

    def first_come(self) -> Waiting | None:
        """Of all."""
        return self._by_wait.first()

    def overdue(self, now: float, deadline_s: float) -> Iterator[Waiting]:
        """Each that has waited so long, or to its own deadline, for as long as the caller removes
        it."""
        while (waiting := self._by_wait.first()) is not None and now - waiting.since >= deadline_s:
            yield waiting
        while (waiting := self._by_deadline.first()) is not None:
            own_s = waiting.ticket.deadline_s
            if own_s is None or now - waiting.since < own_s:
                return
            yield waiting

    def choose(self, may: Callable[[Waiting], bool]) -> Waiting | None:
        """What is to go next of that which may be granted now."""
        for negative in self._priorities:
            tenants = self._tenants[-negative]
            if (waiting := tenants.first()) is None:
                continue
            if may(waiting):
                return waiting
            if tenants.active > 1 and (waiting := tenants.another(may)) is not None:
                return waiting
        return None

    def first(self, count: int) -> Iterator[Waiting]:
        """Some that wait, the longest there first."""
        return islice(self.waiting.values(), count)

    def evict(self, ticket: Ticket, coming: int, enough: Callable[[Waiting], bool]) -> bool:
        """Give up others' places for the `coming` tickets like this one, `enough` told of each
        until it is satisfied: the newest of the lowest priority, and of those with most waiting;
        of the same priority only from tenants that would still have more waiting. False, and
        nobody is given up, if that isn't enough."""
        workload = ticket.workload
        own = self._tenants.get(workload.priority)
        mine = own.get(workload.tenant) if own is not None else None
        size = coming + (0 if mine is None else len(mine.fresh))
        hidden: list[Waiting] = []
        for negative in reversed(self._priorities):
            if -negative > workload.priority:
                break
            tenants = self._tenants[-negative]
            while (found := tenants.newest_of_the_most()) is not None:
                waiting, most = found
                if -negative == workload.priority and most <= size:
                    break
                tenants.hide(waiting)
                hidden.append(waiting)
                if enough(waiting):
                    return True
        for waiting in reversed(hidden):
            self._tenants[waiting.ticket.workload.priority].unhide(waiting)
        return False

    def ahead(self, workload: Workload) -> int:
        """How many of this lane would be granted before such a ticket, about: those of higher
        priorities, its tenant's own, and of each other tenant as many as that is, and one."""
        count = 0
        for negative in self._priorities:
            tenants = self._tenants[-negative]
            if -negative < workload.priority:
                break
            if -negative > workload.priority:
                count += tenants.waiting
                continue
            tenant = tenants.get(workload.tenant)
            own = 0 if tenant is None else tenant.waiting
            others = tenants.active - (own > 0)
            count += own + min(tenants.waiting - own, others * (own + 1))
        return count

    def running_of(self, workload: Workload) -> int:
        """What its tenant has running in this lane; 0 if there has been no other one lately."""
        tenants = self._tenants.get(workload.priority)
        if tenants is None or tenants.known < 2:
            return 0
        tenant = tenants.get(workload.tenant)
        return 0 if tenant is None else tenant.running

    def observe_lease(self, seconds: float) -> None:
        self.mean_lease_s += _MEAN_WEIGHT * (seconds - self.mean_lease_s)

    def observe_prefill(self, seconds: float) -> None:
        self.mean_prefill_s += _MEAN_WEIGHT * (seconds - self.mean_prefill_s)

    def arrivals_s(self, now: float) -> float:
        """How many have come a second, of late."""
        since_s = max(now - self._arrived_at, 0.0)
        return self._arrivals_s * math.exp(-since_s / _ARRIVALS_OVER_S)

    def forget(self) -> None:
        for tenants in self._tenants.values():
            tenants.forget()

    def load(self) -> LaneLoad:
        return LaneLoad(
            running=self.running,
            waiting=len(self.waiting),
            waiting_tokens=self.tokens,
            paused=self.paused,
        )

    def _count(self, waiting: Waiting, sign: int) -> None:
        ticket = waiting.ticket
        self.tokens += sign * ticket.tokens
        self.prompt_tokens += sign * ticket.prompt_tokens
        self.blocks += sign * waiting.blocks
        if waiting.paused:
            self.paused += sign
            self.paused_tokens += sign * ticket.tokens
