"""`python -m bench.workers`: what background workers cost people who chat, and when titles and
summaries come, while chat saturates the pool of a real server with the real model.

More callers than there are slots hold conversations of three turns, each with a first message that
no cache knows: after the first turn there is a title to be made, after the third a summary. The
workers are switched on and off by a reload of the settings, turn and turn about in one run, so that
a machine whose speed drifts slows both alike.
"""

import argparse
import http.client
import json
import math
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from antiphon.settings import Settings
from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call
from bench.crowd import Crowd, Visit, attend
from bench.figure import Figure, at_least, at_most, explains, must_be_true, quantile, table
from bench.neighbours import Neighbours
from bench.prose import prose

_CALLERS = 40
_TURNS = 3
_WORDS = 40
_AT_ONCE = 200
"""Conversations, made before they are needed."""
_TOKENS = (24, 72)
"""The longest answers, at random: callers whose answers are all as long come in waves, for minutes,
and who comes last in one waits twice as long as others."""
_WARM_S = 60.0
"""Before the first phase, with the workers off: all come at once, at first."""
_SETTLE_S = 4.0
"""After each switch, when what was begun before it may still run: it counts for neither."""
_COST = 1.05
_DELAY_S = 150.0
_PATIENCE_S = 60.0
_QUIET = 0.10
_SETTINGS = """
[context]
titles = {on}
summaries = {on}
history_share = 0.05
summarise_at_share = 0.75
keep_share = 0.5
summary_tokens = 96
"""
"""So that three turns are long enough for a summary, and two aren't: what it costs that the next
prompt begins otherwise is not what is asked here."""
_TAKE_ALL = {"ANTIPHON_QUEUE_DEADLINE_S": "600", "ANTIPHON_SCHEDULING_INTERACTIVE_OBJECTIVE_S": "0"}
"""Nobody is refused for being late: what is compared is how long they wait."""
_BUCKET = re.compile(r'^antiphon_work_delay_seconds_bucket\{le="([^"]+)"\} (\S+)$')
_WORK = re.compile(r'^antiphon_work_total\{kind="(\w+)",outcome="(\w+)"\} (\S+)$')


class Switch:
    """Turns the workers on and off while calls come, and remembers when."""

    def __init__(self, server: ServerProcess, config: Path, phases: int, phase_s: float) -> None:
        self._server = server
        self._config = config
        self._phases = phases
        self._phase_s = phase_s
        self.times: list[tuple[float, bool]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def total_s(self) -> float:
        return _WARM_S + self._phases * self._phase_s

    def start(self) -> None:
        self._thread.start()

    def is_on(self, at: float) -> bool | None:
        """What a call that was due then counts for; None is nothing."""
        for began, on in reversed(self.times):
            if at >= began:
                return on if began + _SETTLE_S <= at < began + self._phase_s else None
        return None

    def _run(self) -> None:
        time.sleep(_WARM_S)
        for phase in range(self._phases):
            # on, off, off, on, ...: neither is always the later one of a pair.
            on = phase % 4 in {0, 3}
            self._config.write_text(_SETTINGS.format(on=str(on).lower()), encoding="utf-8")
            self._server.process.send_signal(signal.SIGHUP)
            self.times.append((time.monotonic(), on))
            time.sleep(self._phase_s)


class Caller:
    """Holds one conversation after the other, and waits for each answer."""

    def __init__(self, conversations: Iterator[str], seed: int) -> None:
        self._conversations = conversations
        self._dice = random.Random(seed)
        self._turn = 0
        self._conversation = ""

    def visit(self) -> Visit:
        if self._turn % _TURNS == 0:
            self._conversation = next(self._conversations)
        self._turn += 1
        body = {
            "model": Settings().model,
            "input": f"{self._dice.getrandbits(40)}: {prose(self._dice, _WORDS)}",
            "conversation": self._conversation,
            "stream": True,
            "max_output_tokens": self._dice.randint(*_TOKENS),
        }
        name = f"{self._conversation[-12:]}-{self._turn}"
        call = Call(json.dumps(body).encode(), name, path="/v1/responses")
        return Visit(at_s=0.0, call=call, group="chat", then=lambda _: self.visit())


def measure(phases: int, phase_s: float) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as folder:
        config = Path(folder) / "antiphon.toml"
        config.write_text(_SETTINGS.format(on="false"), encoding="utf-8")
        with running_server(config, **_TAKE_ALL) as server:
            switch = Switch(server, config, phases, phase_s)
            conversations = _conversations(server)
            callers = [Caller(conversations, seed) for seed in range(_CALLERS)]
            visits = [caller.visit() for caller in callers]
            switch.start()
            crowd = attend(server.api, visits, for_s=switch.total_s, patience_s=_PATIENCE_S)
            metrics = server.get("/metrics")[1].decode().splitlines()
    return _figures(crowd, switch, metrics)


def _figures(crowd: Crowd, switch: Switch, metrics: list[str]) -> list[Figure]:
    first: dict[bool, list[float]] = {True: [], False: []}
    for visit in crowd.visits:
        on = switch.is_on(visit.due_at)
        if on is not None and visit.first_text_s is not None:
            first[on].append(visit.first_text_s)
    p99 = {on: quantile(values, 0.99) for on, values in first.items()}
    p50 = {on: quantile(values, 0.5) for on, values in first.items()}
    failed = [visit for visit in crowd.visits if visit.call.status != 200]
    made = {found.groups()[:2]: float(found[3]) for line in metrics if (found := _WORK.match(line))}
    titles, summaries = (
        {how: made.get((kind, how), 0.0) for how in ("model", "extract")}
        for kind in ("title", "summary")
    )
    return [
        explains("turns with workers off", len(first[False])),
        explains("turns with workers on", len(first[True])),
        must_be_true("every turn was answered", not failed),
        explains("first token, p50, workers off", p50[False] * 1000, "ms"),
        explains("first token, p50, workers on", p50[True] * 1000, "ms"),
        explains("first token, p99, workers off", p99[False] * 1000, "ms"),
        explains("first token, p99, workers on", p99[True] * 1000, "ms"),
        at_most("first token, p99, on against off", p99[True] / p99[False], _COST),
        at_least("titles made", sum(titles.values()), 1),
        explains("of them by the model", titles["model"]),
        at_least("summaries made", sum(summaries.values()), 1),
        explains("of them by the model", summaries["model"]),
        explains("delay of all work on a conversation, p50, at most", _delay(metrics, 0.5), "s"),
        at_most("delay of all work on a conversation, p99", _delay(metrics, 0.99), _DELAY_S, "s"),
    ]


def _delay(metrics: list[str], share: float) -> float:
    """To the end of the bucket that the quantile is in."""
    found = [bucket.groups() for line in metrics if (bucket := _BUCKET.match(line))]
    buckets = sorted((float(edge), float(count)) for edge, count in found)
    total = buckets[-1][1] if buckets else 0.0
    return next((edge for edge, count in buckets if total and count >= share * total), math.nan)


def _conversations(server: ServerProcess) -> Iterator[str]:
    """Made many at a time, so that it is seldom."""
    while True:
        yield from [_conversation(server) for _ in range(_AT_ONCE)]


def _conversation(server: ServerProcess) -> str:
    connection = http.client.HTTPConnection(*server.api, timeout=10)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/conversations", "{}", headers)
        id: str = json.loads(connection.getresponse().read())["id"]
        return id
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.workers", description=__doc__)
    parser.add_argument("--phases", type=int, default=8, help="on and off, each that often")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each phase")
    options = parser.parse_args()
    neighbours = Neighbours()
    figures = measure(options.phases, options.seconds)
    others = neighbours.share()
    figures.append(explains("used by others", others * 100, "% of all cores"))
    print(table(figures))
    if others > _QUIET:
        print("the machine was busy with something else: measure again", file=sys.stderr)
    return 0 if all(figure.holds is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
