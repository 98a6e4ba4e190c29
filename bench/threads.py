"""`python -m bench.threads`: what `engine.threads` does to a whole server under 32 streams.

Tokens/s, time to first token, and how late the server itself answers, as a Markdown table. There is
a server for each value; they take turns, forwards and backwards.
"""

import argparse
import contextlib
import http.client
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field

from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call, chat_body, run
from bench.figure import quantile

_STREAMS = 32
_TOKENS = 64
_WITHIN_S = 120.0
_PROBE_S = 0.01


@dataclass(slots=True)
class Found:
    """`tokens_s` of each round, `first_ms` of each stream, `probe_ms` of each look at it."""

    tokens_s: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    probe_ms: list[float] = field(default_factory=list)


def one_round(server: ServerProcess, label: str, found: Found) -> None:
    calls = [
        Call(
            chat_body(
                f"{label} {index}: tell me a story about the number {7 * index}.",
                max_tokens=_TOKENS,
                ignore_eos=True,
            ),
            f"threads-{label}-{index}",
        )
        for index in range(_STREAMS)
    ]
    over = threading.Event()
    prober = threading.Thread(target=_probe, args=(server, over, found.probe_ms))
    prober.start()
    started = time.monotonic()
    run(server.api, calls, within_s=_WITHIN_S)
    wall_s = time.monotonic() - started
    over.set()
    prober.join()
    found.tokens_s.append(sum(call.completion_tokens() for call in calls) / wall_s)
    firsts = (call.first_text_at for call in calls if call.first_text_at is not None)
    found.first_ms += [(at - started) * 1000 for at in firsts]


def _probe(server: ServerProcess, over: threading.Event, took_ms: list[float]) -> None:
    connection = http.client.HTTPConnection(*server.ops, timeout=10)
    with contextlib.closing(connection):
        while not over.wait(_PROBE_S):
            began = time.perf_counter()
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            took_ms.append((time.perf_counter() - began) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    found = {threads: Found() for threads in options.threads}
    with contextlib.ExitStack() as stack:
        servers = {
            threads: stack.enter_context(
                running_server(
                    ANTIPHON_ENGINE_THREADS=str(threads), ANTIPHON_ENGINE_KV_CACHE_MIB="256"
                )
            )
            for threads in found
        }
        for threads, server in servers.items():
            one_round(server, f"warm-{threads}", Found())
        for index in range(options.rounds):
            for threads in list(servers) if index % 2 else reversed(list(servers)):
                one_round(servers[threads], f"round-{index}-{threads}", found[threads])
            sys.stderr.write(f"round {index + 1} of {options.rounds}\n")
    sys.stdout.write(f"{markdown(found)}\n")


def markdown(found: dict[int, Found]) -> str:
    lines = [
        "| `engine.threads` | tokens/s | × | first token, median, ms | p99, ms "
        "| the server answers in, median, ms | p99, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    base = next(iter(found.values())).tokens_s
    for threads, each in found.items():
        ratio = statistics.median(a / b for a, b in zip(each.tokens_s, base, strict=True))
        first, probe = each.first_ms, each.probe_ms
        lines.append(
            f"| {threads} | {statistics.median(each.tokens_s):,.0f} | {ratio:.2f} "
            f"| {quantile(first, 0.5):,.0f} | {quantile(first, 0.99):,.0f} "
            f"| {quantile(probe, 0.5):.1f} | {quantile(probe, 0.99):.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
