"""A whole database moves from one kind to the other; and what the check finds."""

from pathlib import Path

import pytest

from antiphon.document_records import NewStoreFile
from antiphon.errors import SchemaMismatch, StoreFailed
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, new_file_batch_id
from antiphon.persistence.bridge import open_database, open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.migrations import migrate
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.schema import MIGRATIONS
from antiphon.persistence.store import SqlStore
from antiphon.persistence.transfer import export_database, import_database
from antiphon.reading_files import Chunking
from antiphon.records import Claim, EventBatch, Page, User
from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.specimens import Writer, a_file, a_memory, an_item
from antiphon.testing.stored_documents import a_vector_store, made

ADDED = {
    "summaries": 1,
    "memories": 2,
    "memory_sources": 1,
    "forgotten_memories": 1,
    "context_work": 1,
    "prompt_versions": 4,
    "prompt_activations": 4,
    "counters": 2,
    "vector_stores": 1,
    "file_batches": 1,
    "documents": 2,
    "vector_store_files": 1,
    "file_documents": 1,
    "document_texts": 1,
    "document_vectors": 1,
    "chunks": 300,
    "chunk_words": 300,
}
TEXTS = [f"chunk {number} ☃ ünï" for number in range(300)]


async def filled(store: SqlStore) -> Writer:
    writer = await Writer.new(store)
    file = a_file(writer.user)
    await store.add_file(file)
    conversation = await writer.conversation(
        *(an_item(f"{n} ☃ \0") for n in range(250)),
        an_item(body={"content": [{"file_id": file.id}]}),
        title="Ünï",
    )
    await writer.answered("one", "two", conversation=conversation)
    running = writer.turn("three", claim=Claim(key="k", fingerprint="f"))
    await writer.accept(running)
    batch = EventBatch(first=0, last=1, body=bytes(range(256)))
    await store.append_events(writer.node, [(running.response.id, batch)])
    summary = await writer.summarised(conversation, 9, "Ünï ☃")
    stated, forgotten = (
        a_memory(writer.user, text, said=(conversation, summary.until)) for text in ("a", "b")
    )
    await store.add_memories(writer.user, [stated, forgotten, a_memory(writer.user, "c")], most=9)
    await store.delete_memory(writer.user, forgotten.id, 1)
    for name in ("one", "two"):
        for text in ("first", "second"):
            await store.add_prompt(name, text, "note ☃", 1)
        await store.activate_prompt(name, {1: 0.75, 2: 0.25}, 2)
        await store.activate_prompt(name, {2: 1.0}, 3)
    vectors = await store.create_vector_store(a_vector_store(writer.user, name="ünï"))
    put = [NewStoreFile(file=file.id, attributes={"ünï": "☃"})]
    await store.add_vector_store_files(writer.user, vectors.id, put, 5, batch=new_file_batch_id())
    await made(store, writer.node, TEXTS)
    await store.want_document(writer.user, file.id, 6, chunking=Chunking(max_tokens=100))
    return writer


async def test_a_database_moves_to_the_other_kind_and_back(
    postgres: PrivatePostgres, tmp_path: Path
):
    local = User(id=LOCAL_USER, tenant=LOCAL_TENANT, name="local", created_ms=1)
    async with open_store(data_dir=tmp_path) as store:
        writer = await filled(store)
        await store.add_user(local)
        before = await store.export_user(writer.user)
        counts = await export_database(store.database, tmp_path / "one.jsonl")
    assert counts["items"] == 254
    assert {table: counts[table] for table in ADDED} == ADDED

    async with open_store(url=postgres.fresh(), data_dir=tmp_path) as store:
        await store.add_user(local)
        assert await import_database(store.database, tmp_path / "one.jsonl") == counts
        assert await store.export_user(writer.user) == before
        assert (await check_database(store.database)).problems == ()
        (vectors,) = await store.vector_stores(writer.user, Page())
        (found,) = await store.search_text(writer.user, [vectors.id], ["299"], 9)
        assert found.chunk.text == TEXTS[299]
        await export_database(store.database, tmp_path / "two.jsonl")

    async with open_store(data_dir=tmp_path / "back") as store:
        await import_database(store.database, tmp_path / "two.jsonl")
        assert await store.search_text(writer.user, [vectors.id], ["299"], 9) == (found,)
        await made(store, writer.node, TEXTS)
        assert (await check_database(store.database)).problems == ()
    async with open_store(data_dir=tmp_path / "again") as store:
        await import_database(store.database, tmp_path / "two.jsonl")
        await export_database(store.database, tmp_path / "three.jsonl")
    one, three = (
        sorted((tmp_path / name).read_bytes().splitlines()) for name in ("one.jsonl", "three.jsonl")
    )
    assert one == three
    assert (tmp_path / "one.jsonl").stat().st_mode & 0o077 == 0


async def test_an_import_is_whole_or_nothing(store: SqlStore, url: str, tmp_path: Path):
    async with open_store(data_dir=tmp_path / "other") as other:
        await filled(other)
        await export_database(other.database, tmp_path / "whole")
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    damaged = {
        "missing": b"".join(lines[:-1]),
        "not those it counts": b"".join(lines[:-2] + lines[-1:]),
        "damaged": b"".join(lines[:5]) + b"{" + b"".join(lines[5:]),
        "no export": lines[0].replace(b"antiphon-export", b"something") + lines[-1],
        "unknown table": lines[0] + b'{"table":"nonsense","row":[]}\n' + b'{"end":{"nonsense":1}}',
        "No such file": None,
    }
    for problem, content in damaged.items():
        file = tmp_path / problem
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(StoreFailed, match=problem):
            await import_database(store.database, file)
    newer = tmp_path / "newer"
    here = b'"schema":%d' % MIGRATIONS[-1].version
    assert here in lines[0]
    newer.write_bytes(lines[0].replace(here, b'"schema":99') + lines[-1])
    with pytest.raises(SchemaMismatch):
        await import_database(store.database, newer)
    report = await check_database(store.database)
    assert not any(report.rows.values())

    await import_database(store.database, tmp_path / "whole")
    with pytest.raises(StoreFailed, match="not empty"):
        await import_database(store.database, tmp_path / "whole")
    with pytest.raises(StoreFailed, match="exists"):
        await export_database(store.database, tmp_path / "whole")


async def test_a_sound_database_has_no_problems(store: SqlStore):
    await filled(store)

    report = await check_database(store.database)

    assert report.sound
    assert report.rows["responses"] == 2


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        ("DELETE FROM item_bodies WHERE position = 3", "1 items have no body"),
        ("UPDATE items SET response_id = 'x' WHERE position = 3", "1 items belong to a response"),
        ("DELETE FROM usage_entries", "2 responses have no bill"),
        ("UPDATE usage_entries SET settled_ms = NULL", "1 ended responses have no settled bill"),
        ("UPDATE responses SET status = 'queued'", "1 responses have a status"),
        ("UPDATE conversations SET lock_response = 'x'", "1 conversations are locked"),
        ("DELETE FROM response_bodies", "2 responses have no parameters"),
        ("UPDATE file_uses SET position = 9999", "1 uses of files are of items"),
        ("UPDATE usage_entries SET response_id = 'x' WHERE settled_ms IS NULL", "1 bills are open"),
        ("UPDATE summaries SET until_position = 9999", "1 summaries end with"),
        ("UPDATE memory_sources SET item_id = 'x'", "1 memories come from items"),
        ("DELETE FROM memory_sources", "1 memories were stated nowhere"),
        ("DELETE FROM file_documents", "1 documents are needed by nothing"),
        ("DELETE FROM document_texts", "1 documents that are ready have no text"),
        ("UPDATE documents SET due_ms = NULL", "1 documents wait for nobody"),
        ("UPDATE documents SET chunks = chunks + 1", "2 documents have another number"),
        ("DELETE FROM chunks", "300 words are of chunks"),
        ("DELETE FROM chunk_words", "300 chunks can't be found"),
        ("UPDATE documents SET number = number + 5", "300 chunks are of documents"),
        ("UPDATE vector_stores SET expired = 2", "1 vector stores that are empty have"),
    ],
)
async def test_the_check_finds_what_no_constraint_keeps(store: SqlStore, harm: str, problem: str):
    await filled(store)

    async def spoil(tx: Transaction) -> None:
        await tx.execute(Statement("test", harm))

    await store.database.write(spoil)

    problems = (await check_database(store.database)).problems
    assert any(line.startswith(problem) for line in problems), problems


async def test_the_check_compares_the_full_text_index_with_what_it_is_of(tmp_path: Path):
    async with open_store(data_dir=tmp_path) as store:
        await filled(store)
        words = (await store.database.read(lambda tx: tx.fetch(WORDS)))[0]

        async def spoil(tx: Transaction) -> None:
            await tx.execute(FORGET, *words)
            await tx.execute(INVENT, words[0] + 100_000, words[1])

        await store.database.write(spoil)

        assert (await check_database(store.database)).problems == (
            "1 chunks are not in the full-text index",
            "1 entries of the full-text index are of chunks that are gone",
        )


WORDS = Statement("test", "SELECT place, words FROM chunk_words LIMIT 1")
FORGET = Statement(
    "test", "INSERT INTO chunk_index (chunk_index, rowid, words) VALUES ('delete', $1, $2)"
)
INVENT = Statement("test", "INSERT INTO chunk_index (rowid, words) VALUES ($1, $2)")


async def test_nothing_is_checked_or_moved_without_the_schema(tmp_path: Path):
    async with open_database(data_dir=tmp_path) as database:
        with pytest.raises(SchemaMismatch):
            await check_database(database)
        with pytest.raises(SchemaMismatch):
            await export_database(database, tmp_path / "x")
        await migrate(database)
        assert (await check_database(database)).sound
