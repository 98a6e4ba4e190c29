"""What the operations pages show, said at their side: a port. Each part is a snapshot that is read
without waiting, so that the pages answer when everything else hangs."""

from collections.abc import Sequence
from typing import Protocol

from antiphon.actors.breaker import BreakerStatistics
from antiphon.actors.routing.router import Routing
from antiphon.actors.store.status import StoreStatistics
from antiphon.context_records import PromptActivation
from antiphon.http.ops.views import PoolStatus, SlotView
from antiphon.ports import ReplicaStatistics
from antiphon.supervision.runtime import RuntimeStatistics
from antiphon.supervision.tree import Node


class OpsSources(Protocol):
    """What the pages show, each read without waiting."""

    def not_ready(self) -> Sequence[str]:
        """Why the server should get no traffic now; empty when it should."""

    def concerns(self) -> Sequence[str]:
        """What an operator has to see to although traffic may come."""

    def slots(self) -> Sequence[SlotView]: ...

    def tree(self) -> Node: ...

    def runtime(self) -> RuntimeStatistics: ...

    def breakers(self) -> Sequence[BreakerStatistics]: ...

    def replicas(self) -> Sequence[ReplicaStatistics]:
        """Those of engines that are elsewhere; none of those that are here."""

    def pools(self) -> Sequence[PoolStatus]: ...

    def prompts_in_force(self) -> Sequence[PromptActivation]:
        """Of the system prompts that the settings name."""

    def routing(self) -> Sequence[Routing]:
        """The last decisions of the router, the latest first."""

    def store_statistics(self) -> StoreStatistics: ...

    def work_age_s(self) -> float:
        """How long a conversation has waited for titles, summaries and memories; 0 if none does."""
