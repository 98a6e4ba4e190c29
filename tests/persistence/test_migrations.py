"""How a database comes to its schema, and which ones are refused."""

import sqlite3
from pathlib import Path

import pytest
import trio

from antiphon.document_records import NewStoreFile
from antiphon.errors import SchemaMismatch, StoreFailed
from antiphon.ids import ConversationId, FileId, UserId
from antiphon.persistence.bridge import TrioDatabase, open_database, open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.migrations import migrate, require_current, status
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.schema import MIGRATIONS, TABLES, Migration
from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.specimens import Writer, a_user, text_of
from antiphon.testing.stored_documents import a_vector_store, made

NEXT = Migration(len(MIGRATIONS) + 1, "next", ("ALTER TABLE users ADD COLUMN shoe_size BIGINT",))


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    server: PrivatePostgres = request.getfixturevalue("postgres")
    return server.another()


async def run(database: TrioDatabase, *commands: str) -> None:
    async def work(tx: Transaction) -> None:
        for command in commands:
            await tx.execute(Statement("test", command))

    await database.write(work)


async def columns(database: TrioDatabase, table: str) -> set[str]:
    by_kind = {
        "sqlite": f"SELECT name FROM pragma_table_info('{table}')",
        "postgresql": "SELECT column_name FROM information_schema.columns "
        f"WHERE table_name = '{table}'",
    }
    select = Statement("test", by_kind[database.dialect.name])
    return {row[0] for row in await database.read(lambda tx: tx.fetch(select))}


async def test_an_empty_database_is_brought_up_to_date_once(empty: str, tmp_path: Path):
    async with open_database(url=empty, data_dir=tmp_path) as database:
        before = await status(database)
        assert (before.applied, before.version) == ((), 0)
        with pytest.raises(SchemaMismatch):
            await require_current(database)

        names = tuple(migration.name for migration in MIGRATIONS)
        assert before.missing == names
        assert await migrate(database) == names
        assert await migrate(database) == ()

        after = await status(database)
        assert (after.missing, after.version) == ((), MIGRATIONS[-1].version)
        await require_current(database)
        for table in TABLES:
            assert await columns(database, table.name) == set(table.columns)


async def test_many_that_start_at_once_migrate_once(empty: str, tmp_path: Path):
    applied: list[tuple[str, ...]] = []

    async def start() -> None:
        async with open_database(url=empty, data_dir=tmp_path) as database:
            applied.append(await migrate(database))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(start)

    assert sorted(map(len, applied)) == [0, 0, 0, len(MIGRATIONS)]


async def test_what_is_there_survives_the_next_step(empty: str, tmp_path: Path):
    user = a_user()
    async with open_store(url=empty, data_dir=tmp_path) as store:
        await store.add_user(user)
        assert isinstance(store.database, TrioDatabase)
        assert await migrate(store.database, (*MIGRATIONS, NEXT)) == ("next",)
        assert "shoe_size" in await columns(store.database, "users")
        assert await store.user(user.id) == user


async def test_a_database_of_before_there_was_a_context_keeps_what_it_has(
    empty: str, tmp_path: Path
):
    """Version 5, as the program of then wrote it."""
    old = MIGRATIONS[:5]
    async with open_database(url=empty, data_dir=tmp_path) as database:
        await migrate(database, old)
        await run(
            database,
            "INSERT INTO users (id, tenant, name, created_ms, training) "
            "VALUES ('user_1', 'local', 'me', 1, 1)",
            "INSERT INTO conversations (id, user_id, title, metadata, created_ms, updated_ms, "
            "next_position) VALUES ('conv_1', 'user_1', 'Hello', '{}', 1, 2, 1)",
            "INSERT INTO items (home, position, id, type, role, status, created_ms) "
            "VALUES ('conv_1', 0, 'msg_1', 'message', 'user', 'completed', 1)",
            "INSERT INTO item_bodies (home, position, body) "
            """VALUES ('conv_1', 0, '{"content":[{"type":"input_text","text":"Hi"}]}')""",
        )
        before = [await columns(database, table.name) for table in TABLES]
        assert await migrate(database, MIGRATIONS[:6]) == ("context",)
        assert await columns(database, "conversations") > before[3]
        assert await migrate(database) == tuple(each.name for each in MIGRATIONS[6:])

    async with open_store(url=empty, data_dir=tmp_path) as store:
        writer = Writer(store, UserId("user_1"))
        conversation = ConversationId("conv_1")
        found = await store.conversation(writer.user, conversation)
        assert found is not None
        assert (found.title, found.memory) == ("Hello", None)
        await writer.answered("Are you there?", "Yes.", conversation=conversation)
        await writer.summarised(conversation, 1)
        seen = await store.context(writer.user, conversation=conversation)
        assert list(map(text_of, seen.context)) == ["Are you there?", "Yes."]
        assert (await check_database(store.database)).sound


async def test_a_database_of_before_there_were_documents_keeps_what_it_has(
    empty: str, tmp_path: Path
):
    """Version 6, as the program of then wrote it."""
    async with open_database(url=empty, data_dir=tmp_path) as database:
        await migrate(database, MIGRATIONS[:6])
        await run(
            database,
            "INSERT INTO users (id, tenant, name, created_ms, training) "
            "VALUES ('user_1', 'local', 'me', 1, 1)",
            "INSERT INTO files (id, user_id, filename, purpose, media_type, bytes, sha256, "
            "created_ms, status) VALUES ('file-1', 'user_1', 'a.txt', 'user_data', 'text/plain', "
            "5, 'aa', 2, 'processed')",
        )
        assert await migrate(database, MIGRATIONS[:7]) == ("documents",)
        assert await migrate(database) == tuple(each.name for each in MIGRATIONS[7:])

    async with open_store(url=empty, data_dir=tmp_path) as store:
        writer, file = Writer(store, UserId("user_1")), FileId("file-1")
        put = [NewStoreFile(file=file)]
        vectors = await store.create_vector_store(a_vector_store(writer.user), put)
        assert await made(store, writer.node, ["kept words"]) == 1
        (found,) = await store.search_text(writer.user, [vectors.id], ["kept"], 5)
        assert (found.file, found.filename) == (file, "a.txt")
        assert (await check_database(store.database)).sound


async def test_a_step_that_fails_leaves_nothing(empty: str, tmp_path: Path):
    broken = Migration(NEXT.version, "broken", (*NEXT.statements, "CREATE TABLE users (x BIGINT)"))
    async with open_database(url=empty, data_dir=tmp_path) as database:
        await migrate(database)

        with pytest.raises(StoreFailed):
            await migrate(database, (*MIGRATIONS, broken))

        assert "shoe_size" not in await columns(database, "users")
        assert (await status(database)).version == MIGRATIONS[-1].version


async def test_a_newer_database_is_refused(empty: str, tmp_path: Path):
    async with open_database(url=empty, data_dir=tmp_path) as database:
        await migrate(database, (*MIGRATIONS, NEXT))

        with pytest.raises(SchemaMismatch, match="which is newer"):
            await migrate(database)

    with pytest.raises(SchemaMismatch):
        async with open_store(url=empty, data_dir=tmp_path):
            pass


async def test_a_step_that_was_changed_later_is_refused(empty: str, tmp_path: Path):
    async with open_database(url=empty, data_dir=tmp_path) as database:
        await migrate(database)
        await run(database, "UPDATE antiphon_schema SET checksum = 'x'")

        with pytest.raises(SchemaMismatch, match="other statements"):
            await status(database)


async def test_another_programs_tables_are_not_touched(empty: str, tmp_path: Path):
    async with open_database(url=empty, data_dir=tmp_path) as database:
        await run(database, "CREATE TABLE conversations (theirs BIGINT)")

        with pytest.raises(SchemaMismatch, match="another program"):
            await migrate(database)

        assert await columns(database, "conversations") == {"theirs"}


async def test_a_store_that_must_not_migrate_says_what_it_has(empty: str, tmp_path: Path):
    with pytest.raises(SchemaMismatch, match="has schema 0, this program knows"):
        async with open_store(url=empty, data_dir=tmp_path, migrated=False):
            pass


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path):
    (tmp_path / "antiphon.db").write_bytes(b"not a database, but long enough to look at" * 100)

    with pytest.raises(StoreFailed, match="not a database"):
        async with open_store(data_dir=tmp_path):
            pass


def test_an_sqlite_file_says_whose_it_is_and_is_its_owners_alone(tmp_path: Path):
    async def make() -> None:
        async with open_store(data_dir=tmp_path):
            pass

    trio.run(make)

    file = tmp_path / "antiphon.db"
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA application_id").fetchone() == (0x416E7469,)
    connection.close()
    assert file.stat().st_mode & 0o077 == 0
