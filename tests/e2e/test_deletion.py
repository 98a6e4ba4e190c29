"""What is deleted is gone from every table, file, page and log of a real server, on both databases;
the marker's every form is looked for."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
import trio

from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.persistence.bridge import open_store
from antiphon.testing.corpus import (
    answered,
    chat,
    converse,
    items_of,
    mumble,
    request_for,
    respond_streamed,
    speak_everywhere,
    upload,
)
from antiphon.testing.dialogue import ENDLESS
from antiphon.testing.markers import Marker
from antiphon.testing.specimens import Writer, a_memory
from antiphon.testing.tenants import GuardedServer

pytestmark = pytest.mark.engine
OF_FILES = {
    *("files", "file_documents", "documents", "document_texts", "document_vectors"),
    *("chunks", "chunk_words"),
    *(f"chunk_index_{part}" for part in ("config", "content", "data", "docsize", "idx")),
}
"""Where a file is, and what was read of it."""


@pytest.fixture
def marker() -> Marker:
    return Marker()


@pytest.fixture(scope="module")
def person(guarded: GuardedServer) -> Iterator[httpx2.Client]:
    """A user without any word of theirs in their name."""
    with guarded.person("--user", f"person {Marker().word}") as client:
        yield client


def traces(guarded: GuardedServer, marker: Marker) -> dict[str, list[str]]:
    """Where the marker is, and how it looks there."""
    memory = guarded.memory()
    return {place: found for place, data in memory.items() if (found := marker.found_in(data))}


def tables_with(guarded: GuardedServer, marker: Marker) -> set[str]:
    tables = guarded.tables()
    return {
        name.rpartition(" ")[2].rpartition(".")[2]
        for name, data in tables.items()
        if marker.found_in(data)
    }


def learn(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker, id: str, items: list[str]
) -> None:
    """What background workers make of a conversation, with the marker in all of it: a summary, and
    memories of which one is changed and one is deleted."""
    user = UserId(answered(person.get("/users/me"))["id"])
    conversation, said = ConversationId(id), marker.said

    async def write() -> None:
        url = guarded.environment["ANTIPHON_DATABASE_URL"]
        async with open_store(url=url, data_dir=guarded.folder, migrated=False) as store:
            await Writer(store, user).summarised(conversation, len(items), f"{said} " * 40)
            memories = [
                a_memory(user, f"{n}: {said}", said=(conversation, ItemId(items[n])))
                for n in range(3)
            ]
            assert len(await store.add_memories(user, memories, most=9)) == 3
            await store.update_memory(user, memories[1].id, f"Changed: {said}", 1)
            await store.delete_memory(user, memories[1].id, 1)
            await store.delete_memory(user, memories[2].id, 1)

    trio.run(write)


def test_a_deleted_conversation_leaves_no_trace(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    file = upload(person, marker)
    id, items, responses = converse(person, marker, file)
    learn(guarded, person, marker, id, items)
    before = tables_with(guarded, marker)

    receipt = answered(person.delete(f"/conversations/{id}"))["receipt"]

    assert before >= {
        "conversations",
        "item_bodies",
        "response_bodies",
        "responses",
        "feedback",
        "files",
        "summaries",
        "memories",
    }
    assert traces(guarded, marker) == {}
    rows = receipt["rows"]
    assert rows["conversations"] == 1
    assert rows["items"] == rows["item_bodies"] == len(items)
    assert rows["responses"] == rows["response_bodies"] == rows["inference_traces"] == 2
    assert rows["feedback"] == rows["files"] == rows["file_uses"] == 1
    assert rows["idempotency_claims"] == rows["summaries"] == rows["memories"] == 1
    assert rows["memory_sources"] == 1
    assert rows["forgotten_memories"] == 3
    assert rows["response_events"] >= 2
    assert len(receipt["contents"]) == 1
    assert person.get(f"/files/{file}").status_code == 404
    tables = guarded.tables()
    for response in responses:
        assert person.get(f"/responses/{response}").status_code == 404
        named = [table for table, data in tables.items() if response.encode() in data]
        assert [table.rpartition("usage_entries")[1] for table in named] == ["usage_entries"]


def test_a_deleted_response_leaves_no_trace(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    conversation = answered(person.post("/conversations", json={}))["id"]
    other = Marker()
    inside = request_for(marker, conversation=conversation)
    whole = answered(person.post("/responses", json=inside))["id"]
    stays = answered(person.post("/responses", json=request_for(other, conversation=conversation)))[
        "id"
    ]
    streamed = respond_streamed(person, request_for(marker))
    chained = answered(
        person.post("/responses", json=request_for(marker, previous_response_id=streamed))
    )["id"]
    answered(person.post(f"/responses/{chained}/feedback", json={"rating": "up", "reason": "x"}))

    receipts = [answered(person.delete(f"/responses/{id}")) for id in (whole, streamed, chained)]

    assert traces(guarded, marker) == {}
    assert [each["id"] for each in receipts] == [whole, streamed, chained]
    kept = answered(person.get(f"/conversations/{conversation}/items"))
    assert len(kept["data"]) == 4
    assert tables_with(guarded, other) >= {"item_bodies", "response_bodies", "responses"}
    assert answered(person.get(f"/responses/{stays}"))["id"] == stays


def test_a_deleted_item_leaves_no_trace(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    file = upload(person, marker)
    id = answered(person.post("/conversations", json={}))["id"]
    body = {
        "role": "user",
        "content": [
            {"type": "input_text", "text": marker.said},
            {"type": "input_file", "file_id": file},
        ],
    }
    added = answered(person.post(f"/conversations/{id}/items", json={"items": [body]}))

    answered(person.delete(f"/conversations/{id}/items/{added['data'][0]['id']}"))

    assert not tables_with(guarded, marker) - OF_FILES, "a file outlives an item that used it"
    answered(person.delete(f"/files/{file}"))
    assert traces(guarded, marker) == {}


def test_the_words_of_a_deleted_answer_leave_its_events_too(
    guarded: GuardedServer, person: httpx2.Client
):
    id = answered(person.post("/conversations", json={}))["id"]
    marker = Marker()
    body = {
        "conversation": id,
        "input": "Say it.",
        "text": {
            "format": {
                "type": "json_schema",
                "name": "word",
                "schema": {"type": "string", "enum": [marker.word]},
            }
        },
        "max_output_tokens": 64,
    }
    response = answered(person.post("/responses", json=body))
    [item] = response["output"]
    assert marker.word in item["content"][0]["text"]

    answered(person.delete(f"/conversations/{id}/items/{item['id']}"))

    assert tables_with(guarded, marker) == {"response_bodies"}, "its schema, which is the request"
    again = person.get(f"/responses/{response['id']}", params={"stream": "true"})
    events = [json.loads(line[6:]) for line in again.text.splitlines() if line[:6] == "data: "]
    said = "".join(event["delta"] for event in events if "delta" in event)
    assert (said, events[-1]["type"]) == ("", "response.completed")


def test_a_deleted_file_leaves_no_trace(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    content = marker.said.encode() * 50_000
    files = [upload(person, marker, content) for _ in range(2)]

    first = answered(person.delete(f"/files/{files[0]}"))["receipt"]
    second = answered(person.delete(f"/files/{files[1]}"))["receipt"]

    # How much has been made of them by then depends on how far they were read.
    assert (first["rows"]["files"], first["contents"]) == (1, [])
    assert (second["rows"]["files"], len(second["contents"])) == (1, 1)
    assert not (first["rows"].keys() | second["rows"].keys()) - OF_FILES
    assert traces(guarded, marker) == {}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_deleted_stored_chat_leaves_no_trace(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker, stream: bool
):
    id = chat(person, marker, stream=stream)
    assert tables_with(guarded, marker) >= {"item_bodies", "responses"}

    assert answered(person.delete(f"/chat/completions/{id}"))["deleted"]

    assert traces(guarded, marker) == {}


def test_what_was_refused_or_not_to_be_kept_leaves_no_trace(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    statuses = list(mumble(person, marker))

    assert statuses[:4] == [200] * 4
    assert set(statuses[4:]) <= {200, 400, 401, 404, 405}, statuses
    assert traces(guarded, marker) == {}


def test_an_erased_user_leaves_no_trace(guarded: GuardedServer, marker: Marker):
    with guarded.person("--user", marker.said, "--name", marker.said) as person:
        corpus = speak_everywhere(person, marker)
        list(mumble(person, marker))
        items = answered(person.get(f"/conversations/{corpus.conversation_id}/items"))["data"]
        oldest = [item["id"] for item in reversed(items)]
        learn(guarded, person, marker, corpus.conversation_id, oldest)
        user = answered(person.get("/users/me"))["id"]
        assert tables_with(guarded, marker) >= {"users", "api_keys", "files", "conversations"}

        receipt = answered(person.delete("/users/me"))["receipt"]

    assert traces(guarded, marker) == {}
    rows = receipt["rows"]
    assert (rows["users"], rows["api_keys"], rows["conversations"]) == (1, 1, 2)
    assert (rows["responses"], rows["files"], len(receipt["contents"])) == (6, 2, 2)
    tables = guarded.tables()
    assert b"".join(tables.values()).count(user.encode()) == 1, "whom the receipt is about"
    rest = b"".join(data for name, data in tables.items() if "usage_entries" not in name)
    assert not [id for id in corpus.ids if id.encode() in rest]


def test_a_user_whom_an_operator_erases_leaves_no_trace(guarded: GuardedServer, marker: Marker):
    tenant = ("--tenant", f"tenant {marker.word}")
    boss = guarded.person("--user", "boss", *tenant, "--scope", "operator")
    with boss, guarded.person("--user", marker.said, *tenant) as person:
        user = answered(person.get("/users/me"))["id"]
        chat(person, marker)
        file = upload(person, marker)
        answered(person.post("/conversations", json={"items": items_of(marker, file)}))
        assert marker.found_in(person.get("/users/me/export").content)
        assert boss.get(f"/users/{user}/export").content == person.get("/users/me/export").content

        rows = answered(boss.delete(f"/users/{user}"))["receipt"]["rows"]
        answered(boss.delete("/users/me"))

    assert traces(guarded, marker) == {}
    assert (rows["users"], rows["api_keys"], rows["conversations"]) == (1, 1, 1)
    assert (rows["items"], rows["files"], rows["responses"]) == (14, 1, 1)


def running(person: httpx2.Client, marker: Marker, **fields: object) -> str:
    """A response that goes on until somebody ends it."""
    body = ENDLESS | {"instructions": marker.said, "background": True} | fields
    return str(answered(person.post("/responses", json=body))["id"])


def test_what_a_turn_runs_in_is_not_deleted_under_it(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    id = answered(person.post("/conversations", json={"title": marker.said}))["id"]
    response = running(person, marker, conversation=id)

    locked = person.delete(f"/conversations/{id}")
    busy = person.delete(f"/responses/{response}")
    answered(person.post(f"/responses/{response}/cancel"))
    answered(person.delete(f"/conversations/{id}"))

    assert (locked.status_code, locked.json()["error"]["code"]) == (400, "conversation_locked")
    assert (busy.status_code, busy.json()["error"]["code"]) == (400, "response_in_progress")
    assert traces(guarded, marker) == {}


def test_a_user_is_erased_also_while_an_answer_runs_and_is_watched(
    guarded: GuardedServer, marker: Marker
):
    person = guarded.person("--user", marker.said)
    begun = threading.Event()

    def watch() -> str:
        text = ""
        watching = person.stream("GET", f"/responses/{response}", params={"stream": "true"})
        with watching as reply:
            try:
                for piece in reply.iter_text():
                    text += piece
                    if "output_text.delta" in text:
                        begun.set()
            except httpx2.RemoteProtocolError:
                return f"{text}\ncut"
        return text

    with person, ThreadPoolExecutor() as pool:
        response = running(person, marker)
        watched = pool.submit(watch)
        assert begun.wait(30)
        answered(person.delete("/users/me"))
        text = watched.result(30)

    assert "response.completed" not in text
    assert text.endswith("cut") or '"response.incomplete"' in text or '"response.failed"' in text
    guarded.process.log.wait_for(
        "request_finished",
        within_s=30,
        matching=lambda line: line["route"] == "/v1/users/me" and line["method"] == "DELETE",
    )
    assert traces(guarded, marker) == {}
    slots = guarded.process.slots()
    assert {slot["state"] for slot in slots} <= {"free", "releasing"}, slots


def test_a_download_that_has_begun_ends_whole_and_the_file_is_gone(
    guarded: GuardedServer, person: httpx2.Client, marker: Marker
):
    content = marker.said.encode() * 200_000
    file = upload(person, marker, content)

    with person.stream("GET", f"/files/{file}/content") as reply:
        pieces = reply.iter_bytes(64 * 1024)
        got = next(pieces)
        answered(person.delete(f"/files/{file}"))
        got += b"".join(pieces)

    assert got == content
    assert traces(guarded, marker) == {}
