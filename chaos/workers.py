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

import random
import re
import sys
import threading
import time
from collections import Counter
from typing import Any

import httpx2
import trio

from antiphon.context_records import Memory, Summary
from antiphon.ids import LOCAL_USER, ConversationId
from antiphon.persistence.bridge import open_store
from antiphon.records import Page
from antiphon.testing.process import ServerProcess
from chaos.lives import Client, Lives, Report, attack

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
_SITES = (
    "worker.done",
    *(
        f"worker.{step}[{kind}]"
        for step in ("step", "write", "written")
        for kind in ("title", "summary", "memory")
    ),
)
_LIFE_S = (1.0, 8.0)
_LONGEST_LIFE_S = 60.0
"""Of one that is to kill itself, and may never come to where it would."""
_PEOPLE = 3
_TURNS = 4
_PEACE_S = 180.0
"""For all that is left to be done."""
_RESTS = 10
"""Looks, a second apart: what waits is looked for every few seconds."""
_AGE = re.compile(rb"^antiphon_work_age_seconds (\S+)$", re.MULTILINE)
_FILLER = "Tell me of the sea. " + "It is wide and blue, and nobody knows how deep it is. " * 8


class Person:
    """Holds conversations until told to finish; `said` is what was said in each, by its id. One
    thread's own."""

    def __init__(self, number: int) -> None:
        self.client = Client()
        self.said: dict[str, str] = {}
        self._number = number
        self._keys = 0
        self._finished = threading.Event()

    def run(self) -> None:
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

    def _ask(self, path: str, body: dict[str, str]) -> dict[str, Any]:
        """Once, however often it takes."""
        self._keys += 1
        headers = {"Idempotency-Key": f"{self._number}-{self._keys}"}
        return self.client.ask(path, json=body, headers=headers)


def main() -> int:
    return attack(__doc__, _SETTINGS, _run, life_s=_LIFE_S, longest_s=_LONGEST_LIFE_S)


def _run(lives: Lives, kills: int, dice: random.Random) -> Report:
    report = Report()
    people = [Person(number) for number in range(_PEOPLE)]
    with lives.attacked(people, report, kills, dice, _SITES) as server:
        said = {id: fact for person in people for id, fact in person.said.items()}
        left = _wait_for_titles(server, said)
        report.problems += [f"{id} has no title in the end" for id in left]
        if not _is_all_done(server):
            report.problems.append(f"there is work left after {_PEACE_S:.0f} s")
    found = trio.run(_read, lives, list(said))
    _judge(report, said, *found)
    return report


def _wait_for_titles(server: ServerProcess, said: dict[str, str]) -> list[str]:
    """Conversations without one in the end."""
    left = list(said)
    deadline = time.monotonic() + _PEACE_S
    with httpx2.Client(base_url=server.base_url, timeout=30) as client:
        while left and time.monotonic() < deadline:
            left = [id for id in left if not client.get(f"/conversations/{id}").json()["title"]]
            time.sleep(1.0)
    return left


def _is_all_done(server: ServerProcess) -> bool:
    """Whether it comes to rest: no conversation has waited for work, look after look."""
    deadline = time.monotonic() + _PEACE_S
    idle = 0
    while idle < _RESTS and time.monotonic() < deadline:
        age = _AGE.search(server.get("/metrics")[1])
        idle = idle + 1 if age is not None and not float(age[1]) else 0
        time.sleep(1.0)
    return idle >= _RESTS


async def _read(
    lives: Lives, ids: list[str]
) -> tuple[dict[str, Summary | None], dict[str, int], list[Memory]]:
    """Summaries, how many items there are, and all memories."""
    summaries, items = {}, {}
    async with open_store(url=lives.url, data_dir=lives.data, migrated=False) as store:
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
    makers: Counter[str] = Counter()
    for id, fact in said.items():
        if times[fact] != 1:
            report.problems.append(f"{id}: {fact!r} is remembered {times[fact]} times")
        summary = summaries[id]
        if items[id] < 2 * _TURNS:
            continue
        if summary is None:
            report.problems.append(f"{id}: {items[id]} items and no summary")
            continue
        makers["extract" if summary.made_by == "extract" else "model"] += 1
        if summary.items % 2 or not summary.items < items[id]:
            report.problems.append(f"{id}: a summary of {summary.items} items of {items[id]}")
        if fact.removesuffix(".") not in summary.text:
            report.problems.append(f"{id}: {fact!r} isn't in {summary.text!r}")
    if doubled := [text for text, count in times.items() if count > 1]:
        report.problems.append(f"remembered twice: {doubled}")
    by = ", ".join(f"{count} by {who}" for who, count in makers.items())
    report.facts.append(f"{len(said)} conversations, {makers.total()} summaries: {by}")


if __name__ == "__main__":
    sys.exit(main())
