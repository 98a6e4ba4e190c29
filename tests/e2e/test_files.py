"""Files in context through openai-python, unmodified: uploaded, put into a vector store, searched
in, shown to a model and cited. The engine is a script, so that it cites what it is to cite; all
else is the real server."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest
import tokenizers

from antiphon.events import Admit
from antiphon.testing.scripted_server import ScriptedServer, scripted_server

pytestmark = pytest.mark.engine

PUMPS = """# Pumps

The feed pump in hall seven runs at 40 bar and is checked every Tuesday by Mr. Quillon.

# Valves

The red valve opens to the left, and only by hand.

# Lamps

All lamps of the north wing are changed in March.
"""


@dataclass(slots=True)
class Model:
    """What the scripted model says, and what it was shown last."""

    words: tuple[str, ...] = ("ok",)
    admitted: list[Admit] = field(default_factory=list)

    def answer(self, admit: Admit) -> tuple[str, ...]:
        self.admitted.append(admit)
        return self.words


@pytest.fixture(scope="module")
def said() -> Model:
    return Model()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, said: Model) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path_factory.mktemp("data"), said.answer) as server:
        yield server


@pytest.fixture
def client(server: ScriptedServer, said: Model) -> Iterator[openai.OpenAI]:
    said.words = ("ok",)
    base_url = f"{server.api}/v1"
    with openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0) as client:
        yield client


def shown(server: ScriptedServer, said: Model) -> str:
    """The last prompt, as text."""
    assert server.server is not None
    known = server.server.pools[0].engine.pool.tokenizer
    parts = vars(known).values()
    vocabulary, *_ = (each for each in parts if isinstance(each, tokenizers.Tokenizer))
    return str(vocabulary.decode(said.admitted[-1].prompt, skip_special_tokens=False))


def upload(client: openai.OpenAI, name: str, text: str, purpose: Any = "assistants") -> str:
    return client.files.create(file=(name, text.encode()), purpose=purpose).id


def made_store(client: openai.OpenAI, name: str = "pumps.md", text: str = PUMPS) -> tuple[str, str]:
    """A vector store with one file in it that is ready, and that file."""
    file = upload(client, name, text)
    store = client.vector_stores.create(name="plant")
    added = client.vector_stores.files.create_and_poll(
        file, vector_store_id=store.id, max_wait_seconds=60
    )
    assert added.status == "completed", added
    return store.id, file


def long_text(last: str) -> str:
    """Too long to be shown whole."""
    dull = "Nothing of note happens in this part of the tale. " * 60
    parts = [f"# Part {number}\n\n{dull}" for number in range(12)]
    return "\n\n".join([*parts, f"# The end\n\n{last}"])


def tool(store: str, **fields: Any) -> Any:
    return [{"type": "file_search", "vector_store_ids": [store], **fields}]


def files_of(response: Any) -> list[dict[str, Any]]:
    return list(response.to_dict()["context"]["files"])


def test_a_file_is_uploaded_read_searched_and_taken_out_again(client: openai.OpenAI):
    store, file = made_store(client)

    whole = client.vector_stores.retrieve(store)
    found = client.vector_stores.search(store, query="At which pressure does the pump run?")
    content = client.vector_stores.files.content(file, vector_store_id=store)
    listed = list(client.vector_stores.files.list(store, filter="completed"))
    gone = client.vector_stores.files.delete(file, vector_store_id=store)

    assert (whole.status, whole.file_counts.completed, whole.file_counts.total) == (
        *("completed", 1, 1),
    )
    assert whole.usage_bytes > 0
    best = found.data[0]
    assert "40 bar" in best.content[0].text
    assert (best.file_id, best.filename) == (file, "pumps.md")
    assert 0 < best.score <= 1
    assert [each.score for each in found.data] == sorted(
        (each.score for each in found.data), reverse=True
    )
    assert "Mr. Quillon" in "".join(part.text or "" for part in content)
    assert [each.id for each in listed] == [file]
    assert gone.deleted
    assert client.vector_stores.search(store, query="pump").data == []
    assert client.files.retrieve(file).id == file, "the file itself stays"
    assert client.vector_stores.delete(store).deleted
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.retrieve(store)


def test_many_files_are_put_in_together_and_found_by_their_attributes(client: openai.OpenAI):
    store = client.vector_stores.create()
    one = upload(client, "a.txt", "The harvest festival is in September.")
    other = upload(client, "b.txt", "The harvest festival is in October.")
    batch = client.vector_stores.file_batches.create(
        store.id,
        files=[
            {"file_id": one, "attributes": {"year": 2024}},
            {"file_id": other, "attributes": {"year": 2025}},
        ],
    )
    batch = client.vector_stores.file_batches.poll(batch.id, vector_store_id=store.id)

    def years(filters: Any) -> set[str]:
        found = client.vector_stores.search(
            store.id, query="When is the harvest festival?", filters=filters
        )
        return {each.file_id for each in found.data}

    assert (batch.status, batch.file_counts.completed) == ("completed", 2)
    assert years({"type": "eq", "key": "year", "value": 2025}) == {other}
    assert years({"type": "gt", "key": "year", "value": 2000}) == {one, other}
    both = {
        "type": "and",
        "filters": [
            {"type": "gte", "key": "year", "value": 2024},
            {"type": "ne", "key": "year", "value": 2025},
        ],
    }
    assert years(both) == {one}
    client.vector_stores.files.update(one, vector_store_id=store.id, attributes={"year": 1999})
    assert years(both) == set()
    in_batch = client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id)
    assert {each.id for each in in_batch} == {one, other}


def test_a_store_is_listed_changed_and_read_backwards(client: openai.OpenAI):
    made = [client.vector_stores.create(name=f"store {number}") for number in range(3)]
    changed = client.vector_stores.update(
        made[0].id,
        name="another",
        metadata={"a": "b"},
        expires_after={"anchor": "last_active_at", "days": 2},
    )

    newest = client.vector_stores.list(limit=2).data
    before = client.vector_stores.list(before=newest[1].id, limit=2).data

    assert (changed.name, changed.metadata) == ("another", {"a": "b"})
    assert changed.expires_at == (changed.last_active_at or 0) + 2 * 86_400
    assert [each.id for each in newest] == [made[2].id, made[1].id]
    assert [each.id for each in before] == [made[2].id]


def test_the_same_key_makes_one_store(client: openai.OpenAI):
    headers = {"Idempotency-Key": "one store"}

    first = client.vector_stores.create(name="a", extra_headers=headers)
    again = client.vector_stores.create(name="a", extra_headers=headers)

    assert first.id == again.id


def test_what_can_not_be_read_says_why(client: openai.OpenAI):
    file = client.files.create(file=("a.bin", bytes(range(256)) * 8), purpose="assistants")
    store = client.vector_stores.create(file_ids=[file.id])

    added = client.vector_stores.files.poll(file.id, vector_store_id=store.id)

    assert added.status == "failed"
    assert added.last_error is not None
    assert added.last_error.code in {"unsupported_file", "invalid_file"}
    assert added.last_error.message
    with pytest.raises(openai.BadRequestError):
        client.vector_stores.files.content(file.id, vector_store_id=store.id)


def test_a_response_searches_cites_and_never_shows_a_mark(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    store, file = made_store(client)
    said.words = ("It", " runs", " at", " 40", " bar", " 【", "1", "】", ".")

    response = client.responses.create(
        model=server.model,
        input="At which pressure does the feed pump run?",
        tools=tool(store, max_num_results=2),
        include=["file_search_call.results"],
    )

    call, message = response.output
    assert call.type == "file_search_call"
    assert (call.status, call.queries) == (
        *("completed", ["At which pressure does the feed pump run?"]),
    )
    assert call.results is not None
    assert "40 bar" in (call.results[0].text or "")
    assert message.type == "message"
    [part] = message.content
    assert part.type == "output_text"
    assert part.text == "It runs at 40 bar."
    [cited] = part.annotations
    assert cited.type == "file_citation"
    assert (cited.file_id, cited.filename, cited.index) == (file, "pumps.md", 17)
    prompt = shown(server, said)
    assert '【1】 File "pumps.md"' in prompt
    assert prompt.index("40 bar") < prompt.index("At which pressure")
    [manifest] = files_of(response)
    assert (manifest["file_id"], manifest["fate"]) == (file, "excerpts")
    runs = response.to_dict()["context"]["runs"]
    assert [run["kind"] for run in runs] == ["retrieved", "input"]


def test_its_events_come_in_order_and_once_more_from_the_store(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    store, _ = made_store(client)
    said.words = ("At", " 40", "【1", "】", " bar")
    asked: Any = {"model": server.model, "input": "The pressure?", "tools": tool(store)}

    with client.responses.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    told = [event.type for event in events]
    again = [event.type for event in client.responses.retrieve(final.id, stream=True)]

    assert told[:8] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.output_item.done",
        "response.output_item.added",
    ]
    assert told.count("response.output_text.annotation.added") == 1
    assert "【" not in "".join(
        event.delta for event in events if event.type == "response.output_text.delta"
    )
    assert final.output_text == "At 40 bar"
    assert final.output[0].results is None, "nobody asked for them"  # type: ignore[union-attr]
    shown_again = client.responses.retrieve(final.id, include=["file_search_call.results"])
    assert shown_again.output[0].results, "now somebody does"  # type: ignore[union-attr]
    assert again == told


def test_a_search_is_an_item_of_its_conversation_and_is_not_shown_again(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    store, _ = made_store(client)
    conversation = client.conversations.create()
    asked: Any = {"model": server.model, "conversation": conversation.id}
    first = client.responses.create(**asked, input="The pressure?", tools=tool(store))

    client.responses.create(**asked, input="And the valve?")
    kinds = [item.type for item in client.conversations.items.list(conversation.id, order="asc")]

    assert kinds == ["message", "file_search_call", "message", "message", "message"]
    assert "40 bar" not in shown(server, said)
    sent_back = client.responses.create(
        model=server.model,
        store=False,
        input=[
            {"role": "user", "content": "The pressure?"},
            *(item.to_dict() for item in first.output),
            {"role": "user", "content": "And?"},
        ],  # type: ignore[list-item]
    )
    assert sent_back.status == "completed"


def test_choices_of_tools_say_whether_there_is_a_search(
    client: openai.OpenAI, server: ScriptedServer
):
    store, _ = made_store(client)

    def kinds(choice: Any, tools: Any = None) -> list[str]:
        response = client.responses.create(
            model=server.model, input="x", tools=tools or tool(store), tool_choice=choice
        )
        return [item.type for item in response.output]

    assert kinds("none") == ["message"]
    for choice in ("auto", "required", {"type": "file_search"}):
        assert kinds(choice) == ["file_search_call", "message"]
    for tools, choice in (([], {"type": "file_search"}), (tool(store) * 2, "auto")):
        with pytest.raises(openai.BadRequestError):
            kinds(choice, tools or [{"type": "function", "name": "f", "parameters": {}}])


def test_nothing_found_is_said_to_the_model(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    store = client.vector_stores.create()

    response = client.responses.create(
        model=server.model, input="The pressure?", tools=tool(store.id)
    )

    assert response.output[0].type == "file_search_call"
    assert "Nothing in the files that were searched matches" in shown(server, said)


def test_a_small_file_is_shown_whole_and_again_with_the_next_message(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    file = upload(client, "word.txt", "The code word is PELICAN.", "user_data")
    conversation = client.conversations.create()
    asked: Any = {"model": server.model, "conversation": conversation.id}
    part = {"type": "input_file", "file_id": file}
    text = {"type": "input_text", "text": "What is the code word?"}
    said.words = ("Pelican", "【1】", ".")

    first = client.responses.create(**asked, input=[{"role": "user", "content": [part, text]}])
    prompt = shown(server, said)
    second = client.responses.create(**asked, input="Are you sure?")

    assert "The code word is PELICAN." in prompt
    assert prompt.index("PELICAN") < prompt.index("What is the code word?")
    assert [(each["file_id"], each["fate"]) for each in files_of(first)] == [(file, "whole")]
    assert first.output_text == "Pelican."
    assert "The code word is PELICAN." in shown(server, said)
    assert files_of(second)[0]["fate"] == "whole"
    [item] = [
        item
        for item in client.conversations.items.list(conversation.id)
        if any(part["type"] == "input_file" for part in item.to_dict().get("content", ()))
    ]
    named = {"type": "input_file", "file_id": file, "filename": "word.txt"}
    assert item.to_dict()["content"][0] == named  # type: ignore[index]


def test_of_a_large_file_what_answers_is_shown(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    file = upload(client, "tale.md", long_text("The treasure lies under the old lighthouse."))
    part = {"type": "input_file", "file_id": file}
    text = {"type": "input_text", "text": "Where does the treasure lie?"}

    response = client.responses.create(
        model=server.model,
        input=[{"role": "user", "content": [part, text]}],  # type: ignore[list-item]
    )

    prompt = shown(server, said)
    assert "under the old lighthouse" in prompt
    assert prompt.count("# Part") < 12
    [manifest] = files_of(response)
    assert manifest["fate"] == "excerpts"
    assert manifest["excerpts"] >= 1


def test_a_file_may_come_inside_of_a_request_and_is_the_same_one_when_it_comes_again(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    data = base64.b64encode(b"It says OSTRICH.").decode()
    part = {
        "type": "input_file",
        "filename": "inline.txt",
        "file_data": f"data:text/plain;base64,{data}",
    }
    asked: Any = {
        "model": server.model,
        "input": [{"role": "user", "content": [part, {"type": "input_text", "text": "What?"}]}],
        "store": False,
    }

    first, again = client.responses.create(**asked), client.responses.create(**asked)

    assert "It says OSTRICH." in shown(server, said)
    assert files_of(first) == files_of(again)
    kept = client.files.retrieve(files_of(first)[0]["file_id"])
    assert kept.expires_at is not None, "nothing of the request is kept for long"


def test_chat_completions_take_files_too(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    file = upload(client, "word.txt", "The code word is PELICAN.", "user_data")
    data = base64.b64encode(b"It says OSTRICH.").decode()
    said.words = ("both",)

    for kept in (False, True):
        answer = client.chat.completions.create(
            model=server.model,
            store=kept,
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "file", "file": {"file_id": file}},
                        {"type": "file", "file": {"filename": "b.txt", "file_data": data}},
                        {"type": "text", "text": "What do they say?"},
                    ],
                }
            ],
        )

        prompt = shown(server, said)
        assert answer.choices[0].message.content == "both"
        assert "PELICAN" in prompt
        assert "OSTRICH" in prompt
        assert '[Attached file: "word.txt"]' in prompt
        assert "【" not in prompt, "a chat has no place for citations"


def test_a_file_that_is_gone_or_unreadable_is_said_to_be_to_the_model_and_the_client(
    client: openai.OpenAI, server: ScriptedServer, said: Model
):
    conversation = client.conversations.create()
    asked: Any = {"model": server.model, "conversation": conversation.id}
    file = upload(client, "word.txt", "The code word is PELICAN.", "user_data")
    garbage = client.files.create(file=("a.bin", bytes(range(256)) * 8), purpose="user_data")
    parts = [{"type": "input_file", "file_id": id} for id in (file, garbage.id)]
    client.responses.create(**asked, input=[{"role": "user", "content": parts}])
    client.files.delete(file)

    response = client.responses.create(**asked, input="What is the code word?")

    prompt = shown(server, said)
    assert "PELICAN" not in prompt
    assert 'The file "word.txt" was deleted.' in prompt
    assert 'The file "a.bin" could not be read' in prompt
    assert [each["fate"] for each in files_of(response)] == ["deleted", "failed"]
    assert files_of(response)[1]["reason"]


@pytest.mark.parametrize(
    ("part", "status", "param"),
    [
        ({"type": "input_file", "file_id": "file-nope"}, 404, "file_id"),
        ({"type": "input_file", "file_url": "http://x/y.pdf"}, 400, "file_url"),
        ({"type": "input_file", "filename": "a", "file_data": "%%%"}, 400, "file_data"),
        ({"type": "input_file"}, 400, "content[0]"),
        ({"type": "input_image", "image_url": "http://x/y.png"}, 400, "image_url"),
        ({"type": "input_image", "image_url": "data:image/png;base64,"}, 400, "content[0]"),
    ],
)
def test_what_can_not_be_shown_is_refused(
    client: openai.OpenAI, server: ScriptedServer, part: Any, status: int, param: str
):
    with pytest.raises(openai.APIStatusError) as refused:
        client.responses.create(model=server.model, input=[{"role": "user", "content": [part]}])

    assert refused.value.status_code == status
    assert str(refused.value.param).endswith(param)


def test_a_store_that_is_not_there_is_said_before_anything_is_done(
    client: openai.OpenAI, server: ScriptedServer
):
    for stream in (False, True):
        with pytest.raises(openai.NotFoundError):
            client.responses.create(
                model=server.model, input="x", tools=tool("vs_nope"), stream=stream
            )


def test_a_count_counts_what_would_be_shown(client: openai.OpenAI, server: ScriptedServer):
    store, _ = made_store(client)

    plain = client.responses.input_tokens.count(model=server.model, input="The pressure?")
    searched = client.responses.input_tokens.count(
        model=server.model, input="The pressure?", tools=tool(store)
    )
    answered = client.responses.create(model=server.model, input="The pressure?", tools=tool(store))

    assert searched.input_tokens > plain.input_tokens + 50
    assert answered.usage is not None
    assert searched.input_tokens == answered.usage.input_tokens
