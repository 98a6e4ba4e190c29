"""What is remembered of users, and when it goes; on both databases."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from antiphon.context_records import Memory, MemoryOrigin
from antiphon.errors import InvalidRequest, UnknownCursor
from antiphon.ids import (
    ConversationId,
    ItemId,
    new_conversation_id,
    new_item_id,
    new_memory_id,
    new_user_id,
)
from antiphon.persistence import memories
from antiphon.persistence.bridge import open_store
from antiphon.persistence.memories import MOST_SHOWN
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.store import SqlStore
from antiphon.records import Page
from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.specimens import Writer, a_memory, an_item

ALL = Page(limit=999, newest_first=False)


async def said(writer: Writer, count: int = 1) -> list[tuple[ConversationId, ItemId]]:
    """Items of a new conversation."""
    items = [an_item(str(n)) for n in range(count)]
    conversation = await writer.conversation(*items)
    return [(conversation, item.id) for item in items]


async def learned(writer: Writer, *memories: Memory, most: int = 99) -> tuple[Memory, ...]:
    return await writer.store.add_memories(writer.user, memories, most=most)


async def texts(writer: Writer) -> list[str]:
    return [memory.text for memory in await writer.store.memories(writer.user, ALL)]


async def test_a_memory_comes_back_as_it_was(store: SqlStore, writer: Writer):
    (place,) = await said(writer)
    stated = a_memory(writer.user, "I eat no meat.", said=place, created_ms=4, updated_ms=5)
    added = a_memory(writer.user, "Straße ☃", created_ms=3)

    assert await learned(writer, stated, added) == (stated, added)

    assert await store.memory(writer.user, stated.id) == stated
    assert await store.memories(writer.user, ALL) == (added, stated)
    assert await store.memory(writer.user, new_memory_id()) is None
    assert await store.memories(new_user_id(), ALL) == ()


async def test_the_list_is_by_creation_page_by_page(store: SqlStore, writer: Writer):
    made = [a_memory(writer.user, str(n), created_ms=n // 2) for n in range(7)]
    await learned(writer, *made)
    ordered = sorted(made, key=lambda each: (each.created_ms, each.id))

    for newest_first in (True, False):
        found: list[Memory] = []
        page = Page(limit=3, newest_first=newest_first)
        while some := await store.memories(writer.user, page):
            found += some
            page = replace(page, after=some[-1].id)
        assert found == (ordered[::-1] if newest_first else ordered)
    with pytest.raises(UnknownCursor):
        await store.memories(writer.user, Page(after=new_memory_id()))


async def test_nothing_is_remembered_twice_in_any_case_and_spacing(writer: Writer):
    first, second = await said(writer, 2)
    one = a_memory(writer.user, "I live in Straße  5.", said=first)

    assert await learned(writer, one, replace(one, id=new_memory_id())) == (one,)
    again = a_memory(writer.user, " i LIVE in\nSTRASSE 5.", said=second)
    assert await learned(writer, again) == ()

    assert await texts(writer) == [one.text]
    stranger = await Writer.new(writer.store)
    theirs = a_memory(stranger.user, one.text)
    assert await learned(stranger, theirs) == (theirs,)


async def test_no_more_is_remembered_than_may_be(writer: Writer):
    memories = [a_memory(writer.user, str(n), created_ms=n) for n in range(4)]

    assert await learned(writer, *memories[:2], most=3) == tuple(memories[:2])
    assert await learned(writer, *memories, most=3) == (memories[2],)

    assert await texts(writer) == ["0", "1", "2"]


async def test_a_turn_is_shown_the_latest(store: SqlStore, writer: Writer):
    count = MOST_SHOWN + 3
    await learned(
        writer, *(a_memory(writer.user, str(n), created_ms=n) for n in range(count)), most=count
    )
    conversation = await writer.conversation(memory=True)

    seen = await store.context(writer.user, conversation=conversation)

    assert [each.text for each in seen.memories] == [str(n) for n in range(3, count)]


async def test_nothing_is_learned_of_what_is_gone_or_anothers(store: SqlStore, writer: Writer):
    (kept,) = await said(writer)
    (gone,) = await said(writer)
    await store.delete_conversation(writer.user, gone[0], writer.tick())
    first, second = await said(writer, 2)
    await store.delete_item(writer.user, *first, writer.tick())
    stranger = await Writer.new(store)
    (theirs,) = await said(stranger)
    places = {
        "kept": kept,
        "gone": gone,
        "deleted": first,
        "beside": second,
        "never": (new_conversation_id(), new_item_id()),
        "theirs": theirs,
        "elsewhere": (kept[0], second[1]),
    }

    written = await learned(
        writer, *(a_memory(writer.user, text, said=place) for text, place in places.items())
    )

    assert {memory.text for memory in written} == {"kept", "beside"}
    assert sorted(await texts(writer)) == ["beside", "kept"]
    nobody = new_user_id()
    assert await store.add_memories(nobody, [a_memory(nobody)], most=9) == ()
    with pytest.raises(ValueError, match="stated"):
        await learned(writer, a_memory(writer.user, origin=MemoryOrigin.STATED))


async def test_what_was_deleted_is_not_learned_again_from_there(store: SqlStore, writer: Writer):
    first, second = await said(writer, 2)
    one, two = (a_memory(writer.user, "I smoke.", said=place) for place in (first, second))
    assert await learned(writer, one, two) == (one,)

    receipt = await store.delete_memory(writer.user, one.id, 7)

    assert receipt is not None
    assert (receipt.subject, receipt.deleted_ms) == (one.id, 7)
    assert receipt.rows == {"memories": 1, "memory_sources": 2}
    assert await learned(writer, one, two) == ()
    assert await store.delete_memory(writer.user, one.id, 8) is None
    third = a_memory(writer.user, "I smoke.", said=(await said(writer))[0])
    assert await learned(writer, third) == (third,)


async def test_all_are_deleted_at_once(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    await learned(stranger, a_memory(stranger.user, "theirs"))
    (place,) = await said(writer)
    stated = a_memory(writer.user, "stated", said=place)
    await learned(writer, stated, a_memory(writer.user, "added"))

    receipt = await store.delete_memories(writer.user, 7)

    assert (receipt.subject, receipt.rows) == (writer.user, {"memories": 2, "memory_sources": 1})
    assert await texts(writer) == []
    assert await learned(writer, stated) == ()
    assert await texts(stranger) == ["theirs"]
    assert (await store.delete_memories(writer.user, 8)).rows == {}


async def test_what_is_edited_is_the_users_own_from_then_on(store: SqlStore, writer: Writer):
    (place,) = await said(writer)
    stated = a_memory(writer.user, "I live in Bern.", said=place)
    await learned(writer, stated)

    edited = await store.update_memory(writer.user, stated.id, "I live in Biel.", 9)

    assert edited == replace(
        stated, text="I live in Biel.", origin=MemoryOrigin.ADDED, updated_ms=9
    )
    assert await store.memory(writer.user, stated.id) == edited
    # What it said before was wrong, so that isn't learned again.
    assert await learned(writer, replace(stated, id=new_memory_id())) == ()
    assert await store.update_memory(writer.user, new_memory_id(), "x", 9) is None

    await store.delete_conversation(writer.user, place[0], writer.tick())
    assert edited is not None
    assert await store.memory(writer.user, edited.id) == replace(
        edited, conversation=None, item=None
    )


async def test_an_edit_can_not_say_what_another_one_says(store: SqlStore, writer: Writer):
    one, two = a_memory(writer.user, "one"), a_memory(writer.user, "two")
    await learned(writer, one, two)

    with pytest.raises(InvalidRequest) as caught:
        await store.update_memory(writer.user, two.id, "ONE", 9)
    assert caught.value.param == "text"

    assert sorted(await texts(writer)) == ["one", "two"]
    shouted = await store.update_memory(writer.user, one.id, "ONE", 9)
    assert shouted is not None
    assert shouted.text == "ONE"


async def test_what_the_user_adds_stays_though_it_was_stated(store: SqlStore, writer: Writer):
    (place,) = await said(writer)
    stated = a_memory(writer.user, "I sing.", said=place)
    await learned(writer, stated)

    (kept,) = await learned(writer, a_memory(writer.user, "I sing.", updated_ms=8))
    assert kept == replace(stated, origin=MemoryOrigin.ADDED, updated_ms=8)
    assert await learned(writer, a_memory(writer.user, "i sing.")) == ()

    await store.delete_conversation(writer.user, place[0], writer.tick())
    assert await texts(writer) == ["I sing."]


async def test_with_its_conversation_goes_what_came_from_it_alone(store: SqlStore, writer: Writer):
    (first,), (second,) = await said(writer), await said(writer)
    alone = a_memory(writer.user, "said there", said=first)
    twice = a_memory(writer.user, "said twice", said=first)
    await learned(
        writer,
        alone,
        twice,
        replace(twice, id=new_memory_id(), conversation=second[0], item=second[1]),
        a_memory(writer.user, "written"),
    )

    receipt = await store.delete_conversation(writer.user, first[0], writer.tick())

    assert receipt is not None
    assert (receipt.rows["memories"], receipt.rows["memory_sources"]) == (1, 2)
    assert sorted(await texts(writer)) == ["said twice", "written"]
    assert await store.memory(writer.user, twice.id) == replace(
        twice, conversation=second[0], item=second[1]
    )

    receipt = await store.delete_conversation(writer.user, second[0], writer.tick())
    assert receipt is not None
    assert receipt.rows["memories"] == 1
    assert await texts(writer) == ["written"]


async def test_with_its_item_goes_what_came_from_it_alone(store: SqlStore, writer: Writer):
    first, second = await said(writer, 2)
    stays, goes = (a_memory(writer.user, text, said=first) for text in ("stays", "goes"))
    await learned(writer, stays, goes, replace(stays, item=second[1]))
    forgotten = a_memory(writer.user, "forgotten", said=first)
    await learned(writer, forgotten)
    await store.delete_memory(writer.user, forgotten.id, 1)

    receipt = await store.delete_item(writer.user, *first, writer.tick())

    assert receipt is not None
    assert receipt.rows == {
        "forgotten_memories": 1,
        "item_bodies": 1,
        "items": 1,
        "memories": 1,
        "memory_sources": 2,
    }
    assert await store.memories(writer.user, ALL) == (replace(stays, item=second[1]),)


async def test_with_its_response_goes_what_was_said_in_it(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    turn = writer.turn("I sing.", "I dance.", conversation=conversation)
    await writer.accept(turn)
    await store.finish_response(writer.final(turn.response.id, "Good."))
    later = await writer.answered("I cook.", "Good.", conversation=conversation)
    cook = (await store.input_items(writer.user, later, ALL) or ())[0]
    for item, text in ((turn.input[0], "sings"), (turn.input[1], "dances"), (cook, "cooks")):
        await learned(writer, a_memory(writer.user, text, said=(conversation, item.id)))

    receipt = await store.delete_response(writer.user, turn.response.id, writer.tick())

    assert receipt is not None
    assert receipt.rows["memories"] == 2
    assert await texts(writer) == ["cooks"]


async def test_all_of_a_user_goes_with_them(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    await learned(stranger, a_memory(stranger.user, "theirs"))
    first, second = await said(writer, 2)
    stated = a_memory(writer.user, "stated", said=first)
    gone = a_memory(writer.user, "gone", said=second)
    await learned(writer, stated, gone, a_memory(writer.user, "added"))
    await store.delete_memory(writer.user, gone.id, 1)
    await writer.summarised(first[0], 1)
    export = await store.export_user(writer.user)
    assert export is not None
    assert [each["text"] for each in export["memories"]] == sorted(
        ["added", "stated"],
        key=lambda text: next(each["id"] for each in export["memories"] if each["text"] == text),
    )

    receipt = await store.erase_user(writer.user, 9)

    assert receipt is not None
    assert {name: receipt.rows[name] for name in ("memories", "summaries", "memory_sources")} == {
        "memories": 2,
        "summaries": 1,
        "memory_sources": 1,
    }
    assert receipt.rows["forgotten_memories"] == 1
    assert await texts(stranger) == ["theirs"]


async def test_of_two_servers_that_learn_the_same_one_does(
    store: SqlStore, other: SqlStore, writer: Writer
):
    places = await said(writer, 4)
    learnt: list[Memory] = []

    async def learn(server: SqlStore, place: tuple[ConversationId, ItemId]) -> None:
        memories = [a_memory(writer.user, str(n), said=place) for n in range(4)]
        learnt.extend(await server.add_memories(writer.user, memories, most=3))

    async with trio.open_nursery() as nursery:
        for server, place in zip((store, other) * 2, places, strict=True):
            nursery.start_soon(learn, server, place)

    assert sorted(memory.text for memory in learnt) == ["0", "1", "2"]
    assert sorted(await texts(writer)) == ["0", "1", "2"]


async def test_of_learning_and_deleting_nothing_is_left_that_came_from_what_is_gone(
    store: SqlStore, other: SqlStore, writer: Writer
):
    (elsewhere,) = await said(writer)
    for n in range(6):
        (place,) = await said(writer)
        known = a_memory(writer.user, f"known {n}", said=place if n % 2 else elsewhere)
        await learned(writer, known)
        # What is known from one place is learned from the other one, which is deleted.
        again = replace(known, id=new_memory_id(), conversation=elsewhere[0], item=elsewhere[1])
        memories = [again, a_memory(writer.user, f"new {n}", said=place)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                lambda memories=memories: other.add_memories(writer.user, memories, most=99)
            )
            nursery.start_soon(store.delete_conversation, writer.user, place[0], writer.tick())

    left = await store.memories(writer.user, ALL)
    assert {memory.conversation for memory in left} <= {elsewhere[0]}
    assert not [memory for memory in left if memory.text.startswith("new")]


async def test_what_is_learned_again_while_it_goes_stays(postgres: PrivatePostgres, tmp_path: Path):
    """A deletion that comes in between waits; on SQLite nothing can come in between."""
    async with open_store(url=postgres.fresh(), data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        (place,), (elsewhere,) = await said(writer), await said(writer)
        known = a_memory(writer.user, "known", said=place)
        await learned(writer, known)
        between = trio.Event()
        again = replace(known, id=new_memory_id(), conversation=elsewhere[0], item=elsewhere[1])

        async def learn_slowly(tx: Transaction) -> None:
            await memories.add(_Slow(tx, between), writer.user, [again], 9)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.database.write, learn_slowly)
            await between.wait()
            await store.delete_conversation(writer.user, place[0], writer.tick())

        assert await store.memories(writer.user, ALL) == (
            replace(known, conversation=elsewhere[0], item=elsewhere[1]),
        )


class _Slow:
    """Gives others the time to come in between what is read and what is written."""

    def __init__(self, tx: Transaction, between: trio.Event) -> None:
        self._tx = tx
        self._between = between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def executemany(self, sql: Statement, rows: Sequence[tuple[Any, ...]]) -> None:
        self._between.set()
        await self._tx.fetch(Statement("test", "SELECT pg_sleep(0.1)"))
        await self._tx.executemany(sql, rows)
