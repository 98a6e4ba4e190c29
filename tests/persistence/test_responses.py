"""Responses, files and feedback, on both databases."""

from dataclasses import replace

import pytest

from antiphon.errors import UnknownCursor
from antiphon.ids import (
    FileId,
    ModelName,
    ResponseId,
    new_conversation_id,
    new_file_id,
    new_response_id,
)
from antiphon.persistence.store import SqlStore
from antiphon.records import Feedback, Page, Rating, ResponseKind
from antiphon.testing.specimens import Writer, a_file, an_item, text_of

RESPONSE = ResponseKind.RESPONSE


async def test_the_list_of_responses_is_by_creation_and_filtered(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    alone = await writer.answered("1", "one")
    inside = await writer.answered("2", "two", conversation=conversation)
    chat = await writer.answered(
        "3",
        "three",
        response={
            "kind": ResponseKind.CHAT,
            "model": ModelName("other"),
            "metadata": {"a": "1", "b": 'x"y'},
        },
    )

    async def listed(page: Page | None = None, **filters: object) -> list[str]:
        found = await store.responses(writer.user, page or Page(), **({"kind": RESPONSE} | filters))
        return [response.id for response in found]

    chats = {"kind": ResponseKind.CHAT}
    assert await listed() == [inside, alone]
    assert await listed(Page(newest_first=False)) == [alone, inside]
    assert await listed(Page(limit=1, after=inside)) == [alone]
    assert await listed(conversation=conversation) == [inside]
    assert await listed(conversation=new_conversation_id()) == []
    assert await listed(**chats) == [chat]
    assert await listed(**chats, model=ModelName("other")) == [chat]
    assert await listed(**chats, model=ModelName("smollm2")) == []
    assert await listed(**chats, metadata={"b": 'x"y'}) == [chat]
    assert await listed(**chats, metadata={"a": "1", "b": 'x"y'}) == [chat]
    assert await listed(**chats, metadata={"A": "1"}) == [], "keys mind the case"
    assert await listed(**chats, metadata={"a": "2"}) == []
    assert await listed(**chats, metadata={str(n): "" for n in range(17)}) == []
    with pytest.raises(UnknownCursor):
        await listed(Page(after=new_response_id("resp_")))


async def test_a_list_shows_each_responses_own_output(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    for n in range(3):
        await writer.answered(f"{n}?", f"{n}!", conversation=conversation)

    found = await store.responses(writer.user, Page(), kind=RESPONSE)

    assert [[text_of(item) for item in response.output] for response in found] == [
        ["2!"],
        ["1!"],
        ["0!"],
    ]


async def test_input_items_are_the_responses_own_in_pages(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(an_item("before"))
    turn = writer.turn("a", "b", "c", conversation=conversation)
    await writer.accept(turn)
    await store.finish_response(writer.final(turn.response.id, "out"))

    async def texts(**page: object) -> str:
        found = await store.input_items(writer.user, turn.response.id, Page(**page))
        assert found is not None
        return "".join(map(text_of, found))

    assert await texts() == "cba"
    assert await texts(limit=1, after=turn.input[0].id, newest_first=False) == "b"
    output = (await store.items(writer.user, conversation, Page(limit=1)) or ())[0]
    with pytest.raises(UnknownCursor):
        await texts(after=output.id)
    assert await store.input_items(writer.user, new_response_id(), Page()) is None


async def test_metadata_of_a_response_is_replaced(store: SqlStore, writer: Writer):
    id = await writer.answered("1", "one", response={"metadata": {"old": "1"}})

    changed = await store.update_response_metadata(writer.user, id, {"new": "2"})

    assert changed is not None
    assert changed.metadata == {"new": "2"}
    assert await store.response(writer.user, id) == changed
    assert await store.update_response_metadata(writer.user, ResponseId("no"), {}) is None


async def test_the_last_feedback_counts(store: SqlStore, writer: Writer):
    id = await writer.answered("1", "one")
    first = Feedback(response=id, rating=Rating.UP, reason=None, created_ms=1)
    last = replace(first, rating=Rating.DOWN, reason="wrong", created_ms=2)

    assert await store.set_feedback(writer.user, first)
    assert await store.set_feedback(writer.user, last)
    assert not await store.set_feedback(writer.user, replace(first, response=ResponseId("no")))

    response = await store.response(writer.user, id)
    assert response is not None
    assert response.feedback == last
    assert await store.responses(writer.user, Page(), kind=RESPONSE) == (response,)
    export = await store.export_user(writer.user)
    assert export is not None
    (kept,) = export["feedback"]
    assert (kept["rating"], kept["reason"]) == ("down", "wrong")
    assert "feedback" not in export["responses"][0]


async def test_usage_is_listed_from_a_time_on(store: SqlStore, writer: Writer):
    await writer.answered("1", "one")
    later = writer.now_ms
    second = writer.turn("2", reserved_tokens=55)
    await writer.accept(second)

    (entry,) = await store.usage(writer.user, since_ms=later)

    assert (entry.response, entry.reserved_tokens) == (second.response.id, 55)
    assert (entry.usage, entry.settled_ms) == (None, None)


async def test_files_are_listed_by_creation_and_purpose(store: SqlStore, writer: Writer):
    files = [
        a_file(writer.user, created_ms=n, purpose="batch" if n == 1 else "user_data")
        for n in range(3)
    ]
    for file in files:
        await store.add_file(file)

    assert await store.file(writer.user, files[0].id) == files[0]
    assert await store.files(writer.user, Page()) == tuple(reversed(files))
    assert await store.files(writer.user, Page(limit=1, after=files[1].id)) == (files[0],)
    assert await store.files(writer.user, Page(), purpose="batch") == (files[1],)
    assert await store.files(writer.user, Page(newest_first=False)) == tuple(files)
    assert await store.file(writer.user, new_file_id()) is None
    with pytest.raises(UnknownCursor):
        await store.files(writer.user, Page(after=FileId("file-none")))


async def test_a_content_is_unused_when_its_last_file_is_gone(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    mine, theirs = a_file(writer.user), a_file(stranger.user)
    await store.add_file(mine)
    await store.add_file(theirs)

    receipt = await store.delete_file(writer.user, mine.id, 5)

    assert receipt is not None
    assert (receipt.rows, receipt.contents, receipt.subject) == ({"files": 1}, (), mine.id)
    other = "b" * 64
    assert await store.unused_contents([mine.sha256, other, other]) == (other,)
    assert await store.unused_contents([]) == ()
    last = await store.delete_file(stranger.user, theirs.id, 6)
    assert last is not None
    assert last.contents == (mine.sha256,)
    assert await store.delete_file(stranger.user, theirs.id, 6) is None
