"""Resident memory of the server process, its child processes not counted."""

import psutil

from antiphon.testing.process import ServerProcess
from bench.client import Call, chat_body, run
from bench.figure import Figure, at_most, explains

_REQUESTS = 2000
_WARM_UP = 500
"""Before growth is counted: caches fill, and every code path is loaded."""
_AT_ONCE = 16
_WITHIN_S = 60.0
ENGINE_HOST = "antiphon.engine.host"
JUDGE = "antiphon.judge.process"


def memory(server: ServerProcess) -> list[Figure]:
    """At rest, which is before any request, and how much it grows over many short ones."""
    process = psutil.Process(server.process.pid)
    at_rest = megabytes(process)
    _short_requests(server, _WARM_UP, "warm")
    warm = megabytes(process)
    _short_requests(server, _REQUESTS, "memory")
    after = megabytes(process)
    return [
        at_most("memory at rest", at_rest, 200, "MB"),
        at_most(f"memory growth over {_REQUESTS} requests", after - warm, 10, "MB"),
        explains(f"memory after {_WARM_UP} requests", warm, "MB"),
        explains("memory of the engine host", megabytes(child(process, ENGINE_HOST)), "MB"),
        explains("memory of the judge", megabytes(child(process, JUDGE)), "MB"),
    ]


def child(process: psutil.Process, module: str) -> psutil.Process:
    """The one that runs this module."""
    [found] = [each for each in process.children() if module in each.cmdline()]
    return found


def megabytes(process: psutil.Process) -> float:
    """Resident."""
    return process.memory_info().rss / 1e6


def _short_requests(server: ServerProcess, count: int, name: str) -> None:
    for begin in range(0, count, _AT_ONCE):
        calls = [
            Call(chat_body(f"{name} {index}", max_tokens=2), f"{name}-{index}")
            for index in range(begin, min(begin + _AT_ONCE, count))
        ]
        run(server.api, calls, within_s=_WITHIN_S)
        if failed := [call for call in calls if call.status != 200]:
            raise RuntimeError(f"a request failed: {bytes(failed[0].raw[:500])!r}")
