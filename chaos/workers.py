"""`make chaos-workers`: a real server that is killed again and again while it makes titles,
summaries and memories.

    python -m chaos.workers --kills 40 --database sqlite

People hold conversations in which each says one thing that nobody else says, and go on until there
is enough for a summary. Every other life of the server kills itself at one of its workers' steps:
before something is made, before it is written, after that, before the store is told; the others
are killed at any moment. In the end one server works in peace: then every conversation has its
title, the long ones have a summary of whole turns, and what was said is remembered once. Ends with
status 1 when that isn't so.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import trio

from antiphon.context_records import Memory, Summary
from antiphon.ids import LOCAL_USER, ConversationId
from antiphon.persistence.bridge import open_store
from antiphon.records import Page
from antiphon.testing.databases import private_postgres
from antiphon.testing.process import ServerProcess, running_server

_SETTINGS = """
[context]
memory = true
memory_entries = 1000
history_share = 0.05
keep_share = 0.3
summary_tokens = 96
[generation]
default_max_tokens = 16
"""
"""A conversation of four turns is a long one."""
_SITES = ("worker.step", "worker.write", "worker.written", "worker.done")
_KINDS = ("title", "summary", "memory")
_LIFE_S = (1.0, 8.0)
_LONGEST_LIFE_S = 60.0
"""Of one that is to kill itself, and may never come to where it would."""
_PEOPLE = 3
_TURNS = 4
_TRY_FOR_S = 240.0
_WAIT_S = 0.2
_PEACE_S = 180.0
"""For all that is left to be done."""
_FILLER = "Tell me of the sea. " + "It is wide and blue, and nobody knows how deep it is. " * 8


@dataclass(slots=True)
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    conversations: int = 0
    summaries: int = 0
    models: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Person:
    """Holds conversations until told to finish; `said` is what was said in each, by its id. One
    thread's own, but for `base_url`."""

    def __init__(self, number: int) -> None:
        self.base_url: str | None = None
        self.said: dict[str, str] = {}
        self._number = number
        self._keys = 0
        self._finished = threading.Event()

    def talk(self) -> None:
        """A thread's work."""
        while not self._finished.is_set():
            conversation = self._ask("/conversations", {})["id"]
            fact = f"I live in Town{self._number}x{len(self.said)}."
            self.said[conversation] = fact
            for turn in range(_TURNS):
                text = f"{fact} What is good there?" if turn == 0 else f"{turn}: {_FILLER}"
                body = {"model": "smollm2-135m-instruct", "conversation": conversation}
                self._ask("/responses", {**body, "input": text})

    def finish(self) -> None:
        """After the conversation at hand."""
        self._finished.set()

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._keys += 1
        headers = {"Idempotency-Key": f"{self._number}-{self._keys}"}
        deadline = time.monotonic() + _TRY_FOR_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx2.HTTPError, TypeError, ValueError):
                answer = httpx2.post(
                    f"{self.base_url}{path}", json=body, headers=headers, timeout=60
                )
                if answer.status_code == 200:
                    told: dict[str, Any] = answer.json()
                    return told
            time.sleep(_WAIT_S)
        raise RuntimeError(f"no answer from {path} in {_TRY_FOR_S:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, database(options.database, folder) as url:
        config = Path(folder) / "antiphon.toml"
        config.write_text(_SETTINGS, encoding="utf-8")
        report = _run(config, url, options.kills, random.Random(options.seed))
        report.problems += checked(config, url)
    _print(report)
    return 1 if report.problems else 0


@contextlib.contextmanager
def database(kind: str, folder: str) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{Path(folder) / 'chaos.db'}"
        return
    with private_postgres() as postgres:
        yield postgres.fresh()


def _run(config: Path, url: str, kills: int, dice: random.Random) -> Report:
    report = Report()
    people = [Person(number) for number in range(_PEOPLE)]
    threads = [threading.Thread(target=person.talk, daemon=True) for person in people]
    for number in range(kills):
        _one_life(config, url, people, report, dice, by_itself=number % 2 == 1)
        if number == 0:
            for thread in threads:
                thread.start()
    for person in people:
        person.finish()
    with running_server(config, ANTIPHON_DATABASE_URL=url) as server:
        _lead(people, server)
        for thread in threads:
            thread.join(_TRY_FOR_S)
            if thread.is_alive():
                report.problems.append(f"{thread.name} hangs")
        said = {id: fact for person in people for id, fact in person.said.items()}
        report.conversations = len(said)
        left = _wait_for_titles(server, said)
        report.problems += [f"{id} has no title in the end" for id in left]
        time.sleep(_LIFE_S[1])
    found = trio.run(_read, url, config.parent, list(said))
    _judge(report, said, *found)
    return report


def _one_life(
    config: Path,
    url: str,
    people: list[Person],
    report: Report,
    dice: random.Random,
    *,
    by_itself: bool,
) -> None:
    site, kind, nth = dice.choice(_SITES), dice.choice(_KINDS), dice.randint(1, 3)
    at = "" if site == "worker.done" else f"[{kind}]"
    faults = {"ANTIPHON_FAULTS": f"{site}{at}=kill#{nth}"} if by_itself else {}
    how = f"at {site}{at}" if by_itself else "at any moment"
    with running_server(config, ANTIPHON_DATABASE_URL=url, **faults) as server:
        _lead(people, server)
        if by_itself:
            try:
                server.process.wait(_LONGEST_LIFE_S)
            except subprocess.TimeoutExpired:
                how = "where it would not have come to it"
        else:
            time.sleep(dice.uniform(*_LIFE_S))
        server.process.kill()
        server.process.wait()
    report.kills[how] += 1


def _lead(people: list[Person], server: ServerProcess) -> None:
    for person in people:
        person.base_url = server.base_url


def _wait_for_titles(server: ServerProcess, said: dict[str, str]) -> list[str]:
    """Conversations without one in the end."""
    left = list(said)
    deadline = time.monotonic() + _PEACE_S
    with httpx2.Client(base_url=server.base_url, timeout=30) as client:
        while left and time.monotonic() < deadline:
            left = [id for id in left if not client.get(f"/conversations/{id}").json()["title"]]
            time.sleep(1.0)
    return left


async def _read(
    url: str, folder: Path, ids: list[str]
) -> tuple[dict[str, Summary | None], dict[str, int], list[Memory]]:
    """Summaries, how many items there are, and all memories."""
    summaries, items = {}, {}
    async with open_store(url=url, data_dir=folder, migrated=False) as store:
        for id in ids:
            conversation = ConversationId(id)
            summaries[id] = await store.summary(LOCAL_USER, conversation)
            page = await store.items(LOCAL_USER, conversation, Page(limit=100))
            items[id] = len(page or ())
        memories = list(await store.memories(LOCAL_USER, Page(limit=1000)))
    return summaries, items, memories


def _judge(
    report: Report,
    said: dict[str, str],
    summaries: dict[str, Summary | None],
    items: dict[str, int],
    memories: list[Memory],
) -> None:
    times = Counter(memory.text for memory in memories)
    for id, fact in said.items():
        if times[fact] != 1:
            report.problems.append(f"{id}: {fact!r} is remembered {times[fact]} times")
        summary = summaries[id]
        if items[id] < 2 * _TURNS:
            continue
        if summary is None:
            report.problems.append(f"{id}: {items[id]} items and no summary")
            continue
        report.summaries += 1
        report.models["extract" if summary.made_by == "extract" else "model"] += 1
        if summary.items % 2 or not summary.items < items[id]:
            report.problems.append(f"{id}: a summary of {summary.items} items of {items[id]}")
        if fact.removesuffix(".") not in summary.text:
            report.problems.append(f"{id}: {fact!r} isn't in {summary.text!r}")
    if doubled := [text for text, count in times.items() if count > 1]:
        report.problems.append(f"remembered twice: {doubled}")


def checked(config: Path, url: str) -> list[str]:
    """What the program's own check of the database finds."""
    checked = subprocess.run(
        [sys.executable, "-m", "antiphon", "--config", str(config), "db", "check"],
        env={**os.environ, "ANTIPHON_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return [] if checked.returncode == 0 else [f"db check: {checked.stdout}{checked.stderr}"]


def _print(report: Report) -> None:
    for how, count in sorted(report.kills.items()):
        print(f"killed {how}: {count}")
    print(f"{report.conversations} conversations, {report.summaries} summaries:", end=" ")
    print(", ".join(f"{count} by {who}" for who, count in report.models.items()))
    for problem in report.problems:
        print("PROBLEM", problem)


if __name__ == "__main__":
    sys.exit(main())
