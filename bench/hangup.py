"""Hanging up at random moments: how soon the slot is free, and how many tokens were wasted."""

import random
import time
from collections.abc import Iterator
from typing import Any

from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run
from bench.figure import Figure, at_least, at_most, explains, must_be_true, quantile
from bench.leavers import Client, run_clients

_COUNT = 200
_AT_ONCE = 16
_LONGEST_STAY_S = 1.5
_MOST_TOKENS = 512
"""More than any stream gets to before its client leaves."""
_SEED = 1
_SETTLE_S = 10.0
_WITHIN_S = 60.0


def hang_ups(server: ServerProcess) -> list[Figure]:
    """Start streams and close each at a random moment before its end.

    A latency runs from the client's close() to the engine's Released, both in CLOCK_MONOTONIC.
    """
    steps_before, stepping_before_s = _steps(server)
    left = run_clients(server.api, _clients(random.Random(_SEED)), at_once=_AT_ONCE)
    is_free = _wait_all_free(server)
    steps, stepping_s = _steps(server)
    step_s = (stepping_s - stepping_before_s) / max(steps - steps_before, 1)
    check = Call(chat_body("What is the capital of France?", temperature=0, max_tokens=24), "after")
    run(server.api, [check], within_s=_WITHIN_S)
    releases = _releases_before(server, check.request_id)
    found = [(left_at, releases[name]) for name, left_at in left.items() if name in releases]
    latencies_ms = [(line["released_at"] - left_at) * 1000 for left_at, line in found]
    bound_ms = 2 * step_s * 1000 + 20
    wasted = [line["tokens_after"] for _, line in found]
    return [
        must_be_true(f"hang-ups: all slots free after {_COUNT}", is_free),
        # The others left before they had a slot; too many of those would prove nothing.
        at_least("hang-ups that held a slot", len(found), _COUNT / 2),
        at_most("hang-ups: close to release, p99", quantile(latencies_ms, 0.99), bound_ms, "ms"),
        explains("hang-ups: close to release, p50", quantile(latencies_ms, 0.50), "ms"),
        explains("hang-ups: mean engine step", step_s * 1000, "ms"),
        at_most("hang-ups: tokens after the close, most", max(wasted, default=0), 2),
        must_be_true("hang-ups: the next answer contains Paris", "Paris" in check.text()),
    ]


def _clients(dice: random.Random) -> Iterator[Client]:
    for index in range(_COUNT):
        body = chat_body(
            f"Tell me a long story, number {index}.", max_tokens=_MOST_TOKENS, ignore_eos=True
        )
        yield Client(Call(body, f"hangup-{index}"), dice.uniform(0.0, _LONGEST_STAY_S))


def _wait_all_free(server: ServerProcess) -> bool:
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        if all(slot["state"] == "free" for slot in server.slots()):
            return True
        time.sleep(0.05)
    return False


def _releases_before(server: ServerProcess, request_id: str) -> dict[str, dict[str, Any]]:
    """What the log says of each cancelled lease, once it tells of that later request too."""
    server.log.wait_for(
        "request_finished",
        within_s=_SETTLE_S,
        matching=lambda line: line["request_id"] == request_id,
    )
    return {line["request_id"]: line for line in server.log.events("lease_cancelled")}


def _steps(server: ServerProcess) -> tuple[float, float]:
    """How many steps the engine made, and the seconds they took."""
    name = "antiphon_engine_step_seconds"
    return server.metric(f"{name}_count"), server.metric(f"{name}_sum")
