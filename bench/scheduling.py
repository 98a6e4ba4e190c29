"""`python -m bench.scheduling`: what a decision of the scheduler costs while 10,000 requests wait,
of 1,000 tenants and in all lanes, beside the bound it must hold.

A decision is a request's whole way: it is submitted, granted, gains its tokens, may be paused, and
is released. Prints a table and saves JSON under bench-results/.
"""

import argparse
import gc
import json
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from antiphon.actors.scheduling.schedule import (
    Capacity,
    Lease,
    Policy,
    QueueBounds,
    Schedule,
    Ticket,
)
from antiphon.errors import QueueFull
from antiphon.ids import EngineRequest, RequestId
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.workload import Workload, WorkloadClass
from bench.figure import Figure, at_most, explains, quantile, table

DECISION_US = 50.0
WAITING = 10_000
TENANTS = 1_000
_SLOTS = 32
_DECISIONS = 3_000
_ROUNDS = 7
_GAINS = 8
"""Looks at what each request has gained, while it runs."""
_LANES = (
    *[WorkloadClass.INTERACTIVE] * 5,
    WorkloadClass.TOOL,
    WorkloadClass.LONG,
    *[WorkloadClass.BACKGROUND] * 3,
)


@dataclass(slots=True)
class Pool:
    """A schedule in a pool that is always full; time goes on with each decision."""

    policy: Policy
    kv_blocks: int = 100_000
    now: float = 0.0
    number: int = 0
    dice: random.Random = field(default_factory=lambda: random.Random(6))
    running: deque[Lease] = field(default_factory=deque)
    schedule: Schedule = field(init=False)

    def __post_init__(self) -> None:
        capacity = Capacity(slots=_SLOTS, kv_blocks=self.kv_blocks, block_size=32)
        self.schedule = Schedule(capacity, self.policy)
        for _ in range(WAITING + _SLOTS):
            self.submit(self.ticket())

    def ticket(self) -> Ticket:
        self.number += 1
        dice = self.dice
        lane = dice.choice(_LANES)
        long = lane is WorkloadClass.LONG
        return Ticket(
            request=EngineRequest(self.number),
            turn=RequestId("bench"),
            prompt_tokens=dice.randint(1500, 6000) if long else dice.randint(20, 900),
            max_tokens=dice.randint(16, 1024),
            queued_at=self.now,
            workload=Workload(
                lane=lane,
                tenant=f"user-{dice.randrange(TENANTS)}",
                priority=dice.choice((0, 0, 0, 1)),
            ),
            resumable=lane is WorkloadClass.BACKGROUND,
        )

    def submit(self, ticket: Ticket) -> None:
        try:
            self.schedule.submit(ticket)
        except QueueFull:
            pass

    def decide(self, ticket: Ticket) -> None:
        """The oldest lease ends, what is next begins, and another request comes."""
        self.now += 0.02
        schedule = self.schedule
        if self.running:
            lease = self.running.popleft()
            request = lease.ticket.request
            for tokens in range(1, _GAINS + 1):
                schedule.gained(request, tokens)
            schedule.release(request, self.now)
        self.submit(ticket)
        for lease in schedule.grant(self.now):
            self.running.append(lease)
            schedule.first_token(lease.ticket.request, self.now)
        for lease in schedule.preempt(self.now):
            schedule.paused(lease.ticket.request, self.now)
            self.running.remove(next(each for each in self.running if each.slot == lease.slot))
        if self.number % 25 == 0:
            for _ in schedule.expire(self.now):
                pass


def policy(kind: Literal["fair", "fcfs"], max_requests: int) -> Policy:
    bounds = QueueBounds(max_requests=max_requests, max_tokens=10**12, deadline_s=10**9)
    settings = SchedulingSettings(policy=kind, long_prefills=4, background_deadline_s=10**9)
    return Policy(bounds=bounds, scheduling=settings)


def cost_us(make: Callable[[], Pool]) -> tuple[float, float]:
    """The mean and the 99th percentile of processor time, of the best of some rounds: what others
    do on the machine only adds to them."""
    pool = make()
    for _ in range(2 * _SLOTS):
        pool.decide(pool.ticket())
    rounds = []
    for _ in range(_ROUNDS):
        gc.collect()
        took = []
        for _ in range(_DECISIONS):
            ticket = pool.ticket()
            began = time.process_time_ns()
            pool.decide(ticket)
            took.append((time.process_time_ns() - began) / 1000)
        rounds.append((sum(took) / len(took), quantile(took, 0.99)))
    return min(rounds)


def outlook_us() -> float:
    """What a prediction costs before it predicts."""
    pool = Pool(policy("fair", 10**9))
    pool.decide(pool.ticket())
    workload = Workload(tenant="user-7")
    began = time.process_time_ns()
    for _ in range(_DECISIONS):
        pool.schedule.outlook(workload, pool.now)
    return (time.process_time_ns() - began) / 1000 / _DECISIONS


def figures() -> list[Figure]:
    fair, fair_p99 = cost_us(lambda: Pool(policy("fair", 10**9)))
    starved, _ = cost_us(lambda: Pool(policy("fair", 10**9), kv_blocks=700))
    full, _ = cost_us(lambda: Pool(policy("fair", WAITING // 4)))
    fcfs, _ = cost_us(lambda: Pool(policy("fcfs", 10**9)))
    return [
        at_most("decision", fair, DECISION_US, "µs"),
        at_most("decision, short of KV", starved, DECISION_US, "µs"),
        explains("decision, 99th percentile", fair_p99, "µs"),
        explains("decision, lanes full", full, "µs"),
        explains("decision, first come first served", fcfs, "µs"),
        explains("outlook for a prediction", outlook_us(), "µs"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    measured = figures()
    print(table(measured))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    options.out.mkdir(exist_ok=True)
    file = options.out / f"scheduling-{at.replace(':', '')}.json"
    results = {"at": at, "figures": [figure.as_json() for figure in measured]}
    file.write_text(json.dumps(results, indent=2) + "\n")
    print(f"saved as {file}")


if __name__ == "__main__":
    main()
