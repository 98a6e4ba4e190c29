"""`python -m bench.ingestion`: what the reading of files costs people who chat, and how long a PDF
of 200 pages takes meanwhile, on a real server with the real model.

People chat, and read in between. In every other phase one such PDF after the other, no two alike,
is put into a vector store, and read, cut and embedded; in the others there is nothing to be read.
The phases take turns in one run, so that a machine whose speed drifts slows both alike.
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from antiphon.settings import Settings
from antiphon.testing.pdfs import report
from antiphon.testing.process import ServerProcess, running_server
from bench.client import Call
from bench.crowd import Crowd, Visit, attend
from bench.figure import Figure, at_least, at_most, explains, must_be_true, quantile, table
from bench.neighbours import Neighbours
from bench.prose import prose

_PAGES = 200
_CALLERS = 8
_READS_S = 3.0
"""What people take to read an answer of this length, and to ask the next question. With 0 the
engine never rests: then files take what is left, and hardly get on."""
_WORDS = 40
_TOKENS = 32
_SETTLE_S = 3.0
"""After each change, when what was begun before it may still run: it counts for neither."""
_COST = 1.2
_READ_S = 60.0
_PATIENCE_S = 60.0
_LOOK_S = 0.25
_QUIET = 0.10
_SETTINGS = """
[context]
titles = false
summaries = false
"""
_TAKE_ALL = {"ANTIPHON_QUEUE_DEADLINE_S": "600", "ANTIPHON_SCHEDULING_INTERACTIVE_OBJECTIVE_S": "0"}
"""Nobody is refused for being late: what is compared is how long they wait."""


@dataclass(slots=True)
class Reader:
    """Has PDFs read while a phase is on, and remembers how long each took, and when."""

    server: ServerProcess
    phases: int
    phase_s: float
    times: list[tuple[float, bool]] = field(default_factory=list)
    """When each phase began, and whether it is on."""
    busy: list[tuple[float, float]] = field(default_factory=list)
    """From when to when there was something to be read."""
    took_s: list[float] = field(default_factory=list)
    progress: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def total_s(self) -> float:
        return self.phases * self.phase_s

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def counts_for(self, at: float) -> bool | None:
        """What a call that was due then counts for: with files being read, without, or neither."""
        for began, on in reversed(self.times):
            if at >= began:
                if not began + _SETTLE_S <= at < began + self.phase_s:
                    return None
                is_busy = any(first <= at < last + _SETTLE_S for first, last in self.busy)
                # One that was begun before a phase without files may have gone on into it.
                return on if is_busy == on else None
        return None

    def _run(self) -> None:
        with contextlib.suppress(httpx2.HTTPError):  # the server ends while a file is read
            self._read_all()

    def _read_all(self) -> None:
        client = httpx2.Client(base_url=self.server.base_url, timeout=60)
        pdfs = [report(_PAGES, seed=seed) for seed in range(self.phases * 4)]
        store = client.post("/vector_stores", json={"name": "bench"}).json()["id"]
        for phase in range(self.phases):
            # off, on, on, off, ...: neither is always the later one of a pair.
            on = phase % 4 in {1, 2}
            began = time.monotonic()
            self.times.append((began, on))
            while on and pdfs and time.monotonic() < began + self.phase_s - _SETTLE_S:
                self._read(client, store, pdfs.pop())
            time.sleep(max(0.0, began + self.phase_s - time.monotonic()))

    def _read(self, client: httpx2.Client, store: str, pdf: bytes) -> None:
        content = ("report.pdf", pdf, "application/pdf")
        form = {"purpose": "assistants"}
        file = client.post("/files", files={"file": content}, data=form).json()["id"]
        began = time.monotonic()
        client.post(f"/vector_stores/{store}/files", json={"file_id": file})
        while True:
            shown = client.get(f"/vector_stores/{store}/files/{file}").json()
            if shown["status"] != "in_progress":
                break
            self.progress.append(shown["progress"])
            time.sleep(_LOOK_S)
        over = time.monotonic()
        self.busy.append((began, over))
        self.took_s.append(over - began)
        if shown["status"] != "completed":
            self.problems.append(str(shown["last_error"]))


class Caller:
    """Asks one question after the other, waits for each answer, and reads it for a while."""

    def __init__(self, seed: int, reads_s: float) -> None:
        self._dice = random.Random(seed)
        self._reads_s = reads_s
        self._turn = 0

    def visit(self) -> Visit:
        self._turn += 1
        text = f"{self._dice.getrandbits(40)}: {prose(self._dice, _WORDS)}"
        body = {
            "model": Settings().model,
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "max_tokens": _TOKENS,
            "ignore_eos": True,
        }
        call = Call(json.dumps(body).encode(), f"chat-{id(self)}-{self._turn}")
        pause_s = self._dice.expovariate(1 / self._reads_s) if self._reads_s else 0.0
        return Visit(at_s=pause_s, call=call, group="chat", then=lambda _: self.visit())


def measure(phases: int, phase_s: float, callers: int, reads_s: float) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as folder:
        config = Path(folder) / "antiphon.toml"
        config.write_text(_SETTINGS, encoding="utf-8")
        with running_server(config, **_TAKE_ALL) as server:
            reader = Reader(server, phases, phase_s)
            visits = [Caller(seed, reads_s).visit() for seed in range(callers)]
            reader.start()
            crowd = attend(server.api, visits, for_s=reader.total_s, patience_s=_PATIENCE_S)
    return _figures(crowd, reader)


def _figures(crowd: Crowd, reader: Reader) -> list[Figure]:
    first: dict[bool, list[float]] = {True: [], False: []}
    for visit in crowd.visits:
        counts = reader.counts_for(visit.due_at)
        if counts is not None and visit.first_text_s is not None:
            first[counts].append(visit.first_text_s)
    p50, p99 = (
        {on: quantile(values, share) for on, values in first.items()} for share in (0.5, 0.99)
    )
    failed = [visit for visit in crowd.visits if visit.call.status != 200]
    return [
        explains("turns without files being read", len(first[False])),
        explains("turns while files are read", len(first[True])),
        must_be_true("every turn was answered", not failed),
        must_be_true("every file was read", not reader.problems),
        at_least(f"PDFs of {_PAGES} pages read", len(reader.took_s), 1),
        explains("time for one, p50", quantile(reader.took_s, 0.5), "s"),
        at_most("time for one, the longest", max(reader.took_s, default=0.0), _READ_S, "s"),
        at_least("steps of its progress that were seen", len(set(reader.progress)), 3),
        explains("first token, p50, without", p50[False] * 1000, "ms"),
        explains("first token, p50, with", p50[True] * 1000, "ms"),
        explains("first token, p99, without", p99[False] * 1000, "ms"),
        explains("first token, p99, with", p99[True] * 1000, "ms"),
        explains("first token, p50, with against without", p50[True] / p50[False]),
        at_most("first token, p99, with against without", p99[True] / p99[False], _COST),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.ingestion", description=__doc__)
    parser.add_argument("--phases", type=int, default=8, help="with and without, together")
    parser.add_argument("--seconds", type=float, default=45.0, help="of each phase")
    parser.add_argument("--callers", type=int, default=_CALLERS)
    parser.add_argument("--reads", type=float, default=_READS_S, help="seconds, mean")
    options = parser.parse_args()
    neighbours = Neighbours()
    figures = measure(options.phases, options.seconds, options.callers, options.reads)
    others = neighbours.share()
    figures.append(explains("used by others", others * 100, "% of all cores"))
    print(table(figures))
    if others > _QUIET:
        print("the machine was busy with something else: measure again", file=sys.stderr)
    return 0 if all(figure.holds is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
