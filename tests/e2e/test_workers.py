"""Titles, summaries and memories that a real server makes with the real model, on each database."""

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
import trio

from antiphon.context_records import Summary
from antiphon.ids import LOCAL_USER, ConversationId
from antiphon.persistence.bridge import open_store
from antiphon.records import Page
from antiphon.storage import Store
from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine

R = TypeVar("R")
SETTINGS = """
[context]
history_share = 0.05
keep_share = 0.3
summary_tokens = 96
[generation]
default_max_tokens = 24
"""
"""So that a conversation of a few turns is a long one."""
ABOUT_ME = "My name is Mia and my daughter Lea turns 7 on May 3."
LONG = "Tell me of the sea. " + "It is wide and blue, and nobody knows how deep it is. " * 12
WITHIN_S = 60.0


@dataclass(frozen=True)
class Place:
    """A server, and where its database is."""

    server: ServerProcess
    client: httpx2.Client
    url: str
    folder: Path

    def say(self, conversation: str, text: str) -> dict[str, Any]:
        body = {"model": "smollm2-135m-instruct", "conversation": conversation, "input": text}
        answer = self.client.post("/responses", json={**body, "temperature": 0})
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said

    def begin(self, **fields: Any) -> str:
        id: str = self.client.post("/conversations", json=fields).json()["id"]
        return id

    def read(self, work: Callable[[Store], Awaitable[R]]) -> R:
        """In the database itself."""

        async def ask() -> R:
            async with open_store(url=self.url, data_dir=self.folder, migrated=False) as store:
                return await work(store)

        return trio.run(ask)

    def wait(self, found: Callable[[], R | None]) -> R:
        deadline = time.monotonic() + WITHIN_S
        while (what := found()) is None:
            assert time.monotonic() < deadline, self.server.log.end()
            time.sleep(0.25)
        return what

    def title(self, conversation: str) -> str | None:
        title: str | None = self.client.get(f"/conversations/{conversation}").json()["title"]
        return title

    def summary(self, conversation: str, items: int) -> Summary | None:
        """Of at least so many items."""
        id = ConversationId(conversation)
        found = self.read(lambda store: store.summary(LOCAL_USER, id))
        return found if found is not None and found.items >= items else None

    def texts(self) -> list[str]:
        memories = self.read(lambda store: store.memories(LOCAL_USER, Page()))
        return [memory.text for memory in memories]


def places(folder: Path, postgres: PrivatePostgres | None, **environment: str) -> Iterator[Place]:
    settings = folder / "antiphon.toml"
    settings.write_text(SETTINGS, encoding="utf-8")
    url = f"sqlite:///{folder}/antiphon.db" if postgres is None else postgres.another()
    with (
        running_server(settings, ANTIPHON_DATABASE_URL=url, **environment) as server,
        httpx2.Client(base_url=server.base_url, timeout=60) as client,
    ):
        yield Place(server, client, url, folder)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def place(
    request: pytest.FixtureRequest, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    is_on_postgres = request.param == "postgresql"
    postgres = request.getfixturevalue("postgres") if is_on_postgres else None
    yield from places(tmp_path_factory.mktemp("workers"), postgres)


@pytest.fixture
def slow_place(model_dir: Path, tmp_path: Path) -> Iterator[Place]:
    """Workers wait before they write."""
    yield from places(tmp_path, None, ANTIPHON_FAULTS="seed=1 worker.write=slow:4@1")


def test_a_conversation_gets_a_title_unless_it_has_one(place: Place):
    ours, mine = place.begin(), place.begin(title="Mine")
    for conversation in (ours, mine):
        place.say(conversation, "How do I sort a list of numbers in Python?")

    title = place.wait(lambda: place.title(ours))

    assert 2 <= len(title) <= 60
    assert "sort" in title.lower()
    assert place.title(mine) == "Mine"


def test_a_long_conversation_is_summarised_and_the_manifest_says_so(place: Place):
    conversation = place.begin()
    place.say(conversation, ABOUT_ME)
    for _ in range(3):
        place.say(conversation, LONG)

    summary = place.wait(lambda: place.summary(conversation, 6))
    runs = place.say(conversation, "What is my daughter called?")["context"]["runs"]

    assert "Lea" in summary.text
    assert "May 3" in summary.text
    fates = {run["fate"]: run["items"] for run in runs}
    assert fates["summarised"] == summary.items
    assert "dropped" not in fates


def test_what_is_said_is_remembered_where_there_is_a_memory(place: Place):
    without, having = place.begin(memory=False), place.begin(memory=True)
    place.say(without, "My name is Eve.")
    place.say(having, ABOUT_ME)

    place.wait(lambda: place.texts() or None)
    place.wait(lambda: place.title(without))

    assert place.texts() == [ABOUT_ME]
    assert place.client.delete(f"/conversations/{having}").status_code == 200
    assert place.texts() == []


def test_a_conversation_that_is_deleted_at_work_leaves_nothing(slow_place: Place):
    place = slow_place
    conversation = place.begin(memory=True)
    place.say(conversation, ABOUT_ME)
    place.server.log.wait_for("fault_injected", within_s=WITHIN_S)

    deleted = place.client.delete(f"/conversations/{conversation}")
    place.wait(lambda: place.server.metric("antiphon_work_age_seconds") == 0 or None)
    stored = place.read(lambda store: store.export_user(LOCAL_USER))

    assert deleted.status_code == 200
    assert stored is not None
    assert (stored["conversations"], stored["memories"]) == ([], [])
