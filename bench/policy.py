"""`python -m bench.policy`: what the policy costs in time, in paired runs of real servers: with
none, with rules for inputs alone, and with those that come with the server.

Both of a pair are loaded and take turns, first one and then the other first, so that a machine
whose speed drifts slows both alike. Prints a table, saves it as JSON under bench-results/, and
exits with 1 when a figure does not hold.
"""

import argparse
import json
import math
import random
import re
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from antiphon.classifier import load
from antiphon.policy.rulebook import default_rules
from antiphon.policy.scan import Scanner
from antiphon.testing.process import ServerProcess, running_server
from antiphon.verdicts import PolicyScope, Stage
from bench.client import Call, chat_body, run
from bench.figure import Figure, at_least, at_most, explains, quantile, table
from bench.neighbours import Neighbours

INPUT_MS = 2.0
OUTPUT_MS = 5.0
SCAN_P99_MS = 10.0
SPEED = 0.95
STREAMS = 32
_TOKENS = 64
_FIRST_TOKENS = 8
_WITHIN_S = 300.0
_QUIET = 0.10
"""Of the cores: more of that by others, and the figures say little."""

_INPUT_RULES = """\
format = 1
version = "input-only"

[[rules]]
id = "harmful-request"
stages = ["input"]
match = { kind = "classifier", model = "quick" }
action = "block"
"""
"""As the server's own rules have it."""
_QUESTIONS = (
    "What is the capital of Peru?",
    "How do I sort a list of numbers in Python?",
    "Write a short poem about autumn leaves.",
    "Can you explain how a bicycle stays upright?",
    "Suggest three names for a small bakery.",
    "What is the difference between a comet and an asteroid?",
    "Please rewrite this sentence so that it sounds more polite: send me the report today.",
    "How long should I boil eggs?",
    "Summarise the plot of Romeo and Juliet in two sentences.",
    "What should I see in Lisbon in one weekend?",
    "Give me a recipe for vegetable soup.",
    "Why is the sky blue?",
    "Translate into German: where is the railway station?",
    "How can I learn to play the guitar as an adult?",
    "What does HTTP status 404 mean?",
    "Plan a workout of twenty minutes without equipment.",
)
_BUCKET = re.compile(
    r"^antiphon_policy_judging_seconds_bucket\{"
    r'(?=[^}]*stage="output")[^}]*le="([^"]+)"[^}]*\} (\S+)$'
)


@contextmanager
def pair(one: dict[str, str], other: dict[str, str]) -> Iterator[tuple[ServerProcess, ...]]:
    """Two servers of these environments, warmed up."""
    with running_server(None, **one) as first, running_server(None, **other) as second:
        for server in (first, second):
            for number in range(3):
                first_ms(server, f"warm {number}")
        yield first, second


def first_ms(server: ServerProcess, label: str) -> float:
    """To the first text of a short answer, whose prompt no prefix cache knows."""
    call = _call(label, max_tokens=_FIRST_TOKENS)
    began = time.monotonic()
    run(server.api, [call], within_s=_WITHIN_S)
    if call.first_text_at is None:
        raise RuntimeError(f"no text: {bytes(call.raw[:500])!r}")
    return (call.first_text_at - began) * 1000


def tokens_per_s(server: ServerProcess, label: str) -> float:
    """Of so many streams at once."""
    calls = [
        _call(f"{label} {number:02}", max_tokens=_TOKENS, ignore_eos=True)
        for number in range(STREAMS)
    ]
    began = time.monotonic()
    run(server.api, calls, within_s=_WITHIN_S)
    took = time.monotonic() - began
    tokens = sum(call.completion_tokens() for call in calls)
    if tokens < STREAMS * _TOKENS:
        raise RuntimeError(f"{tokens} tokens, so some stream was cut: {calls[0].raw[-500:]!r}")
    return tokens / took


def extra_ms(servers: tuple[ServerProcess, ...], rounds: int) -> tuple[float, list[float]]:
    """The median of what the second adds to the first token, and the medians of both."""
    took: list[list[float]] = [[], []]
    for number in range(rounds):
        order = (0, 1) if number % 2 else (1, 0)
        for which in order:
            took[which].append(first_ms(servers[which], f"round {number:03}"))
    extra = statistics.median(b - a for a, b in zip(*took, strict=True))
    return extra, [statistics.median(each) for each in took]


def speed_kept(servers: tuple[ServerProcess, ...], rounds: int) -> tuple[float, list[float]]:
    """The median of the second's part of the first's tokens per second, and the medians."""
    speeds: list[list[float]] = [[], []]
    for number in range(rounds):
        order = (0, 1) if number % 2 else (1, 0)
        for which in order:
            speeds[which].append(tokens_per_s(servers[which], f"load {number:02}"))
    kept = statistics.median(b / a for a, b in zip(*speeds, strict=True))
    return kept, [statistics.median(each) for each in speeds]


def scan_ms(server: ServerProcess, share: float) -> float:
    """The quantile of one scan, to the end of the bucket that it is in; NaN where none was made."""
    lines = server.get("/metrics")[1].decode().splitlines()
    found = [matched.groups() for line in lines if (matched := _BUCKET.match(line))]
    buckets = sorted((float(edge), float(count)) for edge, count in found)
    total = buckets[-1][1] if buckets else 0.0
    return next(
        (edge * 1000 for edge, count in buckets if total and count >= share * total), math.nan
    )


def one_scan_ms(count: int = 2000) -> list[float]:
    """What a judge takes for the end of one answer, by the server's own rules, window included."""
    scoped = default_rules().for_scope(PolicyScope())
    scanner = Scanner(load())
    dice = random.Random(7)
    took = []
    for _ in range(count):
        window = scoped.window("You are a helpful assistant.")
        text = " ".join(dice.choices(" ".join(_QUESTIONS).split(), k=30))
        began = time.monotonic()
        window.feed(text)
        scanner.judge(scoped, Stage.OUTPUT, (text,))
        took.append((time.monotonic() - began) * 1000)
    return took


def figures(*, rounds: int, loads: int, rules: Path) -> list[Figure]:
    """All of them."""
    off = {"ANTIPHON_POLICY_ENABLED": "false"}
    inputs = {"ANTIPHON_POLICY_RULES": str(rules)}
    with pair(off, inputs) as servers:
        input_ms, (plain, judged) = extra_ms(servers, rounds)
    _told("input")
    with pair(inputs, {}) as servers:
        output_ms, (_, scanned) = extra_ms(servers, rounds)
    _told("output")
    with pair(inputs, {}) as servers:
        kept, (free, loaded) = speed_kept(servers, loads)
        waits = [scan_ms(servers[1], share) for share in (0.5, 0.99)]
    with pair(off, {}) as servers:
        whole, _ = speed_kept(servers, loads)
    _told("load")
    return [
        at_most("input moderation, extra to first token, median", input_ms, INPUT_MS, "ms"),
        at_most("output scan, extra to first token, median", output_ms, OUTPUT_MS, "ms"),
        at_least(f"tokens/s kept with the output scan, {STREAMS} streams", kept, SPEED),
        at_most("one scan, p99", quantile(one_scan_ms(), 0.99), SCAN_P99_MS, "ms"),
        explains(f"tokens/s kept with all of the policy, {STREAMS} streams", whole),
        explains(f"a text's wait for its scan, {STREAMS} streams, p50, at most", waits[0], "ms"),
        explains(f"a text's wait for its scan, {STREAMS} streams, p99, at most", waits[1], "ms"),
        explains("first token, no policy", plain, "ms"),
        explains("first token, inputs judged", judged, "ms"),
        explains("first token, the server's own rules", scanned, "ms"),
        explains(f"tokens/s, inputs judged, {STREAMS} streams", free),
        explains(f"tokens/s, the server's own rules, {STREAMS} streams", loaded),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.policy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="pairs of first tokens")
    parser.add_argument("--loads", type=int, default=7, help=f"pairs of {STREAMS} streams")
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    neighbours = Neighbours()
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as folder:
        rules = Path(folder) / "rules.toml"
        rules.write_text(_INPUT_RULES, encoding="utf-8")
        measured = figures(rounds=options.rounds, loads=options.loads, rules=rules)
    others = neighbours.share()
    measured.append(explains("used by others", others * 100, "% of all cores"))
    print(table(measured))
    if others > _QUIET:
        print("the machine was busy with something else: measure again", file=sys.stderr)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"policy-{at.replace(':', '')}.json"
    results = {"at": at, "figures": [figure.as_json() for figure in measured]}
    file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"saved as {file}")
    return 0 if all(figure.holds is not False for figure in measured) else 1


def _call(label: str, **fields: object) -> Call:
    """What people ask, each time a new prompt; both of a pair are asked the same."""
    question = _QUESTIONS[zlib.crc32(label.encode()) % len(_QUESTIONS)]
    return Call(chat_body(f"{label}. {question}", **fields), "policy")


def _told(part: str) -> None:
    print(f"{part}: measured", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
