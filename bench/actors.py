"""`python -m bench.actors`: what the actor core costs, each figure beside the bound it must hold.

Ask and tell between two supervised actors, the memory of idle session-like actors, and the growth
of starts and stops in scheduler steps. Prints and saves JSON under bench-results/.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import structlog
import trio

from antiphon.actors.actor import ActorContext, actor_child
from antiphon.actors.address import Address
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.supervision.spec import ChildSpec, Restart, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree

ASK_MEDIAN_US = 60.0
TELL_US = 20.0
IDLE_MB = 200.0
GROWTH = 1.02
"""Of the steps for each child, from a thousand children to ten thousand."""

_ASKS = 20_000
_TELLS = 100_000
_BURST = 1_000
"""Told at once, then handled: as a step of the engine tells many sessions."""
_ROUNDS = 5
_FEW, _MANY = 1_000, 10_000


@dataclass(frozen=True, slots=True)
class Ping:
    reply: Reply[int]


@dataclass(frozen=True, slots=True)
class Note:
    number: int


class Callee:
    """Answers asks, counts tells, and says when it has heard a burst."""

    def __init__(self) -> None:
        self.heard = 0
        self.all_heard = trio.Event()

    def start(self, me: ActorContext[Ping | Note]) -> None: ...

    def handle(self, message: Ping | Note) -> None:
        match message:
            case Ping(reply=reply):
                reply.send(1)
            case Note():
                self.heard += 1
                if self.heard % _BURST == 0:
                    self.all_heard.set()

    def terminate(self) -> None: ...


class Caller:
    """Runs one measurement as the handling of one message."""

    def start(self, me: ActorContext["Measure"]) -> None: ...

    async def handle(self, message: "Measure") -> None:
        message.reply.send(await message.what())

    def terminate(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Measure:
    what: Callable[[], Awaitable[list[float]]]
    reply: Reply[list[float]]


class Idle:
    def start(self, me: ActorContext[str]) -> None: ...

    def handle(self, message: str) -> None: ...

    def terminate(self) -> None: ...


class Steps(trio.abc.Instrument):
    """Counts what the scheduler ran."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def ask_us(callee: Ref[Ping | Note]) -> list[float]:
    took = []
    for _ in range(_ASKS):
        began = time.perf_counter_ns()
        await callee.ask(Ping, deadline_s=5)
        took.append((time.perf_counter_ns() - began) / 1000)
    return took


async def tell_us(callee: Ref[Ping | Note], heard: Callee) -> list[float]:
    """For each message, from before its tell to after its handling, by bursts."""
    took = []
    for _ in range(_TELLS // _BURST):
        heard.all_heard = trio.Event()
        began = time.perf_counter_ns()
        for number in range(_BURST):
            callee.tell(Note(number))
        await heard.all_heard.wait()
        took.append((time.perf_counter_ns() - began) / 1000 / _BURST)
    return took


async def messages() -> dict[str, Any]:
    callee = Callee()
    callee_address: Address[Ping | Note] = Address("root/callee", capacity=_BURST)
    caller_address: Address[Measure] = Address("root/caller", capacity=1)
    supervisor = Supervisor(
        SupervisorSpec(),
        [
            actor_child("callee", lambda: callee, callee_address),
            actor_child("caller", Caller, caller_address),
        ],
    )
    async with trio.open_nursery() as nursery:
        tree = await Tree(supervisor).begin(nursery)
        asks, tells = [], []
        for _ in range(_ROUNDS):
            asks += await measured(caller_address, lambda: ask_us(callee_address.ref))
            tells += await measured(caller_address, lambda: tell_us(callee_address.ref, callee))
        await tree.end()
    ask, tell = statistics.median(asks), statistics.median(tells)
    return {
        "ask_median_us": round(ask, 2),
        "ask_p99_us": round(statistics.quantiles(asks, n=100)[98], 2),
        "ask_holds": ask <= ASK_MEDIAN_US,
        "tell_median_us": round(tell, 2),
        "tell_holds": tell <= TELL_US,
    }


async def measured(
    caller: Address[Measure], what: Callable[[], Awaitable[list[float]]]
) -> list[float]:
    return await caller.ref.ask(lambda reply: Measure(what, reply), deadline_s=60)


def idle_child(number: int) -> ChildSpec:
    address: Address[str] = Address(f"root/{number}", capacity=64)
    return actor_child(str(number), Idle, address, restart=Restart.TEMPORARY)


async def idle_memory() -> dict[str, Any]:
    """Ten thousand in eight shards, as sessions are."""
    process = psutil.Process()
    shards = [Supervisor(SupervisorSpec(dynamic=True)) for _ in range(8)]
    root = Supervisor(
        SupervisorSpec(), [shard.child(f"shard-{n}") for n, shard in enumerate(shards)]
    )
    async with trio.open_nursery() as nursery:
        tree = await Tree(root).begin(nursery)
        gc.collect()
        before = process.memory_info().rss
        for number in range(_MANY):
            await shards[number % 8].start_child(idle_child(number))
        gc.collect()
        grown = (process.memory_info().rss - before) / 1e6
        await tree.end()
    return {
        "actors": _MANY,
        "idle_mb": round(grown, 1),
        "idle_kb_each": round(grown * 1000 / _MANY, 1),
        "idle_holds": grown <= IDLE_MB,
    }


async def start_and_stop(count: int) -> tuple[int, float]:
    """Scheduler steps and seconds to start that many one by one and stop them all."""
    supervisor = Supervisor(SupervisorSpec(dynamic=True))
    async with trio.open_nursery() as nursery:
        tree = await Tree(supervisor).begin(nursery)
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        began = time.perf_counter()
        for number in range(count):
            await supervisor.start_child(idle_child(number))
        await tree.end()
        trio.lowlevel.remove_instrument(steps)
        return steps.count, time.perf_counter() - began


async def growth() -> dict[str, Any]:
    few, few_s = await start_and_stop(_FEW)
    many, many_s = await start_and_stop(_MANY)
    ratio = (many / _MANY) / (few / _FEW)
    return {
        "steps_each_of_1000": round(few / _FEW, 3),
        "steps_each_of_10000": round(many / _MANY, 3),
        "steps_growth": round(ratio, 4),
        "steps_holds": ratio <= GROWTH,
        "us_each_of_1000": round(few_s / _FEW * 1e6, 1),
        "us_each_of_10000": round(many_s / _MANY * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    results: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    # Memory first: what later runs leave in the allocator would hide it.
    for measure in (idle_memory, messages, growth):
        results |= trio.run(measure)
    results["holds"] = all(value for name, value in results.items() if name.endswith("_holds"))
    print(json.dumps(results, indent=2))
    options.out.mkdir(exist_ok=True)
    file = options.out / f"actors-{results['at'].replace(':', '')}.json"
    file.write_text(json.dumps(results, indent=2) + "\n")
    print(f"saved as {file}")


if __name__ == "__main__":
    main()
