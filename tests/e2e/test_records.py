"""Everything that is kept besides turns: conversations, stored chats, files, ratings, exports;
through openai-python, on both databases."""

import json
import uuid
from typing import Any

import openai
import pytest

from antiphon.testing.dialogue import SHORT

pytestmark = pytest.mark.engine


def raw(client: openai.OpenAI, method: str, path: str, **options: Any) -> Any:
    """A call of what OpenAI lacks, as its SDK's users make undocumented ones."""
    return getattr(client, method)(path, cast_to=object, **options)


def text_at(client: openai.OpenAI, path: str) -> str:
    return client.get(path, cast_to=openai.HttpxBinaryResponseContent).text


@pytest.fixture
def talk(keeper: openai.OpenAI) -> tuple[str, Any]:
    """A conversation with a word of its own in it, and its only response."""
    word = f"marker{uuid.uuid4().hex}"
    conversation = keeper.conversations.create(
        extra_body={"title": f"About {word}"},
        items=[{"type": "message", "role": "user", "content": f"Remember {word}."}],
    ).id
    turn = keeper.responses.create(**SHORT, input="Which word?", conversation=conversation)
    return word, turn


def listed(client: openai.OpenAI, **query: Any) -> list[str]:
    page = raw(client, "get", "/conversations", options={"params": query})
    return [each["id"] for each in page["data"]]


def test_conversations_are_listed_newest_first_and_found_by_their_title(
    keeper: openai.OpenAI, talk: tuple[str, Any]
):
    word, turn = talk
    id = turn.conversation.id
    newer = keeper.conversations.create().id

    assert listed(keeper, limit=2) == [newer, id]
    assert listed(keeper, limit=1, after=newer) == [id]
    assert listed(keeper, search=word.upper()) == [id]
    keeper.responses.create(**SHORT, input="Up again.", conversation=id)
    assert listed(keeper, limit=2) == [id, newer]


def test_an_archived_conversation_leaves_the_list_and_can_go_on(
    keeper: openai.OpenAI, talk: tuple[str, Any]
):
    word, turn = talk
    id = turn.conversation.id

    keeper.conversations.update(
        id, metadata={"k": "v"}, extra_body={"archived": True, "title": f"Old {word}"}
    )

    changed = keeper.conversations.retrieve(id)
    assert (changed.metadata, changed.archived, changed.title) == (  # type: ignore[attr-defined]
        {"k": "v"},
        True,
        f"Old {word}",
    )
    assert listed(keeper, search=word) == []
    assert listed(keeper, search=word, archived="true") == [id]


def test_a_conversation_is_exported_whole(keeper: openai.OpenAI, talk: tuple[str, Any]):
    word, turn = talk
    path = f"/conversations/{turn.conversation.id}/export"

    whole = json.loads(text_at(keeper, path))
    page = text_at(keeper, f"{path}?format=markdown")

    assert [item["content"][0]["text"] for item in whole["items"]] == [
        f"Remember {word}.",
        "Which word?",
        turn.output_text,
    ]
    assert whole["conversation"]["title"] == f"About {word}"
    assert f"Remember {word}." in page
    assert turn.output_text.strip() in page


def test_a_branch_has_what_was_said_up_to_there_and_its_own_life(
    keeper: openai.OpenAI, talk: tuple[str, Any]
):
    word, turn = talk
    first = keeper.conversations.items.list(turn.conversation.id, order="asc").data[0]

    branch = raw(
        keeper,
        "post",
        f"/conversations/{turn.conversation.id}/branch",
        body={"after_item": first.id},
    )["id"]
    keeper.responses.create(**SHORT, input="Another way.", conversation=branch)
    keeper.conversations.delete(turn.conversation.id)

    items = list(keeper.conversations.items.list(branch, order="asc"))
    assert [item.content[0].text for item in items[:2]] == [f"Remember {word}.", "Another way."]
    assert len(items) == 3


def test_a_deleted_conversation_takes_everything_with_it(
    keeper: openai.OpenAI, talk: tuple[str, Any]
):
    word, turn = talk
    id = turn.conversation.id
    item = keeper.conversations.items.list(id).data[0]

    gone = keeper.conversations.delete(id)

    assert (gone.id, gone.deleted, gone.object) == (id, True, "conversation.deleted")
    assert gone.receipt["rows"]["items"] == 3  # type: ignore[attr-defined]
    for read in (
        lambda: keeper.conversations.retrieve(id),
        lambda: keeper.conversations.items.list(id),
        lambda: keeper.conversations.items.retrieve(item.id, conversation_id=id),
        lambda: keeper.responses.retrieve(turn.id),
        lambda: keeper.responses.create(**SHORT, input="Go on.", conversation=id),
        lambda: keeper.conversations.delete(id),
    ):
        with pytest.raises(openai.NotFoundError):
            read()
    assert word not in text_at(keeper, "/users/me/export")


def test_items_are_added_shown_and_deleted_one_by_one(keeper: openai.OpenAI):
    id = keeper.conversations.create().id
    added = keeper.conversations.items.create(
        id,
        items=[
            {"type": "message", "role": "user", "content": "one"},
            {"type": "message", "role": "user", "content": "two"},
        ],
    ).data

    shown = keeper.conversations.items.retrieve(added[0].id, conversation_id=id)
    after = keeper.conversations.items.delete(added[0].id, conversation_id=id)

    assert shown == added[0]
    assert after.id == id
    assert [item.id for item in keeper.conversations.items.list(id)] == [added[1].id]


def test_a_rating_is_kept_and_replaced_and_exported(keeper: openai.OpenAI, talk: tuple[str, Any]):
    word, turn = talk
    path = f"/responses/{turn.id}/feedback"

    raw(keeper, "post", path, body={"rating": "up"})
    last = raw(keeper, "post", path, body={"rating": "down", "reason": f"no {word}"})

    assert (last["response_id"], last["rating"]) == (turn.id, "down")
    exported = text_at(keeper, "/users/me/export")
    assert f"no {word}" in exported
    assert f"Remember {word}." in exported
    with pytest.raises(openai.BadRequestError):
        raw(keeper, "post", path, body={"rating": "sideways"})
    with pytest.raises(openai.NotFoundError):
        raw(keeper, "post", "/responses/resp_none/feedback", body={"rating": "up"})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_stored_chat_is_shown_changed_listed_and_deleted(keeper: openai.OpenAI, stream: bool):
    mark = uuid.uuid4().hex
    fields: dict[str, Any] = {
        "model": keeper.models.list().data[0].id,
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "temperature": 0,
        "max_completion_tokens": 16,
        "store": True,
        "metadata": {"mark": mark},
    }
    chats = keeper.chat.completions
    if stream:
        chunks = list(chats.create(**fields, stream=True))
        id = chunks[0].id
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    else:
        made = chats.create(**fields)
        id, text = made.id, made.choices[0].message.content

    shown = chats.retrieve(id)
    assert shown.choices[0].message.content == text
    assert [message.content for message in chats.messages.list(id)] == [
        fields["messages"][0]["content"]
    ]
    assert [each.id for each in chats.list(metadata={"mark": mark})] == [id]
    assert chats.update(id, metadata={"mark": "moved"}).metadata == {"mark": "moved"}
    assert list(chats.list(metadata={"mark": mark})) == []
    assert chats.delete(id).deleted
    with pytest.raises(openai.NotFoundError):
        chats.retrieve(id)


def test_a_file_comes_back_byte_for_byte_and_goes(keeper: openai.OpenAI):
    content = bytes(range(256)) * 5000 + uuid.uuid4().bytes
    files = [
        keeper.files.create(file=(f"{number}.bin", content), purpose="user_data")
        for number in range(2)
    ]

    for file in files:
        assert (file.bytes, file.purpose) == (len(content), "user_data")
        assert keeper.files.content(file.id).read() == content
        again = keeper.files.retrieve(file.id)
        # How far it has been read changes meanwhile.
        assert again.to_dict() | {"reading": 0} == file.to_dict() | {"reading": 0}
    ids = [file.id for file in keeper.files.list(purpose="user_data", limit=2)]
    assert sorted(ids) == sorted(file.id for file in files)
    assert keeper.files.delete(files[0].id).deleted
    # The other one has the same content, which is kept once and stays.
    assert keeper.files.content(files[1].id).read() == content
    assert keeper.files.delete(files[1].id).deleted
    for read in (keeper.files.retrieve, keeper.files.content, keeper.files.delete):
        with pytest.raises(openai.NotFoundError):
            read(files[1].id)


def test_responses_are_listed_and_what_was_not_to_be_stored_is_not_there(
    keeper: openai.OpenAI, talk: tuple[str, Any]
):
    _, turn = talk
    forgotten = keeper.responses.create(**SHORT, input="Psst.", store=False)

    page = raw(
        keeper, "get", "/responses", options={"params": {"conversation": turn.conversation.id}}
    )

    assert [each["id"] for each in page["data"]] == [turn.id]
    with pytest.raises(openai.NotFoundError):
        keeper.responses.retrieve(forgotten.id)
