"""What is made of files: wanted, taken by one, written whole; on both databases."""

from contextlib import suppress

import pytest
import trio

from antiphon.document_records import (
    Document,
    DocumentFailure,
    DocumentStatus,
    DocumentWork,
    NewStoreFile,
)
from antiphon.errors import InjectedFault
from antiphon.fault_plan import Fault, FaultPlan, Site
from antiphon.faults import injected
from antiphon.ids import FileId, NodeId, new_node_id
from antiphon.persistence.check import check_database
from antiphon.persistence.store import SqlStore
from antiphon.reading_files import EXTRACTOR, Chunking
from antiphon.testing.specimens import Writer
from antiphon.testing.stored_documents import (
    LEASE_MS,
    MODEL,
    a_filled_store,
    a_reading,
    a_stored_file,
    a_vector_store,
    made,
)

ME, OTHER = new_node_id(), new_node_id()
BROKEN = DocumentFailure(code="damaged_file", message="It ends too early.")


async def wanted(writer: Writer, file: FileId, **options: Chunking) -> Document:
    document = await writer.store.want_document(writer.user, file, writer.tick(), **options)
    assert document is not None
    return document


async def taken(writer: Writer, owner: NodeId = ME, *, limit: int = 4) -> tuple[DocumentWork, ...]:
    now = writer.tick()
    return await writer.store.take_documents(owner, now, lease_ms=now + LEASE_MS, limit=limit)


async def standing(writer: Writer, file: FileId) -> Document:
    return (await writer.store.documents(writer.user, [file]))[file]


async def test_a_document_goes_from_wanted_to_ready(store: SqlStore, writer: Writer):
    file = await a_stored_file(store, writer.user, filename="Notes.MD", media_type="text/x")
    before = await wanted(writer, file)
    (work,) = await taken(writer)
    assert (work.file, work.filename, work.media_type) == (file, "Notes.MD", "text/x")
    assert (work.document.status, work.attempts) == (DocumentStatus.READING, 0)
    assert await store.document_text(writer.user, file) is None

    await store.renew_document(work.document.id, ME, lease_ms=2_000_000, progress=0.5)
    assert (await standing(writer, file)).progress == 0.5
    ready = a_reading(["one", "two"])
    assert await store.finish_document(work.document.id, ME, ready)

    after = await standing(writer, file)
    assert (before.status, after.status) == (DocumentStatus.PENDING, DocumentStatus.READY)
    assert (after.progress, after.pages, after.chunks, after.characters) == (1.0, 2, 2, 8)
    assert (after.extractor, after.model, after.title) == (EXTRACTOR, MODEL, "Top")
    assert after.notices == ("2 pages",)
    assert after.usage_bytes == 8 + 6 + 8
    assert after.revision > before.revision
    text = await store.document_text(writer.user, file)
    assert text is not None
    assert (text.text, text.headings) == ("one\ntwo\n", ready.read.headings)
    assert text.page_starts == ready.read.page_starts
    assert await taken(writer) == ()


async def test_the_same_content_is_read_once_for_a_user_and_again_for_another(
    store: SqlStore, writer: Writer
):
    other = await Writer.new(store)
    mine = [await a_stored_file(store, writer.user) for _ in range(2)]
    theirs = await a_stored_file(store, other.user)

    documents = {(await wanted(writer, file)).id for file in mine}
    documents.add((await wanted(other, theirs)).id)

    assert len(documents) == 2
    assert len(await taken(writer)) == 2


async def test_another_kind_of_name_or_another_cut_is_another_document(
    store: SqlStore, writer: Writer
):
    text = await a_stored_file(store, writer.user, filename="a.TXT")
    same = await a_stored_file(store, writer.user, filename="b.txt")
    table = await a_stored_file(store, writer.user, filename="a.csv")

    first = await wanted(writer, text)
    assert (await wanted(writer, same)).id == first.id
    assert (await wanted(writer, table)).id != first.id
    finer = await wanted(writer, text, chunking=Chunking(max_tokens=200, overlap_tokens=0))
    assert finer.id != first.id
    assert finer.chunking == Chunking(max_tokens=200, overlap_tokens=0)


async def test_a_file_that_is_not_there_has_no_document(store: SqlStore, writer: Writer):
    file = FileId("file-none")

    assert await store.want_document(writer.user, file, 1) is None
    assert await store.documents(writer.user, [file]) == {}


async def test_one_that_somebody_waits_for_comes_first(store: SqlStore, writer: Writer):
    slow = [await a_stored_file(store, writer.user, sha) for sha in "bcd"]
    await store.create_vector_store(
        a_vector_store(writer.user), [NewStoreFile(file=file) for file in slow]
    )
    urgent = await a_stored_file(store, writer.user, "e")
    await wanted(writer, urgent)
    await wanted(writer, slow[2])

    works = await taken(writer)

    assert [work.file for work in works][:2] == [slow[2], urgent]
    assert {work.file for work in works[2:]} == {slow[0], slow[1]}


async def test_each_is_taken_by_one_of_many(store: SqlStore, other: SqlStore, writer: Writer):
    for sha in "0123456789abcdef":
        await wanted(writer, await a_stored_file(store, writer.user, sha))
    found: list[str] = []

    async def take(server: SqlStore, owner: NodeId) -> None:
        for _ in range(4):
            works = await server.take_documents(owner, writer.now_ms, lease_ms=9_000_000, limit=2)
            found.extend(work.document.id for work in works)

    async with trio.open_nursery() as nursery:
        for server, owner in ((store, ME), (other, OTHER)):
            nursery.start_soon(take, server, owner)

    assert len(found) == len(set(found)) == 16


async def test_a_lease_that_has_passed_is_taken_over_and_its_owner_writes_nothing(
    store: SqlStore, writer: Writer
):
    file = await a_stored_file(store, writer.user)
    await wanted(writer, file)
    (lost,) = await taken(writer)
    id = lost.document.id
    assert await taken(writer, OTHER) == ()
    writer.now_ms += LEASE_MS

    (work,) = await taken(writer, OTHER)

    assert work.document.id == id
    assert not await store.renew_document(id, ME, lease_ms=9_000_000, progress=0.9)
    assert not await store.finish_document(id, ME, a_reading(["mine"]))
    assert not await store.fail_document(id, ME, BROKEN)
    assert not await store.release_document(id, ME, again_ms=1)
    assert await store.finish_document(id, OTHER, a_reading(["theirs"]))
    assert not await store.finish_document(id, OTHER, a_reading(["twice"]))
    text = await store.document_text(writer.user, file)
    assert text is not None
    assert text.text == "theirs\n"


async def test_what_is_let_go_of_is_tried_again_when_it_is_due(store: SqlStore, writer: Writer):
    await wanted(writer, await a_stored_file(store, writer.user))
    (work,) = await taken(writer)
    later = writer.now_ms + 5_000

    assert await store.release_document(work.document.id, ME, again_ms=later)
    assert await taken(writer) == ()
    writer.now_ms = later
    (again,) = await taken(writer)
    assert again.attempts == 1
    await store.release_document(work.document.id, ME, again_ms=later, counted=False)
    (again,) = await taken(writer, OTHER)
    assert again.attempts == 1


async def test_a_failure_is_for_good_until_the_file_is_put_in_again(
    store: SqlStore, writer: Writer
):
    file = await a_stored_file(store, writer.user)
    vectors = await store.create_vector_store(a_vector_store(writer.user))
    put = [NewStoreFile(file=file)]
    await store.add_vector_store_files(writer.user, vectors.id, put, writer.tick())
    (work,) = await taken(writer)

    assert await store.fail_document(work.document.id, ME, BROKEN)

    found = await standing(writer, file)
    assert (found.status, found.failure) == (DocumentStatus.FAILED, BROKEN)
    assert (await wanted(writer, file)).status is DocumentStatus.FAILED
    assert await taken(writer) == ()
    await store.add_vector_store_files(writer.user, vectors.id, put, writer.tick())
    assert (await standing(writer, file)).failure is None
    assert [again.document.id for again in await taken(writer)] == [work.document.id]


async def test_what_others_have_made_is_made_anew_and_found_until_then(
    store: SqlStore, writer: Writer
):
    vectors, file = await a_filled_store(store, writer.user, ME, ["old words"])
    bad = await a_stored_file(store, writer.user, "f")
    await wanted(writer, bad)
    (work,) = await taken(writer)
    await store.fail_document(work.document.id, ME, BROKEN)
    assert await store.remake_documents(EXTRACTOR, MODEL, writer.now_ms) == 0
    before = await standing(writer, file)

    assert await store.remake_documents(EXTRACTOR, "another", writer.now_ms) == 1
    (again,) = await taken(writer)
    assert again.document.status is DocumentStatus.READY
    found = await store.search_text(writer.user, [vectors], ["words"], 5)
    assert [each.chunk.text for each in found] == ["old words"]
    await store.fail_document(again.document.id, ME, BROKEN)
    assert (await standing(writer, file)).status is DocumentStatus.READY

    assert await store.remake_documents("2", MODEL, writer.now_ms) == 2
    for again in await taken(writer):
        await store.finish_document(again.document.id, ME, a_reading(["new"], model="another"))
    assert await store.search_text(writer.user, [vectors], ["words"], 5) == ()
    assert len(await store.search_text(writer.user, [vectors], ["new"], 5)) == 1
    assert (await standing(writer, file)).revision > before.revision
    assert (await standing(writer, bad)).status is DocumentStatus.READY
    assert (await check_database(store.database)).problems == ()


async def test_what_nobody_needs_any_more_is_lost_to_who_makes_it(store: SqlStore, writer: Writer):
    file = await a_stored_file(store, writer.user)
    vectors = await store.create_vector_store(
        a_vector_store(writer.user), [NewStoreFile(file=file)]
    )
    (work,) = await taken(writer)

    await store.delete_vector_store(writer.user, vectors.id, 5)

    assert not await store.renew_document(work.document.id, ME, lease_ms=9_000_000, progress=0.5)
    assert not await store.finish_document(work.document.id, ME, a_reading(["secret"]))
    assert await store.file(writer.user, file) is not None
    assert (await check_database(store.database)).problems == ()


async def test_a_document_stays_as_long_as_anything_needs_it(store: SqlStore, writer: Writer):
    vectors, file = await a_filled_store(store, writer.user, ME, ["kept"])
    await wanted(writer, file)

    receipt = await store.remove_vector_store_file(writer.user, vectors, file, 5)

    assert receipt is not None
    assert receipt.rows == {"vector_store_files": 1}
    assert await store.document_text(writer.user, file) is not None
    assert len(await store.search_text(writer.user, [], ["kept"], 5, files=[file])) == 1
    receipt = await store.delete_file(writer.user, file, 6)
    assert receipt is not None
    assert receipt.rows == {
        "chunk_words": 1,
        "chunks": 1,
        "document_texts": 1,
        "document_vectors": 1,
        "documents": 1,
        "file_documents": 1,
        "files": 1,
    }


async def test_made_by_two_servers_at_once_everything_is_written_once(
    store: SqlStore, other: SqlStore, writer: Writer
):
    files = [await a_stored_file(store, writer.user, sha) for sha in "0123456789"]
    vectors = await store.create_vector_store(
        a_vector_store(writer.user), [NewStoreFile(file=file) for file in files]
    )
    counts: list[int] = []

    async def work(server: SqlStore, owner: NodeId) -> None:
        counts.append(await made(server, owner, ["same words"] * 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, store, ME)
        nursery.start_soon(work, other, OTHER)

    assert sum(counts) == 10
    found = await store.vector_store(writer.user, vectors.id)
    assert found is not None
    assert found.counts.completed == 10
    assert len(await store.search_text(writer.user, [vectors.id], ["words"], 99)) == 30
    assert (await check_database(store.database)).problems == ()


@pytest.mark.parametrize("site", [Site.STORE_WRITE, Site.STORE_COMMIT, Site.STORE_COMMITTED])
async def test_a_fault_between_any_two_writes_leaves_all_of_a_document_or_nothing(
    store: SqlStore, writer: Writer, site: Site
):
    vectors, file = await a_filled_store(store, writer.user, ME, ["first words"])
    struck = 0
    for nth in range(1, 20):
        await store.remake_documents(EXTRACTOR, f"model {nth}", writer.tick())
        (work,) = await taken(writer)
        before = await store.export_user(writer.user)
        ready = a_reading([f"words {nth}"] * 3, model=f"model {nth}")
        with injected(FaultPlan((Fault(site, nth=nth),))) as injector, suppress(InjectedFault):
            await store.finish_document(work.document.id, ME, ready)
        if not injector.struck:
            break
        struck += 1
        found = await store.search_text(writer.user, [vectors], [str(nth)], 9)
        if site is Site.STORE_COMMITTED:
            assert len(found) == 3
        else:
            assert found == ()
            assert await store.export_user(writer.user) == before
            assert await store.finish_document(work.document.id, ME, ready)
        assert (await check_database(store.database)).problems == ()
    assert struck >= (8 if site is Site.STORE_WRITE else 1)
    assert (await standing(writer, file)).chunks == 3
