"""What only a server can do: go away, come back, be asked to stop."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from antiphon.errors import StorageFull, StoreFailed, StoreUnavailable
from antiphon.persistence.bridge import TrioDatabase, open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.port import DuplicateKey, Statement, Transaction
from antiphon.persistence.postgres import _combined, store_error
from antiphon.persistence.store import SqlStore
from antiphon.testing.databases import PrivatePostgres, bundled_programs, private_postgres
from antiphon.testing.specimens import Writer

COUNT = Statement(
    "test",
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'antiphon' "
    "AND state <> 'idle' AND pid <> pg_backend_pid()",
)


@pytest.fixture(scope="module")
def mortal() -> Iterator[PrivatePostgres]:
    """A server of its own, since these tests end it."""
    with private_postgres() as server:
        yield server


async def test_a_server_that_went_away_is_told_and_used_again(
    mortal: PrivatePostgres, tmp_path: Path
):
    async with open_store(url=mortal.fresh(), data_dir=tmp_path) as store:
        writer = await Writer.new(store)
        await writer.answered("before", "yes")
        await trio.to_thread.run_sync(mortal.stop, "immediate")

        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.users()
            with pytest.raises(StoreUnavailable):
                await writer.conversation()

        await trio.to_thread.run_sync(mortal.start)
        await writer.answered("after", "yes")
        assert isinstance(store.database, TrioDatabase)
        report = await check_database(store.database)
        assert (report.problems, report.rows["responses"]) == ((), 2)


async def test_a_server_that_ends_under_load_loses_nothing_it_acknowledged(
    mortal: PrivatePostgres, tmp_path: Path
):
    acknowledged = 0
    enough = trio.Event()

    async def chat(store: SqlStore, writer: Writer) -> None:
        nonlocal acknowledged
        while True:
            try:
                await writer.answered("q", "a")
            except StoreUnavailable:
                return
            acknowledged += 1
            if acknowledged >= 40:
                enough.set()

    async with open_store(url=mortal.fresh(), data_dir=tmp_path, connections=3) as store:
        writers = [await Writer.new(store) for _ in range(6)]
        async with trio.open_nursery() as nursery:
            for writer in writers:
                nursery.start_soon(chat, store, writer)
            await enough.wait()
            await trio.to_thread.run_sync(mortal.stop, "immediate")
        await trio.to_thread.run_sync(mortal.start)
        report = await check_database(store.database)

    assert report.problems == ()
    assert acknowledged <= report.rows["responses"] <= acknowledged + len(writers)


async def test_a_cancelled_query_is_cancelled_in_the_server_and_its_connection_dropped(
    postgres: PrivatePostgres, tmp_path: Path
):
    sleep = Statement("test", "SELECT pg_sleep(60)")
    async with open_store(url=postgres.fresh(), data_dir=tmp_path, connections=2) as store:
        for _ in range(4):  # more than there are connections
            with trio.move_on_after(0.1) as scope:
                await store.database.write(lambda tx: tx.fetch(sleep))
            assert scope.cancelled_caught

        assert await store.users() == ()
        # Within the interval at which the server looks after its clients.
        await trio.sleep(2.5)
        row = await store.database.read(lambda tx: tx.fetchrow(COUNT))
        assert row is not None
        assert row[0] == 0


async def test_a_deadlocks_victim_is_repeated(postgres: PrivatePostgres, tmp_path: Path):
    async with open_store(url=postgres.fresh(), data_dir=tmp_path) as store:
        for name in "ab":
            await store.database.write(
                lambda tx, name=name: tx.execute(
                    Statement("test", "INSERT INTO facts (name, noted_ms) VALUES ($1, 0)"), name
                )
            )
        bump = Statement("test", "UPDATE facts SET noted_ms = noted_ms + 1 WHERE name = $1")
        nap = Statement("test", "SELECT pg_sleep(0.1)")

        async def both(first: str, second: str) -> None:
            async def work(tx: Transaction) -> None:
                await tx.execute(bump, first)
                await tx.fetch(nap)
                await tx.execute(bump, second)

            await store.database.write(work)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(both, "a", "b")
            nursery.start_soon(both, "b", "a")

        select = Statement("test", "SELECT noted_ms FROM facts WHERE name IN ('a', 'b')")
        rows = await store.database.read(lambda tx: tx.fetch(select))
        assert [row[0] for row in rows] == [2, 2]


async def test_with_all_connections_taken_units_wait_their_turn(
    postgres: PrivatePostgres, tmp_path: Path
):
    async with open_store(url=postgres.fresh(), data_dir=tmp_path, connections=1) as store:
        writer = await Writer.new(store)
        async with trio.open_nursery() as nursery:
            for n in range(20):
                nursery.start_soon(writer.answered, f"{n}", "x")
        assert len(await store.usage(writer.user)) == 20


class Refusal(Exception):
    """Stands for an error of the server's."""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("57P01", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("08006", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("53100", StorageFull),
        ("23505", DuplicateKey),
        ("22021", StoreFailed),
        ("42P01", StoreFailed),
    ],
)
def test_an_error_of_the_server_becomes_one_of_ours(code: str, expected: type[Exception]):
    import asyncpg

    error = asyncpg.PostgresError("it said so")
    error.sqlstate = code

    told = store_error(error)

    assert type(told) is expected
    assert "it said so" in str(told)


def test_an_error_of_the_network_is_unavailable():
    assert isinstance(store_error(ConnectionRefusedError(111, "refused")), StoreUnavailable)
    assert str(store_error(TimeoutError())) == "store unavailable: TimeoutError"


def test_a_batch_is_one_statement():
    text = _combined((("INSERT INTO a VALUES ($1, $2)", 2), ("UPDATE b SET c = $1", 1)))

    assert text == (
        "WITH w0 AS (INSERT INTO a VALUES ($1, $2)), w1 AS (UPDATE b SET c = $3) SELECT 1"
    )


def test_there_is_a_server_even_without_one_installed():
    assert (bundled_programs() / "initdb").exists()
