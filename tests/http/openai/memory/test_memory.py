"""`/v1/memory` over the real store."""

import pytest

from antiphon.context_records import Memory, MemoryOrigin
from antiphon.context_settings import ContextSettings
from antiphon.http.openai.memory.schema import LONGEST_TEXT
from antiphon.ids import MemoryId, new_conversation_id
from antiphon.records import Conversation
from antiphon.testing.specimens import an_item

PATH = "/v1/memory"


async def remember(api, text: str) -> dict:
    answer = await api.client.post(PATH, json={"text": text})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def stated(api, text: str) -> Memory:
    """Something that was said in a conversation."""
    user = api.accounts.principal.user
    item = an_item(text)
    conversation = Conversation(id=new_conversation_id(), user=user, created_ms=1, updated_ms=1)
    memory = Memory(
        id=MemoryId("mem_said"),
        user=user,
        text=text,
        origin=MemoryOrigin.STATED,
        created_ms=2000,
        updated_ms=2000,
        conversation=conversation.id,
        item=item.id,
    )
    await api.store.run(lambda store: store.create_conversation(conversation, [item]))
    await api.store.run(lambda store: store.add_memories(user, [memory], most=200))
    return memory


async def test_what_is_written_down_is_remembered(api):
    made = await remember(api, "  I live in Bern. ")

    assert made["id"].startswith("mem_")
    assert made["created_at"] == made["updated_at"] > 0
    assert {name: made[name] for name in made.keys() - {"id", "created_at", "updated_at"}} == {
        "object": "memory",
        "text": "I live in Bern.",
        "origin": "added",
        "conversation_id": None,
        "item_id": None,
    }
    assert (await api.client.get(f"{PATH}/{made['id']}")).json() == made
    assert (await api.client.get(PATH)).json() == {
        "object": "list",
        "data": [made],
        "first_id": made["id"],
        "last_id": made["id"],
        "has_more": False,
    }


async def test_the_list_comes_in_pages(api):
    made = [await remember(api, f"I have {number} cats.") for number in range(5)]

    first = (await api.client.get(PATH, params={"limit": 2, "order": "asc"})).json()
    rest = (await api.client.get(PATH, params={"order": "asc", "after": first["last_id"]})).json()

    assert first["has_more"]
    # Made within a millisecond, they are in the order of their ids.
    assert {each["id"] for each in (*first["data"], *rest["data"])} == {each["id"] for each in made}
    assert (len(first["data"]), len(rest["data"]), rest["has_more"]) == (2, 3, False)
    lost = await api.client.get(PATH, params={"after": "mem_gone"})
    assert (lost.status_code, lost.json()["error"]["code"]) == (400, "invalid_cursor")


async def test_what_was_said_tells_where(api):
    memory = await stated(api, "I live in Bern.")

    shown = (await api.client.get(f"{PATH}/mem_said")).json()

    assert (shown["origin"], shown["conversation_id"], shown["item_id"]) == (
        "stated",
        memory.conversation,
        memory.item,
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_string"),
        ("   ", "empty_string"),
        ("x" * (LONGEST_TEXT + 1), "string_above_max_length"),
        ("two\nlines", "invalid_string"),
        ("a\u2028b", "invalid_string"),
        ("a\x1b[31m", "invalid_string"),
        (5, "invalid_type"),
    ],
)
async def test_what_is_no_line_of_text_is_refused(api, text, code):
    made = await remember(api, "I live in Bern.")
    for path in (PATH, f"{PATH}/{made['id']}"):
        answer = await api.client.post(path, json={"text": text})

        assert answer.status_code == 400
        assert (answer.json()["error"]["param"], answer.json()["error"]["code"]) == ("text", code)
    assert (await api.client.get(f"{PATH}/{made['id']}")).json() == made


async def test_a_line_may_be_as_long_as_is_said(api):
    assert (await remember(api, "é" * LONGEST_TEXT))["text"] == "é" * LONGEST_TEXT


@pytest.mark.parametrize("body", [{}, {"text": "x", "origin": "stated"}, {"txt": "x"}])
async def test_other_fields_are_refused(api, body):
    assert (await api.client.post(PATH, json=body)).status_code == 400


async def test_to_say_the_same_again_changes_nothing(api):
    made = await remember(api, "I live in Bern.")

    assert await remember(api, "i  live in BERN.") == made
    assert len((await api.client.get(PATH)).json()["data"]) == 1


async def test_what_was_said_and_is_written_down_too_is_the_users_own(api):
    memory = await stated(api, "I live in Bern.")

    assert (await remember(api, "I live in Bern."))["origin"] == "added"

    await api.client.delete(f"/v1/conversations/{memory.conversation}")
    assert len((await api.client.get(PATH)).json()["data"]) == 1


async def test_a_full_memory_says_how_full(api):
    api.live.context = ContextSettings(memory_entries=2)
    await remember(api, "one")
    await remember(api, "two")

    answer = await api.client.post(PATH, json={"text": "three"})

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "memory_full"
    assert "2 entries of at most 2" in error["message"]
    assert (await remember(api, "TWO"))["text"] == "two"


async def test_what_is_changed_is_the_users_own_words(api):
    await stated(api, "I live in Bern.")

    changed = (await api.client.post(f"{PATH}/mem_said", json={"text": "I live in Basel."})).json()

    assert (changed["text"], changed["origin"]) == ("I live in Basel.", "added")
    assert changed["updated_at"] > changed["created_at"]
    assert (await api.client.get(f"{PATH}/mem_said")).json() == changed


async def test_two_do_not_come_to_say_the_same(api):
    await remember(api, "one")
    other = await remember(api, "two")

    answer = await api.client.post(f"{PATH}/{other['id']}", json={"text": "ONE"})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "text")


async def test_what_is_forgotten_is_gone_with_a_receipt(api):
    made = await remember(api, "I live in Bern.")
    kept = await remember(api, "I have cats.")

    gone = (await api.client.delete(f"{PATH}/{made['id']}")).json()

    receipt = gone.pop("receipt")
    assert gone == {"id": made["id"], "object": "memory.deleted", "deleted": True}
    assert (receipt["subject"], receipt["rows"]["memories"]) == (made["id"], 1)
    for request in (
        api.client.get(f"{PATH}/{made['id']}"),
        api.client.post(f"{PATH}/{made['id']}", json={"text": "x"}),
        api.client.delete(f"{PATH}/{made['id']}"),
    ):
        assert (await request).status_code == 404
    assert [each["id"] for each in (await api.client.get(PATH)).json()["data"]] == [kept["id"]]


async def test_everything_is_forgotten_at_once(api):
    for number in range(3):
        await remember(api, f"I have {number} cats.")

    gone = (await api.client.delete(PATH)).json()

    assert gone["object"] == "memory.deleted"
    assert gone["receipt"]["rows"]["memories"] == 3
    assert (await api.client.get(PATH)).json()["data"] == []
    again = await api.client.delete(PATH)
    assert again.status_code == 200


async def test_what_was_said_goes_with_its_conversation(api):
    memory = await stated(api, "I live in Bern.")

    await api.client.delete(f"/v1/conversations/{memory.conversation}")

    assert (await api.client.get(f"{PATH}/mem_said")).status_code == 404


async def test_one_users_memory_is_nobody_elses(api, mallory):
    made = await remember(api, "I live in Bern.")
    api.accounts.principal = mallory
    own = await remember(api, "I live in Bern.")

    assert own["id"] != made["id"]
    assert [each["id"] for each in (await api.client.get(PATH)).json()["data"]] == [own["id"]]
    for request in (
        api.client.get(f"{PATH}/{made['id']}"),
        api.client.post(f"{PATH}/{made['id']}", json={"text": "I live in Rome."}),
        api.client.delete(f"{PATH}/{made['id']}"),
    ):
        assert (await request).status_code == 404
    lost = await api.client.get(PATH, params={"after": made["id"]})
    assert lost.json()["error"]["code"] == "invalid_cursor"
    assert (await api.client.delete(PATH)).json()["receipt"]["rows"]["memories"] == 1


async def test_a_users_memory_stays_when_another_forgets(api, mallory):
    made = await remember(api, "I live in Bern.")
    mine, api.accounts.principal = api.accounts.principal, mallory
    await api.client.delete(PATH)

    api.accounts.principal = mine
    assert (await api.client.get(f"{PATH}/{made['id']}")).json() == made


@pytest.mark.parametrize("id", ["x y", "é", "a" * 200, "mem_1%00"])
async def test_what_is_no_id_is_not_found(api, id):
    assert (await api.client.get(f"{PATH}/{id}")).status_code == 404


async def test_a_conversations_memory_is_asked_for_or_left_to_the_settings(api):
    made = [
        (await api.client.post("/v1/conversations", json=body)).json()
        for body in ({}, {"memory": True}, {"memory": False}, {"memory": None})
    ]

    assert [each["memory"] for each in made] == [None, True, False, None]
    shown = await api.client.get(f"/v1/conversations/{made[1]['id']}")
    assert shown.json()["memory"] is True


async def test_a_conversations_memory_is_changed_only_where_it_is_named(api):
    made = (await api.client.post("/v1/conversations", json={"memory": True})).json()
    path = f"/v1/conversations/{made['id']}"

    async def changed(**body: object) -> object:
        told = (await api.client.post(path, json=body)).json()["memory"]
        assert (await api.client.get(path)).json()["memory"] == told
        return told

    assert await changed(title="Ducks") is True
    assert await changed(memory=False) is False
    assert await changed(metadata={"a": "b"}) is False
    assert await changed(memory=None) is None
    wrong = await api.client.post(path, json={"memory": "yes"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "memory")


async def test_a_branch_has_the_memory_that_the_whole_has(api):
    made = (await api.client.post("/v1/conversations", json={"memory": False})).json()

    branch = (await api.client.post(f"/v1/conversations/{made['id']}/branch")).json()

    assert branch["memory"] is False
