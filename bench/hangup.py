"""Hanging up at random moments: how soon the slot is free, and how many tokens were wasted."""

import random
import selectors
import time
from dataclasses import dataclass
from typing import Any

from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run, start, take
from bench.figure import Figure, at_least, at_most, explains, must_be_true, quantile

_COUNT = 200
_AT_ONCE = 16
_LONGEST_STAY_S = 1.5
_MOST_TOKENS = 512
"""More than any stream gets to before its client leaves."""
_SEED = 1
_SETTLE_S = 10.0
_WITHIN_S = 60.0


@dataclass(slots=True)
class _Leaver:
    call: Call
    leaves_at: float


def hang_ups(server: ServerProcess) -> list[Figure]:
    """Start streams and close each at a random moment before its end.

    A latency runs from the client's close() to the engine's Released, both in CLOCK_MONOTONIC.
    """
    steps_before, stepping_before_s = _steps(server)
    left = _run_leavers(server, random.Random(_SEED))
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


def _run_leavers(server: ServerProcess, dice: random.Random) -> dict[str, float]:
    """When each client left, by request id."""
    left: dict[str, float] = {}
    begun = 0
    with selectors.DefaultSelector() as selector:
        while begun < _COUNT or selector.get_map():
            while begun < _COUNT and len(selector.get_map()) < _AT_ONCE:
                body = chat_body(
                    f"Tell me a long story, number {begun}.",
                    max_tokens=_MOST_TOKENS,
                    ignore_eos=True,
                )
                call = Call(body, f"hangup-{begun}")
                start(server.api, call)
                assert call.sock is not None
                stay_s = dice.uniform(0.0, _LONGEST_STAY_S)
                selector.register(
                    call.sock, selectors.EVENT_READ, _Leaver(call, time.monotonic() + stay_s)
                )
                begun += 1
            leaves_at = min(key.data.leaves_at for key in selector.get_map().values())
            for key, _ in selector.select(timeout=max(0.0, leaves_at - time.monotonic())):
                if not take(key.data.call):
                    raise RuntimeError(f"a stream ended early: {bytes(key.data.call.raw[-300:])!r}")
            now = time.monotonic()
            for key in list(selector.get_map().values()):
                call = key.data.call
                if key.data.leaves_at <= now and call.sock is not None:
                    selector.unregister(call.sock)
                    left[call.request_id] = time.monotonic()
                    call.sock.close()
    return left


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
