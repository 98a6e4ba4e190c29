"""What crosses between Trio and asyncio, and what doesn't."""

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest
import trio

from antiphon.errors import InjectedFault, SettingsError, StoreUnavailable
from antiphon.fault_plan import Fault, FaultPlan, Site
from antiphon.faults import injected
from antiphon.persistence.bridge import TrioDatabase, is_postgres, open_store, sqlite_path
from antiphon.persistence.port import Statement, Transaction
from antiphon.persistence.sqlite import SqliteDatabase
from antiphon.persistence.store import SqlStore
from antiphon.testing.specimens import Writer, a_user, an_item

ADD = Statement("test", "INSERT INTO facts (name, noted_ms) VALUES ($1, 1)")
ALL = Statement("test", "SELECT name FROM facts ORDER BY name")


async def facts(store: SqlStore) -> list[str]:
    return [row[0] for row in await store.database.read(lambda tx: tx.fetch(ALL))]


async def test_a_unit_of_work_is_done_entirely_or_not_at_all(store: SqlStore):
    async def half(tx: Transaction) -> None:
        await tx.execute(ADD, "half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.database.write(half)
    await store.database.write(lambda tx: tx.execute(ADD, "whole"))

    assert await facts(store) == ["whole"]


async def test_a_caller_that_is_cancelled_at_any_moment_leaves_no_open_transaction(
    store: SqlStore,
):
    async def both(attempt: int, tx: Transaction) -> None:
        await tx.execute(ADD, f"{attempt} a")
        await tx.execute(ADD, f"{attempt} b")

    for attempt in range(40):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.database.write, partial(both, attempt))
                for _ in range(attempt):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

    await store.database.write(lambda tx: tx.execute(ADD, "after"))
    found = await facts(store)
    assert found[-1] == "after"
    assert [name[:-1] for name in found[:-1:2]] == [name[:-1] for name in found[1:-1:2]]
    assert isinstance(store.database, TrioDatabase)
    native = store.database.native
    assert not isinstance(native, SqliteDatabase) or not native.in_transaction


async def test_any_task_may_call_wherever_its_nursery_is(url: str, tmp_path: Path):
    async with trio.open_nursery() as outer, open_store(url=url, data_dir=tmp_path) as store:
        done = trio.Event()

        async def elsewhere() -> None:
            await store.add_user(a_user())
            done.set()

        outer.start_soon(elsewhere)
        await done.wait()
        assert len(await store.users()) == 1


async def test_a_closed_store_refuses(url: str, tmp_path: Path):
    async with open_store(url=url, data_dir=tmp_path) as store:
        pass

    with pytest.raises(StoreUnavailable, match="closed") as caught:
        await store.users()
    assert caught.value.refused


@pytest.mark.parametrize("how", ["end", "error", "cancelled", "busy"])
async def test_no_thread_or_connection_outlives_the_store(url: str, tmp_path: Path, how: str):
    before = set(threading.enumerate())

    async def use() -> None:
        async with open_store(url=url, data_dir=tmp_path) as store:
            await store.add_user(a_user())
            if how == "error":
                raise ZeroDivisionError
            if how == "cancelled":
                scope.cancel()
                await trio.lowlevel.checkpoint()
            if how == "busy":
                async with trio.open_nursery() as nursery:
                    for _ in range(20):
                        nursery.start_soon(store.add_user, a_user())
                    await trio.lowlevel.checkpoint()
                    scope.cancel()

    with trio.CancelScope() as scope:
        if how == "error":
            with pytest.raises(ZeroDivisionError):
                await use()
        else:
            await use()

    left = {each for each in threading.enumerate() if not each.name.startswith("Trio")} - before
    assert not left


async def test_a_crash_of_asyncio_ends_the_store_and_not_the_process(url: str, tmp_path: Path):
    async def crash() -> None:
        async with open_store(url=url, data_dir=tmp_path) as store:
            assert isinstance(store.database, TrioDatabase)
            store.database._loop.call_soon(lambda: 1 / 0)
            await trio.sleep_forever()

    with pytest.raises(ZeroDivisionError):
        await crash()

    async with open_store(url=url, data_dir=tmp_path) as store:
        assert await store.users() == ()


async def test_a_cancellation_inside_asyncio_is_no_cancellation_of_the_caller(store: SqlStore):
    async def work(tx: Transaction) -> None:
        await tx.execute(ADD, "x")
        raise asyncio.CancelledError

    with pytest.raises(StoreUnavailable, match="dropped"):
        await store.database.write(work)

    assert await facts(store) == []


async def test_a_unit_of_work_that_waits_for_anything_else_is_a_defect(tmp_path: Path):
    async with open_store(data_dir=tmp_path) as store:
        await store.database.write(lambda tx: tx.execute(ADD, "before"))

        async def wait(tx: Transaction) -> None:
            await tx.execute(ADD, "x")
            await asyncio.sleep(0)

        with pytest.raises(RuntimeError, match="nothing but its transaction"):
            await store.database.write(wait)
        assert await facts(store) == ["before"]


@pytest.mark.parametrize("site", [Site.STORE_WRITE, Site.STORE_COMMIT, Site.STORE_COMMITTED])
async def test_a_fault_between_any_two_writes_of_a_turn_undoes_all_before_the_commit(
    store: SqlStore, writer: Writer, site: Site
):
    conversation = await writer.conversation(an_item("rules"))
    struck = 0
    for nth in range(1, 30):
        before = await store.export_user(writer.user)
        turn = writer.turn("Hi", conversation=conversation)
        with injected(FaultPlan((Fault(site, nth=nth),))) as injector:
            try:
                await store.accept_turn(turn)
                assert await store.finish_response(writer.final(turn.response.id, "Ho"))
            except InjectedFault:
                pass
        if not injector.struck:
            break
        struck += 1
        after = await store.export_user(writer.user)
        accepted = await store.response(writer.user, turn.response.id)
        if accepted is None:
            assert after == before
        else:
            final = writer.final(turn.response.id, "Ho")
            assert await store.finish_response(final)
            found = await store.response(writer.user, turn.response.id)
            assert found is not None
            assert len(found.output) == 1
        await store.delete_response(writer.user, turn.response.id, writer.tick())
    assert struck >= 2
    assert len((await store.context(writer.user, conversation=conversation)).context) in {1, 3}


async def test_a_slow_unit_can_be_given_up(store: SqlStore):
    plan = FaultPlan((Fault(Site.STORE_UNIT, action=None, nth=1),))
    with injected(plan), pytest.raises(InjectedFault):
        await store.add_user(a_user())
    assert await store.users() == ()


def test_the_address_says_which_database():
    assert is_postgres("postgresql://x/y")
    assert is_postgres("postgres://x/y")
    assert not is_postgres("sqlite:///x.db")
    with pytest.raises(SettingsError, match="mysql"):
        is_postgres("mysql://x")
    folder = Path("/data")
    assert sqlite_path(None, folder) == sqlite_path("", folder) == folder / "antiphon.db"
    assert sqlite_path("sqlite:///x.db", folder) == folder / "x.db"
    assert sqlite_path("sqlite:////y/x.db", folder) == Path("/y/x.db")
