"""Vector stores and the files in them, on both databases."""

from dataclasses import replace

import pytest

from antiphon.document_records import (
    DocumentFailure,
    FileCounts,
    NewStoreFile,
    StoreFileStatus,
    VectorStoreStatus,
)
from antiphon.errors import RecordNotFound
from antiphon.ids import (
    FileId,
    VectorStoreId,
    new_file_batch_id,
    new_node_id,
)
from antiphon.persistence.check import check_database
from antiphon.persistence.store import SqlStore
from antiphon.reading_files import Chunking
from antiphon.records import Page
from antiphon.testing.specimens import Writer
from antiphon.testing.stored_documents import (
    a_filled_store,
    a_reading,
    a_stored_file,
    a_vector_store,
    made,
)

ME = new_node_id()
DAY_MS = 24 * 3_600_000


async def test_a_vector_store_is_made_found_changed_and_listed(store: SqlStore, writer: Writer):
    first = await store.create_vector_store(
        a_vector_store(writer.user, name="first ☃", metadata={"a": "b"}, expires_after_days=3)
    )
    second = await store.create_vector_store(a_vector_store(writer.user, created_ms=2))

    assert await store.vector_store(writer.user, first.id) == first
    assert (first.name, first.metadata, first.counts) == ("first ☃", {"a": "b"}, FileCounts())
    assert first.expires_ms == 1 + 3 * DAY_MS
    changed = replace(first, name="1", metadata={}, expires_after_days=None, last_active_ms=9)
    assert await store.update_vector_store(changed) == changed
    assert await store.update_vector_store(replace(changed, id=VectorStoreId("vs_none"))) is None
    assert await store.vector_stores(writer.user, Page()) == (second, changed)
    oldest = Page(limit=1, newest_first=False)
    assert await store.vector_stores(writer.user, oldest) == (changed,)
    after = replace(oldest, after=changed.id)
    assert await store.vector_stores(writer.user, after) == (second,)


async def test_files_stand_where_their_documents_do(store: SqlStore, writer: Writer):
    files = [await a_stored_file(store, writer.user, sha) for sha in "abc"]
    vectors = await store.create_vector_store(
        a_vector_store(writer.user), [NewStoreFile(file=file) for file in files]
    )
    assert (vectors.counts, vectors.usage_bytes) == (FileCounts(in_progress=3), 0)
    assert vectors.status(5) is VectorStoreStatus.IN_PROGRESS

    works = {work.file: work.document.id for work in await store.take_documents(ME, 9, lease_ms=99)}
    await store.finish_document(works[files[0]], ME, a_reading(["x"]))
    failure = DocumentFailure(code="empty_file", message="It is empty.")
    await store.fail_document(works[files[1]], ME, failure)
    await store.renew_document(works[files[2]], ME, lease_ms=99, progress=0.25)

    found = await store.vector_store(writer.user, vectors.id)
    assert found is not None
    assert found.counts == FileCounts(in_progress=1, completed=1, failed=1)
    assert found.usage_bytes == 2 + 1 + 4
    assert found.revision > vectors.revision
    listed = await store.vector_store_files(writer.user, vectors.id, Page(newest_first=False))
    by_file = {each.file: each for each in listed or ()}
    assert [by_file[file].status for file in files] == ["completed", "failed", "in_progress"]
    assert by_file[files[1]].failure == failure
    assert by_file[files[2]].progress == 0.25
    for status in ("completed", "failed", "in_progress"):
        some = await store.vector_store_files(
            writer.user, vectors.id, Page(), status=StoreFileStatus(status)
        )
        assert [each.status for each in some or ()] == [status]


async def test_files_are_listed_a_page_at_a_time(store: SqlStore, writer: Writer):
    vectors = await store.create_vector_store(a_vector_store(writer.user))
    files = []
    for sha in "abcde":
        files.append(await a_stored_file(store, writer.user, sha))
        put = [NewStoreFile(file=files[-1])]
        await store.add_vector_store_files(writer.user, vectors.id, put, writer.tick())

    found: list[FileId] = []
    page = Page(limit=2, newest_first=False)
    while some := await store.vector_store_files(writer.user, vectors.id, page):
        found += [each.file for each in some]
        page = replace(page, after=found[-1])

    assert found == files
    newest = await store.vector_store_files(writer.user, vectors.id, Page(limit=1))
    assert [each.file for each in newest or ()] == files[-1:]
    nowhere = VectorStoreId("vs_none")
    assert await store.vector_store_files(writer.user, nowhere, Page()) is None


async def test_a_file_has_attributes_and_is_cut_as_it_was_asked_for(
    store: SqlStore, writer: Writer
):
    file = await a_stored_file(store, writer.user, filename="a.md")
    cut = Chunking(max_tokens=300, overlap_tokens=50)
    attributes = {"year": 2024.0, "draft": True, "by": "ada ☃"}
    new = NewStoreFile(file=file, chunking=cut, attributes=attributes)
    vectors = await store.create_vector_store(a_vector_store(writer.user), [new])

    found = await store.vector_store_file(writer.user, vectors.id, file)
    assert found is not None
    assert (found.filename, found.chunking, found.attributes) == ("a.md", cut, attributes)
    changed = await store.set_file_attributes(writer.user, vectors.id, file, {"year": 1.5})
    assert changed is not None
    assert changed == replace(found, attributes={"year": 1.5})
    after = await store.vector_store(writer.user, vectors.id)
    assert after is not None
    assert after.revision > vectors.revision
    assert await store.set_file_attributes(writer.user, vectors.id, FileId("file-x"), {}) is None


async def test_all_files_are_put_in_or_none(store: SqlStore, writer: Writer):
    file = await a_stored_file(store, writer.user)
    vectors = await store.create_vector_store(a_vector_store(writer.user))
    both = [NewStoreFile(file=file), NewStoreFile(file=FileId("file-none"))]

    with pytest.raises(RecordNotFound, match="file-none"):
        await store.add_vector_store_files(
            writer.user, vectors.id, both, 5, batch=new_file_batch_id()
        )
    with pytest.raises(RecordNotFound, match="vs_none"):
        await store.add_vector_store_files(writer.user, VectorStoreId("vs_none"), both[:1], 5)
    fresh = a_vector_store(writer.user)
    with pytest.raises(RecordNotFound):
        await store.create_vector_store(fresh, both)

    assert await store.vector_store(writer.user, fresh.id) is None
    assert await store.vector_store(writer.user, vectors.id) == vectors
    assert await store.documents(writer.user, [file]) == {}


async def test_a_file_that_is_put_in_again_is_cut_anew_and_leaves_nothing_behind(
    store: SqlStore, writer: Writer
):
    vectors, file = await a_filled_store(store, writer.user, ME, ["old"])
    finer = NewStoreFile(file=file, chunking=Chunking(max_tokens=100, overlap_tokens=0))

    (again,) = await store.add_vector_store_files(writer.user, vectors, [finer], writer.tick())

    assert again.status is StoreFileStatus.IN_PROGRESS
    assert await store.search_text(writer.user, [vectors], ["old"], 5) == ()
    await made(store, ME, ["new"], writer.now_ms)
    assert len(await store.search_text(writer.user, [vectors], ["new"], 5)) == 1
    assert (await check_database(store.database)).rows["documents"] == 1


async def test_the_same_again_is_ready_at_once(store: SqlStore, writer: Writer):
    vectors, file = await a_filled_store(store, writer.user, ME, ["words"])
    same = await a_stored_file(store, writer.user)
    put = [NewStoreFile(file=file), NewStoreFile(file=same)]

    added = await store.add_vector_store_files(writer.user, vectors, put, writer.tick())

    assert [each.status for each in added] == ["completed", "completed"]
    assert await store.take_documents(ME, 2_000_000, lease_ms=3_000_000) == ()


async def test_a_batch_is_counted_and_cancelled_as_far_as_it_is_not_read(
    store: SqlStore, writer: Writer
):
    vectors, _ = await a_filled_store(store, writer.user, ME, ["x"])
    files = [await a_stored_file(store, writer.user, sha) for sha in "bcd"]
    batch = new_file_batch_id()
    put = [NewStoreFile(file=file) for file in files]
    await store.add_vector_store_files(writer.user, vectors, put, writer.tick(), batch=batch)
    (work, _) = await store.take_documents(ME, writer.now_ms, lease_ms=9_000_000, limit=2)
    await store.finish_document(work.document.id, ME, a_reading(["x"]))

    before = await store.file_batch(writer.user, vectors, batch)
    after = await store.cancel_file_batch(writer.user, vectors, batch)

    assert before is not None
    assert before.counts == FileCounts(in_progress=2, completed=1)
    assert before.status is StoreFileStatus.IN_PROGRESS
    assert after is not None
    assert after.counts == FileCounts(completed=1, cancelled=2)
    assert after.status is StoreFileStatus.CANCELLED
    found = await store.vector_store(writer.user, vectors)
    assert found is not None
    assert found.counts == FileCounts(completed=2, cancelled=2)
    assert await store.take_documents(ME, 9_999_999, lease_ms=99_999_999) == ()
    listed = await store.vector_store_files(writer.user, vectors, Page(), batch=batch)
    assert {each.file for each in listed or ()} == set(files)
    assert await store.cancel_file_batch(writer.user, vectors, new_file_batch_id()) is None
    (again,) = await store.add_vector_store_files(writer.user, vectors, put[-1:], writer.tick())
    assert again.status is StoreFileStatus.IN_PROGRESS
    assert (await check_database(store.database)).problems == ()


async def test_a_vector_store_expires_after_its_last_use(store: SqlStore, writer: Writer):
    vectors, file = await a_filled_store(store, writer.user, ME, ["secret"])
    found = await store.vector_store(writer.user, vectors)
    assert found is not None
    await store.update_vector_store(replace(found, expires_after_days=2))
    await store.touch_vector_stores({vectors: 5 * 1000, VectorStoreId("vs_none"): 7})
    await store.touch_vector_stores({vectors: 4 * 1000})
    end = 5 * 1000 + 2 * DAY_MS

    assert not (await store.expire(end - 1)).rows
    receipt = await store.expire(end)

    assert receipt.rows["documents"] == receipt.rows["vector_store_files"] == 1
    gone = await store.vector_store(writer.user, vectors)
    assert gone is not None
    assert gone.expired
    assert (gone.status(1), gone.counts) == (VectorStoreStatus.EXPIRED, FileCounts())
    assert gone.revision > found.revision
    assert await store.file(writer.user, file) is not None
    await store.touch_vector_stores({vectors: end + 5})
    with pytest.raises(RecordNotFound):
        await store.add_vector_store_files(writer.user, vectors, [NewStoreFile(file=file)], end + 6)
    assert not (await store.expire(end + 9)).rows
    assert (await check_database(store.database)).problems == ()


async def test_one_that_is_over_takes_no_files_even_before_it_is_cleaned_up(
    store: SqlStore, writer: Writer
):
    file = await a_stored_file(store, writer.user)
    vectors = await store.create_vector_store(a_vector_store(writer.user, expires_after_days=1))

    put = [NewStoreFile(file=file)]
    with pytest.raises(RecordNotFound):
        await store.add_vector_store_files(writer.user, vectors.id, put, 2 * DAY_MS)
