"""What anybody may know of the whole server without asking an actor: what the operations pages
show, and so true also while something is stuck."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import trio

from antiphon.actors.breaker import BreakerStatistics
from antiphon.actors.moderation.service import ModerationService
from antiphon.actors.prompts.prompts import SystemPrompts
from antiphon.actors.routing.router import Router, Routing
from antiphon.actors.store.status import StoreStatistics, StoreStatus
from antiphon.actors.watchman import Watchman
from antiphon.actors.workers.worker import Workers
from antiphon.context_records import PromptActivation
from antiphon.http.ops.views import PoolStatus, SlotView, pool_status, slot_views
from antiphon.pools import ServedPool
from antiphon.ports import ReplicaStatistics
from antiphon.supervision.runtime import LoopLag, RuntimeStatistics, runtime_statistics
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """Snapshots only. `root` and `lag` are there once the server runs."""

    served: tuple[ServedPool, ...]
    router: Router
    store: StoreStatus
    prompts: SystemPrompts
    policy: ModerationService | None
    watchman: Watchman
    workers: Workers
    root: Callable[[], Supervisor]
    lag: Callable[[], LoopLag]

    def not_ready(self) -> tuple[str, ...]:
        """Why no traffic should come now; empty when it should."""
        reasons = []
        if self.watchman.draining:
            reasons.append("draining")
        if (problem := self.store.problem()) is not None:
            reasons.append(f"store: {problem}")
        if self.policy is not None and (problem := self.policy.problem()) is not None:
            reasons.append(f"moderation: {problem}")
        problems = self._problems()
        if len(problems) == len(self.served):
            reasons += problems
        return tuple(reasons)

    def concerns(self) -> tuple[str, ...]:
        """What an operator has to see to although traffic may come."""
        policy = None if self.policy is None else self.policy.concern()
        concerns = {
            "store": self.store.concern(),
            "moderation": policy,
            "prompts": self.prompts.concern(),
        }
        problems = self._problems()
        degraded = problems if len(problems) < len(self.served) else []
        return (*(f"{who}: {why}" for who, why in concerns.items() if why is not None), *degraded)

    def slots(self) -> tuple[SlotView, ...]:
        """Every slot of every pool; none of those whose engine has not been ready."""
        now = trio.current_time()
        return tuple(view for pool in self.served for view in slot_views(pool.engine, now))

    def tree(self) -> Node:
        """The supervision tree as plain values."""
        return self.root().snapshot()

    def breakers(self) -> tuple[BreakerStatistics, ...]:
        """Every circuit breaker there is."""
        engines = (pool.engine.pool.breaker.statistics() for pool in self.served)
        policy = () if self.policy is None else self.policy.breakers()
        return (self.store.breaker.statistics(), *policy, *engines)

    def replicas(self) -> tuple[ReplicaStatistics, ...]:
        """Every replica of the engines that are elsewhere."""
        return tuple(
            replace(replica, model=pool.name)
            for pool in self.served
            if pool.upstream is not None
            for replica in pool.upstream.statistics()
        )

    def pools(self) -> tuple[PoolStatus, ...]:
        """How each pool stands."""
        return tuple(pool_status(pool.routed, pool.problem(), pool.engine) for pool in self.served)

    def store_statistics(self) -> StoreStatistics:
        """How the database stands."""
        return self.store.statistics()

    def work_age_s(self) -> float:
        """How long ago a turn has ended in the conversation that is worked on in the background."""
        return self.workers.age_s()

    def prompts_in_force(self) -> tuple[PromptActivation, ...]:
        """Which versions of the settings' system prompts turns begin with."""
        return self.prompts.in_force()

    def routing(self) -> tuple[Routing, ...]:
        """The last decisions of the router."""
        return self.router.recent()

    def runtime(self) -> RuntimeStatistics:
        """The event loop, while it runs."""
        return runtime_statistics(self.lag())

    def _problems(self) -> list[str]:
        return [problem for pool in self.served if (problem := pool.problem()) is not None]
