"""No word of a file is left anywhere once it, its vector store or its user is deleted: not in a
table, not in the full-text index, not in a file of the database."""

import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from antiphon.document_records import NewStoreFile
from antiphon.errors import RecordNotFound
from antiphon.ids import FileId, VectorStoreId, new_file_batch_id, new_node_id
from antiphon.persistence import context_store, deletion, document_deletion, documents, pace
from antiphon.persistence.bridge import TrioDatabase, open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.port import Statement, Transaction, Work
from antiphon.persistence.schema import TABLES
from antiphon.persistence.store import SqlStore
from antiphon.testing.specimens import Writer, an_item
from antiphon.testing.stored_documents import a_reading, a_stored_file, a_vector_store, made

ME = new_node_id()
R = TypeVar("R")


async def everything(store: SqlStore) -> bytes:
    """Every value of every table, those inside of the full-text index too."""

    async def read(tx: Transaction) -> bytes:
        tables = [table.name for table in TABLES]
        if store.database.dialect.name == "sqlite":
            tables += ["chunk_index_data", "chunk_index_idx", "chunk_index_config"]
        rows: list[object] = []
        for table in tables:
            for row in await tx.fetch(Statement("test", f"SELECT * FROM {table}")):
                rows += [table, *row]
        return b"\n".join(
            value if isinstance(value, bytes) else str(value).encode() for value in rows
        )

    return await store.database.read(read)


def files_of(url: str) -> bytes:
    path = Path(url.removeprefix("sqlite:///"))
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def marked(mark: str, chunks: int = 40) -> list[str]:
    """Texts with the mark as a word of its own, and in one that is nobody else's."""
    return [f"{mark} and word{number}{mark}, " + "as it goes " * 60 for number in range(chunks)]


async def searched(
    store: SqlStore, writer: Writer, mark: str, sha256: str
) -> tuple[VectorStoreId, FileId]:
    """A vector store with one file in a batch, all marked."""
    file = await a_stored_file(
        store, writer.user, sha256, filename=f"{mark}.txt", media_type=f"text/{mark}"
    )
    vectors = await store.create_vector_store(
        a_vector_store(writer.user, name=mark, metadata={mark: mark})
    )
    put = [NewStoreFile(file=file, attributes={mark: mark})]
    batch = new_file_batch_id()
    await store.add_vector_store_files(writer.user, vectors.id, put, writer.tick(), batch=batch)
    (work,) = await store.take_documents(ME, writer.now_ms, lease_ms=9_000_000)
    ready = a_reading(marked(mark), heading=mark)
    assert await store.finish_document(work.document.id, ME, ready)
    return vectors.id, file


async def gone(store: SqlStore, url: str, mark: str, kept: str) -> None:
    found = await everything(store)
    assert mark.encode() not in found
    assert kept.encode() in found
    if url.startswith("sqlite"):
        left = files_of(url)
        assert mark.encode() not in left
        assert kept.encode() in left
    assert (await check_database(store.database)).problems == ()


async def gone_with_its_name(
    store: SqlStore, writer: Writer, vectors: VectorStoreId, url: str, mark: str, kept: str
) -> None:
    """Of a file that was in a vector store, which has the mark in its own name, too."""
    found = await store.vector_store(writer.user, vectors)
    assert found is not None
    await store.update_vector_store(replace(found, name="", metadata={}))
    await store.database.tidy()
    await gone(store, url, mark, kept)


@pytest.mark.parametrize("way", ["file", "user", "vector store", "expiry"])
async def test_no_word_of_what_was_deleted_is_left(
    store: SqlStore, writer: Writer, url: str, way: str
):
    other = await Writer.new(store)
    mark, kept = secrets.token_hex(8), secrets.token_hex(8)
    vectors, file = await searched(store, writer, mark, "a")
    await searched(store, other, kept, "b")
    assert mark.encode() in await everything(store)

    match way:
        case "file":
            receipt = await store.delete_file(writer.user, file, 9)
            assert receipt is not None
            assert receipt.rows == {
                "chunk_words": 40,
                "chunks": 40,
                "document_texts": 1,
                "document_vectors": 1,
                "documents": 1,
                "files": 1,
                "vector_store_files": 1,
            }
            found = await store.vector_store(writer.user, vectors)
            assert found is not None
            await store.update_vector_store(replace(found, name="", metadata={}))
            await store.database.tidy()
        case "user":
            receipt = await store.erase_user(writer.user, 9)
            assert receipt is not None
            assert receipt.rows["documents"] == receipt.rows["vector_stores"] == 1
        case "vector store":
            receipt = await store.delete_vector_store(writer.user, vectors, 8)
            assert receipt is not None
            assert receipt.rows == {
                "chunk_words": 40,
                "chunks": 40,
                "document_texts": 1,
                "document_vectors": 1,
                "documents": 1,
                "file_batches": 1,
                "vector_store_files": 1,
                "vector_stores": 1,
            }
            await store.delete_file(writer.user, file, 9)
        case _:
            found = await store.vector_store(writer.user, vectors)
            assert found is not None
            named = replace(found, name="", metadata={}, expires_after_days=1)
            await store.update_vector_store(named)
            receipt = await store.expire(writer.now_ms + 10**9)
            assert receipt.rows["chunks"] == 40
            await store.delete_file(writer.user, file, 9)

    await gone(store, url, mark, kept)


async def test_the_text_goes_with_the_vector_store_though_the_file_stays(
    store: SqlStore, writer: Writer, url: str
):
    mark, kept = secrets.token_hex(8), secrets.token_hex(8)
    await searched(store, writer, kept, "b")
    file = await a_stored_file(store, writer.user)
    put = [NewStoreFile(file=file)]
    vectors = await store.create_vector_store(a_vector_store(writer.user), put)
    await made(store, ME, marked(mark), writer.now_ms)

    assert await store.remove_vector_store_file(writer.user, vectors.id, file, 5) is not None

    await gone(store, url, mark, kept)
    assert await store.file(writer.user, file) is not None
    assert await store.remove_vector_store_file(writer.user, vectors.id, file, 5) is None


async def test_a_conversation_takes_its_files_along_but_not_those_of_a_vector_store(
    store: SqlStore, writer: Writer
):
    alone = await a_stored_file(store, writer.user, "a")
    shared = await a_stored_file(store, writer.user, "b")
    await store.create_vector_store(a_vector_store(writer.user), [NewStoreFile(file=shared)])
    await store.want_document(writer.user, alone, 1)
    await made(store, ME, ["secret"])
    content = [{"type": "input_file", "file_id": id} for id in (alone, shared)]
    conversation = await writer.conversation(an_item(body={"content": content}))

    receipt = await store.delete_conversation(writer.user, conversation, 9)

    assert receipt is not None
    assert (receipt.rows["files"], receipt.rows["documents"]) == (1, 1)
    assert await store.file(writer.user, alone) is None
    assert await store.file(writer.user, shared) is not None
    assert (await check_database(store.database)).problems == ()


async def test_a_large_vector_store_goes_in_several_transactions(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(document_deletion, "AT_ONCE", 2)
    files = [await a_stored_file(store, writer.user, sha) for sha in "01234"]
    put = [NewStoreFile(file=file) for file in files]
    vectors = await store.create_vector_store(a_vector_store(writer.user), put)
    await made(store, ME, ["x", "y"])

    receipt = await store.delete_vector_store(writer.user, vectors.id, 5)

    assert receipt is not None
    assert (receipt.rows["vector_store_files"], receipt.rows["chunks"]) == (5, 10)
    assert await store.delete_vector_store(writer.user, vectors.id, 5) is None


async def test_a_deletion_that_was_cut_short_is_ended_by_the_next_clean_up(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(document_deletion, "AT_ONCE", 1)
    files = [await a_stored_file(store, writer.user, sha) for sha in "012"]
    put = [NewStoreFile(file=file) for file in files]
    vectors = await store.create_vector_store(a_vector_store(writer.user), put)
    await made(store, ME, ["found"])
    await store.database.write(
        lambda tx: document_deletion.some_of_store(tx, writer.user, vectors.id)
    )
    assert await store.search_text(writer.user, [vectors.id], ["found"], 9) == ()

    receipt = await store.expire(1)

    assert receipt.rows["documents"] == 2
    assert await store.delete_vector_store(writer.user, vectors.id, 5) is not None
    assert (await check_database(store.database)).problems == ()


def in_twelves(monkeypatch: pytest.MonkeyPatch) -> None:
    """However quickly they go."""
    monkeypatch.setattr(documents, "REMOVED_AT_ONCE", 12)
    monkeypatch.setattr(pace, "LEAST", 12)
    monkeypatch.setattr(pace, "MOST", 12)


async def chunks_left(store: SqlStore) -> int:
    async def count(tx: Transaction) -> int:
        rows = await tx.fetch(Statement("test", "SELECT COUNT(*) FROM chunks"))
        return int(rows[0][0])

    return await store.database.read(count)


async def test_a_large_file_is_gone_at_once_and_its_chunks_go_some_at_a_time(
    store: SqlStore, writer: Writer, url: str, monkeypatch: pytest.MonkeyPatch
):
    in_twelves(monkeypatch)
    other = await Writer.new(store)
    mark, kept = secrets.token_hex(8), secrets.token_hex(8)
    vectors, file = await searched(store, writer, mark, "a")
    await searched(store, other, kept, "b")
    native, left, problems = store.database.write, [await chunks_left(store)], set[str]()

    async def write(work: Work[R]) -> R:
        result = await native(work)
        left.append(await chunks_left(store))
        assert await store.file(writer.user, file) is None
        assert await store.search_text(writer.user, [vectors], [mark], 9) == ()
        problems.update((await check_database(store.database)).problems)
        return result

    monkeypatch.setattr(store.database, "write", write)
    receipt = await store.delete_file(writer.user, file, 9)
    monkeypatch.undo()

    assert receipt is not None
    assert (receipt.rows["chunks"], receipt.rows["chunk_words"]) == (40, 40)
    assert receipt.rows["documents"] == receipt.rows["document_texts"] == 1
    assert left == [80, 80, 68, 56, 44, 40, 40]
    assert problems == set()
    await gone_with_its_name(store, writer, vectors, url, mark, kept)


async def test_many_small_documents_are_not_removed_in_one_long_transaction(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "REMOVED_AT_ONCE", 5)
    files = [await a_stored_file(store, writer.user, sha) for sha in "0123"]
    put = [NewStoreFile(file=file) for file in files]
    vectors = await store.create_vector_store(a_vector_store(writer.user), put)
    await made(store, ME, ["x", "y", "z"])

    await store.database.write(
        lambda tx: document_deletion.some_of_store(tx, writer.user, vectors.id)
    )

    assert await chunks_left(store) == 9, "3 of 12 at once, and no more than 5"
    receipt = await store.delete_vector_store(writer.user, vectors.id, 5)
    assert receipt is not None
    assert await chunks_left(store) == 0
    assert (await check_database(store.database)).problems == ()


async def test_a_removal_that_was_cut_short_goes_on_with_the_next_clean_up(
    store: SqlStore, other: SqlStore, writer: Writer, url: str, monkeypatch: pytest.MonkeyPatch
):
    """And what is made of the same content meanwhile stays."""
    in_twelves(monkeypatch)
    mark, kept = secrets.token_hex(8), secrets.token_hex(8)
    _, file = await searched(store, writer, mark, "a")
    await store.database.write(lambda tx: deletion.file(tx, writer.user, file, 9))
    assert await store.database.write(lambda tx: documents.remove_some(tx, 12))
    again = await a_stored_file(store, writer.user, "a", media_type=f"text/{mark}")
    vectors = await store.create_vector_store(
        a_vector_store(writer.user), [NewStoreFile(file=again)]
    )
    await made(store, ME, [kept] * 20, writer.now_ms)
    assert await chunks_left(store) == 28 + 20

    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.expire, 1)
        nursery.start_soon(other.expire, 1)

    assert await chunks_left(store) == 20
    assert len(await store.search_text(writer.user, [vectors.id], [kept], 50)) == 20
    assert (await check_database(store.database)).problems == ()
    assert await store.database.write(lambda tx: documents.remove_some(tx, 12)) is False


async def test_who_deletes_a_huge_file_does_not_wait_for_the_last_of_it(
    store: SqlStore, writer: Writer, url: str, monkeypatch: pytest.MonkeyPatch
):
    in_twelves(monkeypatch)
    other = await Writer.new(store)
    mark, kept = secrets.token_hex(8), secrets.token_hex(8)
    vectors, file = await searched(store, writer, mark, "a")
    await searched(store, other, kept, "b")

    monkeypatch.setattr(context_store, "_REMOVING_S", 0.0)
    receipt = await store.delete_file(writer.user, file, 9)

    assert receipt is not None
    assert receipt.rows["chunks"] == 40
    assert await chunks_left(store) == 80
    assert await store.file(writer.user, file) is None
    assert await store.search_text(writer.user, [vectors], [mark], 9) == ()
    assert await store.delete_file(writer.user, file, 9) is None
    assert (await store.expire(1)).is_unfinished
    monkeypatch.undo()
    assert not (await store.expire(1)).is_unfinished
    assert await chunks_left(store) == 40
    await gone_with_its_name(store, writer, vectors, url, mark, kept)


async def test_a_deletion_is_told_though_letting_go_of_it_takes_longer_than_there_is_time(
    store: SqlStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    file = await a_stored_file(store, writer.user)
    monkeypatch.setattr(context_store, "_ANSWER_S", 60.0)

    async def for_ever(*, deleted: bool = True) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(store.database, "tidy", for_ever)
    with trio.fail_after(60.2):
        receipt = await store.delete_file(writer.user, file, 9)

    assert receipt is not None
    assert await store.file(writer.user, file) is None


async def test_deleting_while_files_are_put_in_leaves_nothing_half(
    store: SqlStore, other: SqlStore, writer: Writer
):
    files = [await a_stored_file(store, writer.user, sha) for sha in "0123456789"]
    stores = [await store.create_vector_store(a_vector_store(writer.user)) for _ in range(2)]

    async def put(server: SqlStore, vectors: VectorStoreId) -> None:
        for file in files:
            new = [NewStoreFile(file=file)]
            with suppress(RecordNotFound):  # deleted by now
                await server.add_vector_store_files(writer.user, vectors, new, writer.tick())

    async def delete() -> None:
        for file in files:
            await store.delete_file(writer.user, file, 9)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(put, store, stores[0].id)
        nursery.start_soon(put, other, stores[1].id)
        nursery.start_soon(made, other, ME, ["text"])
        nursery.start_soon(delete)

    assert (await check_database(store.database)).problems == ()
    assert (await check_database(store.database)).rows["documents"] == 0
    for each in stores:
        found = await store.vector_store(writer.user, each.id)
        assert found is not None
        assert found.counts.total == 0


async def test_a_start_ends_what_the_last_process_left(tmp_path: Path):
    """It was killed between the deletion and what follows it."""
    url, mark, kept = f"sqlite:///{tmp_path / 'x.db'}", secrets.token_hex(8), secrets.token_hex(8)
    async with open_store(url=url, data_dir=tmp_path) as store:
        writer, other = await Writer.new(store), await Writer.new(store)
        await searched(store, other, kept, "b")
        await searched(store, writer, mark, "a")
        assert isinstance(store.database, TrioDatabase)
        native = store.database

        async def nothing(*, deleted: bool = True) -> None:
            pass

        tidy, native.tidy = native.tidy, nothing  # type: ignore[method-assign]
        await store.erase_user(writer.user, 5)
        native.tidy = tidy  # type: ignore[method-assign]
        assert mark.encode() in files_of(url)
    async with open_store(url=url, data_dir=tmp_path) as store:
        await store.expire(1)

        await gone(store, url, mark, kept)
