"""Which replica a simulated request goes to: the server's own routing and admission, over replicas
that are chosen as a front of many servers would: a conversation stays where its prefix is warm."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from antiphon.actors.routing.choice import Answer, Decision, Offer, choose
from antiphon.actors.routing.route import PoolView, Route, RouteRequest, route
from antiphon.actors.routing.rules import Rules, terms_of
from antiphon.actors.scheduling.admission import Terms
from antiphon.engine.upstream.ring import Ring
from antiphon.errors import ContextLengthExceeded, Overloaded
from antiphon.ids import ModelName
from antiphon.plan_settings import PlanSettings
from antiphon.simulating.records import Ending
from antiphon.simulating.replica import Replica, Request
from antiphon.workload import Workload, WorkloadClass

MAIN = ModelName("main")
SMALLER = ModelName("smaller")
_BALANCE = 1.25
"""As `upstream.balance`: what a replica may have of the mean before conversations leave it."""
_OWNERS = 65_536
"""Conversations whose place on the ring is remembered, for speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where it goes, and by when it must have its slot if it is late already."""

    replica: Replica
    moved: bool = False
    deadline_s: float | None = None


class Fleet:
    """The replicas of one model. A conversation belongs to one of them, and goes elsewhere when
    that one has clearly more than its share."""

    def __init__(self, name: ModelName, replicas: list[Replica]) -> None:
        self.replicas = replicas
        self._by_name = {f"{name}-{replica.index}": replica for replica in replicas}
        self._ring = Ring(self._by_name)
        self._slots = replicas[0].model.slots
        self._owner = lru_cache(maxsize=_OWNERS)(self._find_owner)

    def choose(self, key: str) -> Replica:
        """As the server chooses among upstream replicas."""
        if len(self.replicas) == 1:
            return self.replicas[0]
        in_flight = sum([len(replica.requests) for replica in self.replicas])
        mean = (in_flight + 1) / len(self.replicas)
        share = _BALANCE * mean + 2 * math.sqrt(mean)
        bound = math.ceil(max(share, self._slots / len(self.replicas)))
        owner = self._owner(key)
        if len(owner.requests) < bound:
            return owner
        for name in self._ring.walk(key):
            replica = self._by_name[name]
            if replica.in_flight < bound:
                return replica
        return min(self.replicas, key=lambda replica: replica.in_flight)

    def _find_owner(self, key: str) -> Replica:
        return self._by_name[next(self._ring.walk(key))]


class Placement:
    def __init__(self, fleets: Mapping[ModelName, Fleet], rules: Rules, *, admission: bool) -> None:
        self._fleets = fleets
        self._rules = rules
        self._admission = admission
        smaller = SMALLER if SMALLER in fleets else None
        self._pools = {
            name: PoolView(
                model=name,
                window=fleet.replicas[0].model.kv_tokens,
                smaller=smaller if name == MAIN else None,
            )
            for name, fleet in fleets.items()
        }
        # Simulated pools never break and settings stay, so these are always the same.
        self._route = lru_cache(maxsize=64)(self._find_route)
        self._terms = lru_cache(maxsize=64)(self._find_terms)

    def place(
        self, request: Request, asked: ModelName, max_tokens: int, now: float
    ) -> Placed | Ending:
        """A replica, or why none takes it."""
        key = request.arrival.conversation or str(request.number)
        if not self._admission:
            return Placed(replica=self._fleets[asked].choose(key))
        way = self._route(asked, request.arrival.priority)
        terms = self._terms(request.workload.lane, request.workload.priority)
        asked_replicas: dict[ModelName, Replica] = {}
        answers: dict[ModelName, Answer] = {}
        while True:
            try:
                next_step = choose(way, answers)
            except Overloaded:
                return Ending.REFUSED
            except ContextLengthExceeded:
                return Ending.TOO_LONG
            if isinstance(next_step, Decision):
                return Placed(
                    replica=asked_replicas[next_step.model],
                    moved=next_step.moved is not None,
                    deadline_s=next_step.deadline_s,
                )
            replica = self._fleets[next_step.model].choose(key)
            asked_replicas[next_step.model] = replica
            answers[next_step.model] = Offer(
                prediction=replica.predict(request, max_tokens, now), terms=terms
            )

    def _find_terms(self, lane: WorkloadClass, priority: int) -> Terms:
        return terms_of(Workload(lane=lane, priority=priority), self._rules)

    def _find_route(self, asked: ModelName, priority: int) -> Route:
        plan = PlanSettings(priority=priority)
        return route(RouteRequest(asked=asked, plan=plan), self._rules, self._pools)
