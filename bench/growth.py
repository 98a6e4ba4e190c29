"""Resident memory over thousands of requests of which many are cancelled: of the engine host, of
the judge, and of the server."""

import random
import sys
from collections.abc import Iterator

import psutil

from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, chat_body
from bench.figure import Figure, at_least, at_most, explains
from bench.leavers import Client, run_clients
from bench.memory import ENGINE_HOST, JUDGE, child, megabytes

_REQUESTS = 5000
_WARM_UP = 1000
"""Before growth is counted: by then every block of the KV cache has been written to."""
_LONGEST = 300
"""Words of a prompt: steps of every size are made, in its last chunk. For each size that it hasn't
seen the CPU plugin keeps kernels, 1.5 MB of SmolLM2, so it grows by 200 MB up to 128 tokens a step
and not at all after that."""
_EACH = 500
_CANCELLED = 0.3
_AT_ONCE = 16
_LONGEST_STAY_S = 1.0
_LEAVERS_TOKENS = 512
"""More than any stream gets to before its client leaves."""
_MOST_TOKENS = 32
_MOST_WORDS = 60
_KV_MIB = 256
"""Small, so that the cache is full early, and not so much of the host that nothing else shows."""
_MOST_GROWTH = 5.0


def growth(requests: int = _REQUESTS) -> list[Figure]:
    """On a server of its own."""
    dice = random.Random(1)
    with running_server(ANTIPHON_ENGINE_KV_CACHE_MIB=str(_KV_MIB)) as server:
        process = psutil.Process(server.process.pid)
        watched = {
            "engine host": child(process, ENGINE_HOST),
            "judge": child(process, JUDGE),
            "server": process,
        }
        run_clients(server.api, _every_size(), at_once=1)
        run_clients(server.api, _clients(dice, _WARM_UP, "warm"), at_once=_AT_ONCE)
        warm = {name: megabytes(each) for name, each in watched.items()}
        _say(0, warm)
        left: dict[str, float] = {}
        for done in range(0, requests, _EACH):
            clients = _clients(dice, min(_EACH, requests - done), f"{done}")
            left |= run_clients(server.api, clients, at_once=_AT_ONCE)
            after = {name: megabytes(each) for name, each in watched.items()}
            _say(done + _EACH, after)
        _all_free(server)
    figures = [
        at_least(f"growth: cancelled of {requests}", len(left) / requests * 100, 25, "%"),
    ]
    for name in watched:
        grown = (after[name] / warm[name] - 1) * 100
        figures += [
            at_most(f"growth of the {name}", grown, _MOST_GROWTH, "%"),
            explains(f"memory of the {name}, after {_WARM_UP} more", warm[name], "MB"),
            explains(f"memory of the {name}, at the end", after[name], "MB"),
        ]
    return figures


def _clients(dice: random.Random, count: int, label: str) -> Iterator[Client]:
    for index in range(count):
        words = " ".join(
            f"word{dice.randrange(10_000)}" for _ in range(dice.randrange(_MOST_WORDS))
        )
        leaves = dice.random() < _CANCELLED
        tokens = _LEAVERS_TOKENS if leaves else dice.randint(1, _MOST_TOKENS)
        body = chat_body(f"{label} {index} {words}", max_tokens=tokens, ignore_eos=True)
        stays_s = dice.uniform(0, _LONGEST_STAY_S) if leaves else None
        yield Client(Call(body, f"growth-{label}-{index}"), stays_s)


def _every_size() -> Iterator[Client]:
    for words in range(_LONGEST):
        body = chat_body(f"{words} words:{' a' * words}", max_tokens=1)
        yield Client(Call(body, f"growth-size-{words}"))


def _all_free(server: ServerProcess) -> None:
    """What is still held says that something leaks that isn't memory. Raises RuntimeError."""
    call = Call(chat_body("Are you there?", max_tokens=2), "growth-last")
    run_clients(server.api, [Client(call)], at_once=1)
    if any(slot["state"] != "free" for slot in server.slots()):
        raise RuntimeError("slots are held after all clients have gone")


def _say(done: int, memory: dict[str, float]) -> None:
    told = ", ".join(f"{name} {value:.1f} MB" for name, value in memory.items())
    sys.stderr.write(f"growth: after {done}: {told}\n")
    sys.stderr.flush()
