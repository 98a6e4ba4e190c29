"""Hanging up at random moments: how soon the slot is free, and how many tokens were wasted."""

import random
import selectors
import time
from dataclasses import dataclass
from typing import Any

from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run, start, take

_SETTLE_S = 10.0


@dataclass(slots=True)
class _Leaver:
    call: Call
    leaves_at: float
    left_at: float | None = None


def hang_ups(server: ServerProcess, *, count: int, at_once: int, seed: int) -> dict[str, Any]:
    """Start `count` streams, `at_once` at a time, and close each at a random moment before its end.

    Seconds; `latency` is from the client's close() to the engine's Released, both CLOCK_MONOTONIC.
    """
    steps_before = _steps(server)
    left = _run_leavers(server, count, at_once, random.Random(seed))
    freed = _wait_all_free(server)
    steps, step_seconds = (
        after - before for after, before in zip(_steps(server), steps_before, strict=True)
    )
    releases = {line["request_id"]: line for line in server.log.events("lease_cancelled")}
    joined = [(left_at, releases[name]) for name, left_at in left.items() if name in releases]
    latencies = sorted(line["released_at"] - left_at for left_at, line in joined)
    wasted = [line["tokens_after"] for _, line in joined]
    step_s = step_seconds / max(steps, 1)
    check = Call(chat_body("What is the capital of France?", temperature=0, max_tokens=24), "after")
    run(server.api, [check], within_s=60)
    return {
        "hang_ups": count,
        "while_in_engine": len(joined),
        "all_slots_free": freed,
        "mean_step_s": step_s,
        "latency_p50_s": _quantile(latencies, 0.50),
        "latency_p99_s": _quantile(latencies, 0.99),
        "latency_bound_s": 2 * step_s + 0.020,
        "tokens_after_max": max(wasted, default=0),
        "next_answer": check.text(),
    }


def _run_leavers(
    server: ServerProcess, count: int, at_once: int, dice: random.Random
) -> dict[str, float]:
    left: dict[str, float] = {}
    begun = 0
    with selectors.DefaultSelector() as selector:
        while begun < count or selector.get_map():
            while begun < count and len(selector.get_map()) < at_once:
                body = chat_body(
                    f"Tell me a long story, number {begun}.", max_tokens=512, ignore_eos=True
                )
                call = Call(body, f"hangup-{begun}")
                start(server.api, call)
                assert call.sock is not None
                leaver = _Leaver(call, time.monotonic() + dice.uniform(0.0, 1.5))
                selector.register(call.sock, selectors.EVENT_READ, leaver)
                begun += 1
            next_leave = min(key.data.leaves_at for key in selector.get_map().values())
            for key, _ in selector.select(timeout=max(0.0, next_leave - time.monotonic())):
                if not take(key.data.call):
                    raise RuntimeError(f"a stream ended early: {bytes(key.data.call.raw[-300:])!r}")
            now = time.monotonic()
            for key in list(selector.get_map().values()):
                if key.data.leaves_at <= now:
                    selector.unregister(key.fileobj)
                    key.data.call.sock.close()
                    left[key.data.call.request_id] = time.monotonic()
    return left


def _wait_all_free(server: ServerProcess) -> bool:
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        if all(slot["state"] == "free" for slot in server.slots()):
            return True
        time.sleep(0.05)
    return False


def _steps(server: ServerProcess) -> tuple[float, float]:
    name = "antiphon_engine_step_seconds"
    return server.metric(f"{name}_count"), server.metric(f"{name}_sum")


def _quantile(values: list[float], share: float) -> float:
    return values[min(int(share * len(values)), len(values) - 1)] if values else float("nan")
