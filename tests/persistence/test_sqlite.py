"""What only a file can do: fill up, be held by another program, survive SIGKILL."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import trio

from antiphon.errors import StorageFull, StoreFailed, StoreUnavailable
from antiphon.persistence import sqlite
from antiphon.persistence.bridge import TrioDatabase, open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.sqlite import store_error
from antiphon.persistence.sqlite_dialect import translated
from antiphon.records import Page
from antiphon.testing.specimens import Writer, an_item


def test_sql_is_translated():
    assert translated("a = $1 AND b = ANY($12) FOR UPDATE") == (
        "a = ?1 AND b IN (SELECT value FROM json_each(?12))"
    )
    assert translated("x FOR SHARE") == translated("x FOR NO KEY UPDATE") == "x"


async def test_a_full_disk_refuses_writes_and_loses_nothing(tmp_path: Path):
    async with open_store(data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        conversation = await writer.conversation(an_item("before"))
        pages = Statement("test", "PRAGMA page_count")
        row = await store.database.write(lambda tx: tx.fetchrow(pages))
        assert row is not None

        async def limit(count: int) -> None:
            pragma = Statement("test", f"PRAGMA max_page_count = {count}")
            await store.database.write(lambda tx: tx.fetch(pragma))

        await limit(row[0] + 5)
        with pytest.raises(StorageFull):
            await fill(writer)
        full = await store.export_user(writer.user)

        assert (await store.context(writer.user, conversation=conversation)).context
        assert (await check_database(store.database)).problems == ()
        assert await store.delete_conversation(writer.user, conversation, 1) is not None
        await limit(row[0] + 500)
        await writer.answered("again", "fine")
        assert full is not None
        after = await store.export_user(writer.user)
        assert after is not None
        assert len(after["responses"]) > len(full["responses"])


async def fill(writer: Writer) -> None:
    for _ in range(100):
        await writer.answered("x" * 5_000, "y" * 5_000)


async def test_another_programs_lock_is_waited_for_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "_BUSY_MS", 50)
    async with open_store(data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        other = sqlite3.connect(tmp_path / "antiphon.db", isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")

            with pytest.raises(StoreUnavailable, match="locked"):
                await writer.conversation()
            assert await store.conversations(writer.user, Page()) == (), "readers don't wait"

            other.execute("ROLLBACK")
            await writer.conversation()
        finally:
            other.close()


async def test_readers_never_wait_for_the_writer(tmp_path: Path):
    async with open_store(data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        token = trio.lowlevel.current_trio_token()
        writing, release = trio.Event(), trio.Event()

        async def slow(tx: Transaction) -> None:
            await tx.execute(Statement("test", "UPDATE users SET name = 'half'"))
            token.run_sync_soon(writing.set)
            trio.from_thread.run(release.wait, trio_token=token)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.database.write, slow)
            await writing.wait()
            for _ in range(10):
                found = await store.user(writer.user)
                assert found is not None
                assert found.name == "somebody"
            release.set()


async def test_a_read_that_takes_too_long_does_not_hold_up_the_close(tmp_path: Path):
    endless = Statement(
        "test",
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
    )
    before = set(threading.enumerate())
    began = time.monotonic()

    async with open_store(data_dir=tmp_path) as store:
        for _ in range(2):
            with trio.move_on_after(0.1):
                await store.database.read(lambda tx: tx.fetch(endless))

    left = {each for each in threading.enumerate() if not each.name.startswith("Trio")} - before
    assert not left
    assert time.monotonic() - began < 3


async def test_a_damaged_file_is_told_and_found_by_the_check(tmp_path: Path):
    file = tmp_path / "antiphon.db"
    async with open_store(data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        await writer.conversation(*(an_item("x" * 500) for _ in range(500)))
    content = bytearray(file.read_bytes())
    for page in range(150, len(content) // 4096):
        content[page * 4096 : page * 4096 + 200] = os.urandom(200)
    file.write_bytes(content)

    async with open_store(data_dir=tmp_path) as store:
        report = await check_database(store.database)
        assert report.problems
        with pytest.raises(StoreFailed):
            await store.export_user(writer.user)


CHILD = """
import sys, pathlib, trio
from antiphon.persistence.bridge import open_store
from antiphon.testing.specimens import Writer

async def main():
    async with open_store(data_dir=pathlib.Path(sys.argv[1])) as store:
        writer = await Writer.new(store)
        conversation = await writer.conversation()
        print(writer.user, conversation, flush=True)
        for n in range(10**6):
            await writer.answered(f"question {n}", f"answer {n}", conversation=conversation)
            print(n, flush=True)

trio.run(main)
"""


def test_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path):
    for moment in range(6):
        folder = tmp_path / str(moment)
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True
        )
        with child:
            assert child.stdout is not None
            child.stdout.readline()  # that the schema was migrated
            user, conversation = child.stdout.readline().split()
            for _ in range(20 + 7 * moment):
                child.stdout.readline()
            os.kill(child.pid, signal.SIGKILL)
            rest = child.stdout.read().split()
            acknowledged = 20 + 7 * moment + len(rest)

        async def look(
            folder: Path = folder, user: str = user, conversation: str = conversation
        ) -> tuple[int, tuple[str, ...]]:
            async with open_store(data_dir=folder) as store:
                assert isinstance(store.database, TrioDatabase)
                report = await check_database(store.database)
                seen = (await store.context(user, conversation=conversation)).context
                return len(seen), report.problems

        count, problems = trio.run(look)
        assert problems == ()
        assert 2 * acknowledged <= count <= 2 * acknowledged + 2


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreUnavailable),
        (sqlite3.SQLITE_INTERRUPT, StoreUnavailable),
        (sqlite3.SQLITE_FULL, StorageFull),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFailed),
        (sqlite3.SQLITE_CORRUPT, StoreFailed),
        (sqlite3.SQLITE_READONLY, StoreFailed),
    ],
)
def test_an_error_of_the_library_becomes_one_of_ours(code: int, expected: type[Exception]):
    error = sqlite3.OperationalError("it said so")
    error.sqlite_errorcode = code

    told = store_error(error)

    assert type(told) is expected
    assert "it said so" in str(told)
