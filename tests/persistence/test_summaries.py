"""Summaries, and what turns see of a conversation that has one; on both databases."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
import trio

from antiphon.errors import InvalidRequest
from antiphon.ids import new_conversation_id, new_item_id
from antiphon.persistence import context
from antiphon.persistence.port import Row, Statement, Transaction
from antiphon.persistence.store import SqlStore
from antiphon.records import Accepted, NewTurn
from antiphon.testing.specimens import LEASE_MS, Writer, a_memory, an_item, text_of

R = TypeVar("R")


def spoken(count: int) -> list[Any]:
    return [an_item(str(n), tokens=n) for n in range(count)]


async def accepted(store: SqlStore, turn: NewTurn) -> Accepted:
    result = await store.accept_turn(turn)
    assert isinstance(result, Accepted)
    return result


async def test_a_summary_comes_back_as_it_was(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*spoken(5))
    assert await store.summary(writer.user, conversation) is None
    summary = await writer.summary(conversation, 4, "Straße ☃")

    assert await store.add_summary(writer.user, summary)

    assert (summary.items, summary.tokens) == (4, 6)
    assert await store.summary(writer.user, conversation) == summary
    stranger = await Writer.new(store)
    assert await store.summary(stranger.user, conversation) is None


async def test_the_one_that_covers_most_counts(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*spoken(6))
    short, long = [await writer.summary(conversation, n, f"of {n}") for n in (2, 5)]

    assert await store.add_summary(writer.user, short)
    assert not await store.add_summary(writer.user, replace(short, text="again"))
    assert await store.summary(writer.user, conversation) == short
    assert await store.add_summary(writer.user, long)
    assert not await store.add_summary(writer.user, short)

    assert await store.summary(writer.user, conversation) == long


async def test_nothing_is_written_about_what_is_not_there_as_it_was_read(
    store: SqlStore, writer: Writer
):
    items = spoken(6)
    conversation = await writer.conversation(*items)
    summary = await writer.summary(conversation, 4)
    stranger = await Writer.new(store)
    gone = await writer.conversation(*spoken(2))
    of_gone = await writer.summary(gone, 1)
    await store.delete_conversation(writer.user, gone, writer.tick())

    assert not await store.add_summary(stranger.user, summary)
    assert not await store.add_summary(
        writer.user, replace(summary, conversation=new_conversation_id())
    )
    assert not await store.add_summary(writer.user, of_gone)
    assert not await store.add_summary(writer.user, replace(summary, until=new_item_id()))
    # One of those that it was made of has gone since, and its words may be in it.
    await store.delete_item(writer.user, conversation, items[1].id, writer.tick())
    assert not await store.add_summary(writer.user, summary)

    assert await store.summary(writer.user, conversation) is None
    assert await store.add_summary(writer.user, await writer.summary(conversation, 4))


async def test_of_two_servers_the_longer_summary_stays(
    store: SqlStore, other: SqlStore, writer: Writer
):
    conversation = await writer.conversation(*spoken(12))
    summaries = [await writer.summary(conversation, n) for n in (3, 9, 6, 11, 9, 1)]

    async with trio.open_nursery() as nursery:
        for server, summary in zip((store, other) * 3, summaries, strict=True):
            nursery.start_soon(server.add_summary, writer.user, summary)

    assert await store.summary(writer.user, conversation) == summaries[3]


async def test_of_a_summary_and_a_deletion_nothing_is_left_of_what_was_deleted(
    store: SqlStore, other: SqlStore, writer: Writer
):
    """Whichever comes first: the deletion takes the summary along, or there is none."""
    for n in range(6):
        items = spoken(4)
        conversation = await writer.conversation(*items)
        summary = await writer.summary(conversation, 3)
        async with trio.open_nursery() as nursery:
            jobs: list[tuple[Callable[..., Awaitable[Any]], tuple[Any, ...]]] = [
                (other.add_summary, (writer.user, summary)),
                (store.delete_item, (writer.user, conversation, items[0].id, writer.tick())),
            ]
            for job, args in jobs if n % 2 else reversed(jobs):
                nursery.start_soon(job, *args)

        assert await store.summary(writer.user, conversation) is None


async def test_of_a_summary_and_the_end_of_its_conversation_nothing_is_left(
    store: SqlStore, other: SqlStore, writer: Writer
):
    for _ in range(4):
        conversation = await writer.conversation(*spoken(4))
        summary = await writer.summary(conversation, 3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.add_summary, writer.user, summary)
            nursery.start_soon(store.delete_conversation, writer.user, conversation, writer.tick())

        assert await store.conversation(writer.user, conversation) is None


async def test_a_turn_sees_what_comes_after_the_summary(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*spoken(6))
    summary = await writer.summarised(conversation, 4)
    await writer.answered("6", "7", conversation=conversation)

    seen = await store.context(writer.user, conversation=conversation)
    whole = await store.context(writer.user, conversation=conversation, whole=True)
    turn = writer.turn("8", conversation=conversation)
    assert await accepted(store, turn) == seen

    assert (seen.summary, list(map(text_of, seen.context))) == (summary, ["4", "5", "6", "7"])
    assert (whole.summary, len(whole.context)) == (None, 8)
    await store.finish_response(writer.final(turn.response.id))
    again = await accepted(store, writer.turn("9", conversation=conversation, whole=True))
    assert (again.summary, len(again.context)) == (None, 9)


@pytest.mark.parametrize("covered", [1, 2, 4])
async def test_what_a_conversation_began_with_to_say_how_it_is_to_go_is_still_there(
    store: SqlStore, writer: Writer, covered: int
):
    items = spoken(6)
    opening = replace(items[0], role="system"), replace(items[1], role="developer")
    late = replace(items[3], role="system")
    conversation = await writer.conversation(*opening, items[2], late, *items[4:])
    await writer.summarised(conversation, covered)

    seen = await store.context(writer.user, conversation=conversation)

    assert seen.opening == min(covered, 2)
    after = range(max(covered, 2), 6)
    assert list(map(text_of, seen.context)) == ["0", "1", *map(str, after)]


async def test_a_chain_has_neither_summary_nor_memories(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*spoken(3), memory=True)
    response = await writer.answered("3", "4", conversation=conversation)
    await writer.summarised(conversation, 4)
    await store.add_memories(writer.user, [a_memory(writer.user)], most=9)

    seen = await accepted(store, writer.turn("5", previous=response))

    assert (seen.summary, seen.memories, len(seen.context)) == (None, (), 5)


@pytest.mark.parametrize("asked", [True, False, None])
@pytest.mark.parametrize("default", [True, False])
async def test_memories_are_shown_where_the_conversation_has_a_memory(
    store: SqlStore, writer: Writer, asked: bool | None, default: bool
):
    stranger = await Writer.new(store)
    await store.add_memories(stranger.user, [a_memory(stranger.user, "secret")], most=9)
    mine = [a_memory(writer.user, str(n), created_ms=n) for n in (3, 1, 2)]
    await store.add_memories(writer.user, mine, most=9)
    conversation = await writer.conversation(memory=asked)

    turn = writer.turn("Hi", conversation=conversation, memory_default=default)
    seen = await accepted(store, turn)
    shown = await store.context(writer.user, conversation=conversation, memory_default=default)
    alone = await accepted(store, writer.turn("Hi", memory_default=default))

    is_on = default if asked is None else asked
    assert [each.text for each in seen.memories] == (["1", "2", "3"] if is_on else [])
    assert shown.memories == seen.memories
    assert alone.memories == ()


async def test_too_much_is_refused_only_where_it_is_read(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    conversation = await writer.conversation(*spoken(12))
    await writer.summarised(conversation, 9)
    monkeypatch.setattr(context, "MOST_ITEMS", 5)

    turn = writer.turn("Hi", conversation=conversation)
    with pytest.raises(InvalidRequest):
        await store.accept_turn(replace(turn, whole=True))
    assert len((await accepted(store, turn)).context) == 3


async def test_a_deletion_takes_a_summary_along_that_covers_it_and_asks_for_another(
    store: SqlStore, writer: Writer
):
    items = spoken(6)
    conversation = await writer.conversation(*items)
    await writer.summarised(conversation, 4)

    later = await store.delete_item(writer.user, conversation, items[4].id, writer.tick())
    assert later is not None
    assert later.rows == {"item_bodies": 1, "items": 1}
    assert await take(writer) == 0
    last = await store.delete_item(writer.user, conversation, items[3].id, writer.tick())

    assert last is not None
    assert last.rows == {"item_bodies": 1, "items": 1, "summaries": 1}
    assert await store.summary(writer.user, conversation) is None
    assert await take(writer) == 1


async def take(writer: Writer) -> int:
    now = writer.tick()
    return len(await writer.store.take_work(writer.node, now, lease_ms=now + LEASE_MS))


@pytest.mark.parametrize("covered", [0, 1])
async def test_a_deleted_response_takes_a_summary_along_that_covers_it(
    store: SqlStore, writer: Writer, covered: int
):
    conversation = await writer.conversation(*spoken(2))
    response = await writer.answered("2", "3", conversation=conversation)
    assert await take(writer) == 1
    await writer.summarised(conversation, 2 + covered)

    receipt = await store.delete_response(writer.user, response, writer.tick())

    assert receipt is not None
    assert receipt.rows.get("summaries", 0) == covered
    assert (await store.summary(writer.user, conversation) is None) == bool(covered)


async def test_a_turn_that_is_undone_takes_its_words_along(store: SqlStore, writer: Writer):
    """Workers may have read it while it waited."""
    conversation = await writer.conversation(*spoken(2))
    turn = writer.turn("2", conversation=conversation)
    await writer.accept(turn)
    said = (conversation, turn.input[0].id)
    await writer.summarised(conversation, 3)
    await store.add_memories(writer.user, [a_memory(writer.user, said=said)], most=9)

    assert await store.withdraw_turn(turn.response.id, writer.node)

    export = await store.export_user(writer.user)
    assert export is not None
    assert (export["memories"], export["conversations"][0]["summary"]) == ([], None)


async def test_an_export_has_the_summary(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*spoken(3))
    await writer.summarised(conversation, 2, "In short.")
    await writer.conversation()

    export = await store.export_user(writer.user)

    assert export is not None
    summaries = {each["id"]: each["summary"] for each in export["conversations"]}
    assert summaries.pop(conversation)["text"] == "In short."
    assert list(summaries.values()) == [None]


@dataclass(slots=True)
class Reads:
    """A database that counts what is read: statements that only read, and all rows."""

    database: Any
    statements: list[str] = field(default_factory=list)
    rows: int = 0

    async def read(self, work: Callable[[Transaction], Awaitable[R]]) -> R:
        result: R = await self.database.read(lambda tx: work(_Counted(tx, self)))
        return result

    async def write(self, work: Callable[[Transaction], Awaitable[R]]) -> R:
        result: R = await self.database.write(lambda tx: work(_Counted(tx, self)))
        return result


class _Counted:
    def __init__(self, tx: Transaction, reads: Reads) -> None:
        self._tx = tx
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def fetch(self, sql: Statement, *args: Any) -> Sequence[Row]:
        rows = await self._tx.fetch(sql, *args)
        self._note(sql, len(rows))
        return rows

    async def fetchrow(self, sql: Statement, *args: Any) -> Row | None:
        row = await self._tx.fetchrow(sql, *args)
        self._note(sql, int(row is not None))
        return row

    def _note(self, sql: Statement, rows: int) -> None:
        if sql.text.startswith(("SELECT", "WITH")):
            self._reads.statements.append(sql.name)
        self._reads.rows += rows


async def test_a_turn_reads_no_more_after_three_hundred_turns(store: SqlStore, writer: Writer):
    rows = {}
    for turns in (20, 300):
        conversation = await writer.conversation(*spoken(2 * turns), memory=True)
        await writer.summarised(conversation, 2 * turns - 16)
        reads = Reads(store.database)
        counted = SqlStore(reads)  # type: ignore[arg-type]
        turn = writer.turn("Hi", conversation=conversation)

        seen = await accepted(counted, turn)
        assert await counted.start_response(turn.response.id, writer.node)
        assert await counted.finish_response(writer.final(turn.response.id, "Ho"))

        assert len(seen.context) == 16
        assert len(reads.statements) <= 4, reads.statements
        rows[turns] = reads.rows
        reads.statements.clear()
        await counted.context(writer.user, conversation=conversation)
        assert len(reads.statements) <= 4, reads.statements

    assert rows[300] == rows[20]


async def test_counts_are_kept_once_where_the_turn_ran(store: SqlStore, writer: Writer):
    known, unknown = an_item("a", tokens=3), an_item("b")
    conversation = await writer.conversation(known, unknown)
    elsewhere = await writer.conversation(replace(unknown))
    turn = writer.turn("c", conversation=conversation)
    await writer.accept(turn)
    final = writer.final(turn.response.id, "d")
    counts = {known.id: 9, unknown.id: 4, turn.input[0].id: 5, final.output[0].id: 6}

    assert await store.finish_response(replace(final, counts=counts | {new_item_id(): 7}))

    seen = await store.context(writer.user, conversation=conversation)
    assert [item.tokens for item in seen.context] == [3, 4, 5, 6]
    other = await store.context(writer.user, conversation=elsewhere)
    assert [item.tokens for item in other.context] == [None]


async def test_a_branch_has_no_summary(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(*spoken(3), memory=False)
    await writer.summarised(conversation, 2)
    seen = await store.context(writer.user, conversation=conversation, whole=True)

    branch = await writer.conversation(*seen.context)

    assert await store.summary(writer.user, branch) is None
    assert len((await store.context(writer.user, conversation=branch)).context) == 3
