"""What stands behind an operations listener in tests: sources that show what a test writes, and
commands that nobody may give."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.actors.breaker import BreakerStatistics
from antiphon.actors.routing.router import Routing
from antiphon.actors.store.status import StoreStatistics, StoreStatus
from antiphon.context_records import PromptActivation
from antiphon.http.ops.commands import OpsCommands
from antiphon.http.ops.views import PoolStatus, SlotView
from antiphon.ids import ActorPath, ModelName, RequestId, SlotIndex
from antiphon.live_settings import Change
from antiphon.ports import ReplicaStatistics
from antiphon.supervision.runtime import RuntimeStatistics
from antiphon.supervision.tree import LastExit, MailboxStatistics, Node


def a_node(path: str, *children: Node, **fields: Any) -> Node:
    """A child that is up and has never failed; `fields` overlay it."""
    return Node(
        **{
            "path": ActorPath(path),
            "kind": "supervisor" if children else "worker",
            "state": "up",
            "incarnation": 1,
            "restarts": 0,
            "last_exit": None,
            "uptime_s": 5.0,
            "children": children,
            **fields,
        }
    )


def a_worker(path: str) -> Node:
    """A child that failed once and has its hands full."""
    counters = dict.fromkeys(MailboxStatistics.__dataclass_fields__, 0)
    box: dict[str, Any] = {**counters, "current": "Ping", "current_age_s": 0.5}
    return a_node(
        path,
        incarnation=2,
        restarts=1,
        last_exit=LastExit(kind="crashed", text="ValueError: no", age_s=2.0),
        mailbox=MailboxStatistics(**box),
    )


def a_breaker(circuit: str = "closed", **fields: Any) -> BreakerStatistics:
    """The breaker of an engine, by default one that has seen no failure."""
    return BreakerStatistics(
        **{
            "name": "engine m",
            "circuit": circuit,
            "failures_in_row": 0,
            "reset_s": 1.0,
            "retry_after_s": None,
            "admitted": 9,
            "refused": 0,
            "failed": 0,
            "opened": 0,
            "stale": 0,
            **fields,
        }
    )


def a_pool(model: str = "m", **fields: Any) -> PoolStatus:
    """A pool with one slot, in use."""
    return PoolStatus(
        **{
            "model": ModelName(model),
            "problem": None,
            "slots": 1,
            "running": 1,
            "waiting": 0,
            "waiting_tokens": 0,
            "window": 2048,
            "cost": 1.0,
            "smaller": None,
            **fields,
        }
    )


@dataclass
class ScriptedSources:
    """OpsSources of one slot, one child, one breaker and a calm loop, unless a test says more."""

    reasons: list[str] = field(default_factory=list)
    worries: list[str] = field(default_factory=list)
    root: Node = field(default_factory=lambda: a_node("root", a_worker("root/<pool>")))
    circuits: list[BreakerStatistics] = field(default_factory=lambda: [a_breaker()])
    fleet: list[ReplicaStatistics] = field(default_factory=list)
    decisions: list[Routing] = field(default_factory=list)
    activations: list[PromptActivation] = field(default_factory=list)
    age_s: float = 0.0

    def not_ready(self) -> Sequence[str]:
        return self.reasons

    def concerns(self) -> Sequence[str]:
        return self.worries

    def slots(self) -> Sequence[SlotView]:
        request_id = RequestId("req_1")
        return [
            SlotView(
                model=ModelName("m"),
                slot=SlotIndex(0),
                state="decode",
                request_id=request_id,
                tokens=5,
                age_s=0.25,
                lane="interactive",
            )
        ]

    def tree(self) -> Node:
        return self.root

    def runtime(self) -> RuntimeStatistics:
        return RuntimeStatistics(
            tasks=20,
            runnable=1,
            threads=3,
            worker_threads=0,
            worker_threads_limit=40,
            waiting_for_thread=0,
            loop_lag_s=0.0042,
            loop_lag_max_s=0.1,
        )

    def breakers(self) -> Sequence[BreakerStatistics]:
        return self.circuits

    def replicas(self) -> Sequence[ReplicaStatistics]:
        return self.fleet

    def pools(self) -> Sequence[PoolStatus]:
        return [a_pool()]

    def store_statistics(self) -> StoreStatistics:
        return StoreStatus(ready=True, opened=1, done=7).statistics()

    def work_age_s(self) -> float:
        return self.age_s

    def prompts_in_force(self) -> Sequence[PromptActivation]:
        return self.activations

    def routing(self) -> Sequence[Routing]:
        return self.decisions


class NoOperator:
    """For tests in which no command may arrive."""

    async def restart(self, path: ActorPath) -> None:
        raise AssertionError(path)

    stop = start = restart

    async def reload(self, source: str) -> tuple[Change, ...]:
        raise AssertionError(source)


def no_commands() -> OpsCommands:
    """Without a token, so that every command is refused."""
    nobody = NoOperator()
    return OpsCommands(operator=nobody, settings=nobody, token=lambda: None, deadline_s=1.0)
