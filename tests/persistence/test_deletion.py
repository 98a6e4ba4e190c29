"""What is deleted is gone from every table and every file, and the receipt says what went."""

import secrets
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import trio

from antiphon.errors import ResponseInProgress
from antiphon.ids import RequestId, UserId, new_conversation_id, new_item_id, new_key_id
from antiphon.persistence.bridge import TrioDatabase, open_store
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.schema import TABLES
from antiphon.persistence.store import SqlStore
from antiphon.records import (
    ApiKey,
    Claim,
    Conversation,
    EventBatch,
    Feedback,
    Page,
    Rating,
    ResponseError,
    Scope,
)
from antiphon.testing.specimens import Writer, a_file, a_memory, an_item, text_of


async def everything(store: SqlStore) -> bytes:
    """Every value of every table, as bytes."""

    async def read(tx: Transaction) -> bytes:
        rows = []
        for table in TABLES:
            select = Statement("test", f"SELECT {', '.join(table.columns)} FROM {table.name}")
            rows += [[table.name, *row] for row in await tx.fetch(select)]
        return b"\n".join(
            value if isinstance(value, bytes) else str(value).encode()
            for row in rows
            for value in row
        )

    return await store.database.read(read)


async def rows_by_table(store: SqlStore) -> dict[str, int]:
    async def read(tx: Transaction) -> dict[str, int]:
        counts = {}
        for table in TABLES:
            row = await tx.fetchrow(Statement("test", f"SELECT COUNT(*) FROM {table.name}"))
            assert row is not None
            counts[table.name] = row[0]
        return counts

    counts = await store.database.read(read)
    return {table: count for table, count in counts.items() if count}


async def marked(store: SqlStore, writer: Writer, mark: str) -> Conversation:
    """A conversation with the mark in every text that a client can choose."""
    file = a_file(writer.user, filename=f"{mark}.txt", sha256="c" * 64)
    await store.add_file(file)
    id = await writer.conversation(
        an_item(f"{mark} rules", id=f"msg_{mark}"), title=f"About {mark}", metadata={mark: mark}
    )
    await store.add_key(
        ApiKey(
            id=new_key_id(),
            user=writer.user,
            prefix=mark,
            name=mark,
            scopes=frozenset({Scope.USER}),
            created_ms=1,
        ),
        f"hash of {mark}",
    )
    for answer in range(30):
        with_file = an_item(
            mark, id=new_item_id(), body={"content": [{"file_id": file.id, "text": mark}]}
        )
        turn = writer.turn(
            conversation=id,
            input=(with_file,),
            response={
                "request": {"instructions": mark},
                "metadata": {mark: mark},
                "model": mark,
            },
            claim=Claim(key=f"{mark} {answer}", fingerprint=mark),
            request=RequestId(f"req_{mark}"),
            retry_fingerprint=mark,
        )
        await store.accept_turn(turn)
        batch = EventBatch(first=0, last=9, body=mark.encode() * 50)
        await store.append_events(writer.node, [(turn.response.id, batch)])
        final = writer.final(turn.response.id, f"{mark} " * 60)
        assert final.trace is not None
        final = replace(
            final,
            error=ResponseError(code=mark, message=mark),
            trace=replace(final.trace, request=RequestId(f"req_{mark}"), prompt_version=mark),
        )
        await store.finish_response(final)
        await store.set_feedback(
            writer.user,
            Feedback(response=turn.response.id, rating=Rating.UP, reason=mark, created_ms=1),
        )
    items = await store.items(writer.user, id, Page(limit=3))
    assert items is not None
    await writer.summarised(id, 50, f"They said {mark}. " * 9)
    memories = [a_memory(writer.user, f"{n} is {mark}", said=(id, items[n].id)) for n in range(3)]
    await store.add_memories(writer.user, memories, most=9)
    await store.update_memory(writer.user, memories[1].id, "nothing of it", 1)
    await store.delete_memory(writer.user, memories[2].id, 1)
    found = await store.conversation(writer.user, id)
    assert found is not None
    return found


def files_of(url: str) -> bytes:
    """The database's file, its WAL and its index of the WAL."""
    path = Path(url.removeprefix("sqlite:///"))
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


async def test_no_text_of_a_deleted_conversation_is_left_anywhere(
    store: SqlStore, writer: Writer, url: str
):
    other = await Writer.new(store)
    kept_mark, mark = secrets.token_hex(8), secrets.token_hex(8)
    kept = await marked(store, other, kept_mark)
    gone = await marked(store, writer, mark)
    found = await store.update_conversation(replace(gone, title=f"Again {mark}"))
    assert found is not None
    before = await rows_by_table(store)

    receipt = await store.delete_conversation(writer.user, gone.id, 77)

    assert receipt is not None
    assert receipt.rows == {
        "context_work": 1,
        "conversations": 1,
        "feedback": 30,
        "file_uses": 30,
        "files": 1,
        "forgotten_memories": 2,
        "idempotency_claims": 30,
        "inference_traces": 30,
        "item_bodies": 61,
        "items": 61,
        "memories": 1,
        "memory_sources": 2,
        "response_bodies": 30,
        "response_events": 60,
        "responses": 30,
        "summaries": 1,
    }
    after = await rows_by_table(store)
    assert {table: before[table] - after.get(table, 0) for table in receipt.rows} == receipt.rows
    assert after["usage_entries"] == 60
    # The user's own key and the bill's model keep what they say; they weren't the conversation's.
    # So look for the text where keys and bills are not.
    await store.erase_user(writer.user, 78)
    await forget_models(store, mark)
    assert mark.encode() not in await everything(store)
    if url.startswith("sqlite"):
        left = files_of(url)
        assert mark.encode() not in left
        assert kept_mark.encode() in left
    seen = await store.context(other.user, conversation=kept.id, memory_default=True)
    assert (len(seen.context), len(seen.memories)) == (11, 2)
    assert kept_mark in (seen.summary.text if seen.summary is not None else "")
    assert (await store.export_user(other.user) or {})["conversations"][0]["title"].endswith(
        kept_mark
    )


async def forget_models(store: SqlStore, mark: str) -> None:
    """Bills stay with their model's name, which is a server's and not a person's."""
    update = Statement("test", "UPDATE usage_entries SET model = 'm' WHERE model = $1")
    await store.database.write(lambda tx: tx.execute(update, mark))
    await store.database.tidy()


async def test_a_reader_only_puts_the_emptying_of_the_wal_off(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    async with (
        open_store(url=url, data_dir=tmp_path) as store,
        open_store(url=url, data_dir=tmp_path) as another,
    ):
        writer = await Writer.new(store)
        id = await writer.conversation(an_item("remember this"))
        assert isinstance(store.database, TrioDatabase)
        native = store.database.native
        held, release = trio.Event(), trio.Event()
        token = trio.lowlevel.current_trio_token()

        async def stay(tx: Transaction) -> None:
            await tx.fetch(Statement("test", "SELECT 1 FROM users"))
            token.run_sync_soon(held.set)
            trio.from_thread.run(release.wait, trio_token=token)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(another.database.read, stay)
            await held.wait()
            assert await store.delete_conversation(writer.user, id, 1) is not None
            assert native.untidy
            assert b"remember this" in files_of(url)
            release.set()
        await store.expire(1)
        assert not native.untidy
        assert b"remember this" not in files_of(url)


async def test_a_file_that_another_conversation_uses_stays(store: SqlStore, writer: Writer):
    file = a_file(writer.user)
    await store.add_file(file)
    using = {"content": [{"type": "input_file", "file_id": file.id}]}
    first = await writer.conversation(an_item(body=using))
    second = await writer.conversation(an_item(body=using), an_item(body=using))

    receipt = await store.delete_conversation(writer.user, first, 1)
    assert receipt is not None
    assert (receipt.rows.get("files"), receipt.contents) == (None, ())
    receipt = await store.delete_conversation(writer.user, second, 2)
    assert receipt is not None
    assert (receipt.rows["files"], receipt.contents) == (1, (file.sha256,))


async def test_naming_somebody_elses_file_does_not_make_it_ones_own(
    store: SqlStore, writer: Writer
):
    stranger = await Writer.new(store)
    file = a_file(stranger.user)
    await store.add_file(file)
    id = await writer.conversation(an_item(body={"content": [{"file_id": file.id}]}))

    await store.delete_conversation(writer.user, id, 1)

    assert await store.file(stranger.user, file.id) == file


async def test_a_deleted_item_leaves_the_others(store: SqlStore, writer: Writer):
    items = [an_item(str(n)) for n in range(3)]
    id = await writer.conversation(*items)

    receipt = await store.delete_item(writer.user, id, items[1].id, 5)

    assert receipt is not None
    assert receipt.rows == {"item_bodies": 1, "items": 1}
    left = (await store.context(writer.user, conversation=id)).context
    assert list(map(text_of, left)) == ["0", "2"]
    assert await store.delete_item(writer.user, id, items[1].id, 5) is None
    assert await store.delete_item(writer.user, new_conversation_id(), items[0].id, 5) is None


async def test_a_deleted_responses_items_leave_its_conversation(store: SqlStore, writer: Writer):
    conversation = await writer.conversation(an_item("rules"))
    first = await writer.answered("1", "one", conversation=conversation)
    await writer.answered("2", "two", conversation=conversation)

    receipt = await store.delete_response(writer.user, first, 5)

    assert receipt is not None
    assert receipt.rows["items"] == 2
    left = (await store.context(writer.user, conversation=conversation)).context
    assert list(map(text_of, left)) == ["rules", "2", "two"]
    assert await store.response(writer.user, first) is None
    assert await store.delete_response(writer.user, first, 5) is None
    running = writer.turn("3", conversation=conversation)
    await writer.accept(running)
    with pytest.raises(ResponseInProgress):
        await store.delete_response(writer.user, running.response.id, 6)


async def test_a_deleted_ancestor_is_gone_from_the_chain(store: SqlStore, writer: Writer):
    first = await writer.answered("1", "one")
    second = await writer.answered("2", "two", previous=first)
    await store.delete_response(writer.user, first, 5)

    left = (await store.context(writer.user, previous=second)).context

    assert list(map(text_of, left)) == ["2", "two"]


async def test_deleting_what_an_owner_lost_closes_its_bill(store: SqlStore, writer: Writer):
    conversation = await writer.conversation()
    turn = writer.turn("Hi", conversation=conversation)
    await writer.accept(turn)

    assert await store.delete_conversation(writer.user, conversation, turn.lease_ms) is not None

    (entry,) = await store.usage(writer.user)
    assert entry.settled_ms == turn.lease_ms
    assert not await store.finish_response(writer.final(turn.response.id, "late"))


async def test_an_erased_user_leaves_bills_without_a_name(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    await stranger.answered("mine", "stays")
    mark = secrets.token_hex(8)
    await marked(store, writer, mark)
    for n in range(3):
        await writer.answered(f"{n}", "alone")
    running = writer.turn("still running")
    await writer.accept(running)

    receipt = await store.erase_user(writer.user, 99)

    assert receipt is not None
    assert receipt.subject == writer.user
    assert (receipt.rows["responses"], receipt.rows["api_keys"], receipt.rows["users"]) == (
        34,
        1,
        1,
    )
    assert receipt.contents == ("c" * 64,)
    assert await store.user(writer.user) is None
    assert await store.usage(writer.user) == ()
    counts = await rows_by_table(store)
    assert (counts["usage_entries"], counts["responses"], counts["users"]) == (35, 1, 1)
    assert not await store.finish_response(writer.final(running.response.id, "late"))
    assert await store.erase_user(writer.user, 99) is None
    assert writer.user.encode() not in (await everything(store)).replace(
        receipt.subject.encode(), b"", 1
    )


async def test_an_export_has_all_of_a_user_and_nothing_of_another(store: SqlStore, writer: Writer):
    stranger = await Writer.new(store)
    other, mark = secrets.token_hex(8), secrets.token_hex(8)
    await marked(store, stranger, other)
    await marked(store, writer, mark)
    await writer.answered("alone?", "alone!")

    export = await store.export_user(writer.user)

    assert export is not None
    text = msgspec.json.encode(export)
    assert other.encode() not in text
    assert b"hash of" not in text
    assert len(export["conversations"][0]["items"]) == 61
    (alone,) = [each for each in export["responses"] if each["conversation"] is None]
    assert [item["content"][0]["text"] for item in alone["items"]] == ["alone?", "alone!"]
    assert {
        key: len(export[key]) for key in ("keys", "responses", "feedback", "files", "usage")
    } == {
        "keys": 1,
        "responses": 31,
        "feedback": 30,
        "files": 1,
        "usage": 31,
    }
    assert await store.export_user(UserId("user_none")) is None


async def test_what_has_outlived_its_time_goes(store: SqlStore, writer: Writer):
    day = 24 * 3_600_000
    old = writer.turn("1", claim=Claim(key="old", fingerprint="f"))
    await writer.accept(old)
    await store.append_events(
        writer.node, [(old.response.id, EventBatch(first=0, last=0, body=b"x"))]
    )
    await store.finish_response(writer.final(old.response.id, "one"))
    expired, valid = a_file(writer.user, expires_ms=5), a_file(writer.user, expires_ms=10**12)
    await store.add_file(expired)
    await store.add_file(valid)
    running = writer.turn("2", claim=Claim(key="new", fingerprint="f"))
    await writer.accept(running)

    first = await store.expire(writer.now_ms)
    assert first.rows == {"files": 1}
    second = await store.expire(old.response.created_ms + day + 15)
    assert second.rows == {"idempotency_claims": 1}
    third = await store.expire(writer.now_ms + 31 * day)
    assert third.rows == {"idempotency_claims": 1, "response_events": 2}
    fourth = await store.expire(writer.now_ms + 91 * day)
    assert fourth.rows == {"inference_traces": 1}

    assert (await store.expire(writer.now_ms + 91 * day)).rows == {}
    assert await store.response(writer.user, old.response.id) is not None
    assert await store.files(writer.user, Page()) == (valid,)
