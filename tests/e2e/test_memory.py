"""What is remembered of a user, through openai-python's own requests, on each database."""

from typing import Any

import httpx2
import openai
import pytest

pytestmark = pytest.mark.engine

MODEL = "smollm2-135m-instruct"


@pytest.fixture
def memory(keeper: openai.OpenAI) -> "Memory":
    """Of the local user, empty before and after."""
    memory = Memory(keeper)
    memory.forget()
    yield memory
    memory.forget()


class Memory:
    """OpenAI's API has none, so requests are the SDK's raw ones."""

    def __init__(self, client: openai.OpenAI) -> None:
        self._client = client

    def add(self, text: str) -> dict[str, Any]:
        return self._client.post("/memory", body={"text": text}, cast_to=dict)

    def all(self, **options: Any) -> dict[str, Any]:
        return self._client.get("/memory", options={"params": options}, cast_to=dict)

    def change(self, id: str, text: str) -> dict[str, Any]:
        return self._client.post(f"/memory/{id}", body={"text": text}, cast_to=dict)

    def forget(self, id: str | None = None) -> dict[str, Any]:
        path = "/memory" if id is None else f"/memory/{id}"
        return self._client.delete(path, cast_to=dict)


def test_a_memory_is_kept_changed_and_forgotten(memory: Memory):
    made = memory.add("I live in Bern.")
    changed = memory.change(made["id"], "I live in Basel.")
    listed = memory.all(limit=1)
    gone = memory.forget(made["id"])

    assert (made["object"], made["origin"]) == ("memory", "added")
    assert changed["text"] == "I live in Basel."
    assert listed["data"] == [changed]
    assert (gone["deleted"], gone["receipt"]["rows"]["memories"]) == (True, 1)
    with pytest.raises(openai.NotFoundError):
        memory.change(made["id"], "again")
    assert memory.all()["data"] == []


def test_it_is_shown_where_a_conversation_has_it_and_nowhere_else(
    memory: Memory, keeper: openai.OpenAI
):
    memory.add("I live in Bern.")

    def shown(on: bool | None) -> list[str]:
        conversation = keeper.conversations.create(extra_body={"memory": on})
        assert conversation.to_dict()["memory"] is on
        answer = keeper.responses.create(
            model=MODEL, input="Where do I live?", conversation=conversation.id,
            max_output_tokens=16,
        )  # fmt: skip
        return [run["kind"] for run in answer.to_dict()["context"]["runs"]]

    assert "memory" in shown(True)
    assert "memory" not in shown(False)
    assert "memory" not in shown(None)  # as the settings say by default


def test_it_can_be_put_off_and_on_in_a_conversation(memory: Memory, keeper: openai.OpenAI):
    memory.add("I live in Bern.")
    conversation = keeper.conversations.create()
    kinds = []
    for on in (True, False):
        keeper.conversations.update(conversation.id, metadata={}, extra_body={"memory": on})
        answer = keeper.responses.create(
            model=MODEL, input="Hello!", conversation=conversation.id, max_output_tokens=16
        )
        kinds.append({run["kind"] for run in answer.to_dict()["context"]["runs"]})

    assert [("memory" in each) for each in kinds] == [True, False]


def test_nobody_sees_or_touches_anothers_memory(guarded):
    with guarded.person("--user", "ada") as ada, guarded.person("--user", "eve") as eve:
        made = _json(ada.post("memory", json={"text": "I live in Bern."}))
        tries = [
            eve.get(f"memory/{made['id']}"),
            eve.post(f"memory/{made['id']}", json={"text": "I live in Rome."}),
            eve.delete(f"memory/{made['id']}"),
        ]
        eves = _json(eve.get("memory"))
        forgotten = _json(eve.delete("memory"))
        conversation = _json(eve.post("conversations", json={"memory": True}))
        answer = _json(
            eve.post(
                "responses",
                json={
                    "model": MODEL,
                    "input": "Where do I live?",
                    "conversation": conversation["id"],
                    "max_output_tokens": 16,
                },
            )
        )
        left = _json(ada.get("memory"))

    assert [each.status_code for each in tries] == [404, 404, 404]
    assert (eves["data"], forgotten["receipt"]["rows"].get("memories", 0)) == ([], 0)
    assert "memory" not in {run["kind"] for run in answer["context"]["runs"]}
    assert left["data"] == [made]


def test_what_is_forgotten_is_nowhere_any_more(guarded):
    secret = "quetzalcoatlus"
    with guarded.person("--user", "ada") as ada:
        made = _json(ada.post("memory", json={"text": f"I am called {secret}."}))
        assert any(secret.encode() in each for each in guarded.memory().values())
        ada.delete(f"memory/{made['id']}").raise_for_status()
        places = [place for place, each in guarded.memory().items() if secret.encode() in each]

    assert places == []


def _json(answer: httpx2.Response) -> dict[str, Any]:
    answer.raise_for_status()
    return answer.json()
