"""The store actor over the real SQLite store, on a real clock."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from antiphon.actors.store.service import StoreService
from antiphon.database import opener
from antiphon.errors import StoreUnavailable
from antiphon.ids import LOCAL_TENANT, UserId
from antiphon.records import User
from antiphon.settings import Settings
from antiphon.storage import Store
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree
from antiphon.testing.telemetry import NullTelemetry


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[StoreService, Tree]]:
    settings = msgspec.structs.replace(Settings(), data_dir=folder)
    service = StoreService(
        "root/store",
        opener(settings),
        NullTelemetry(),
        concurrency=4,
        deadline_s=10.0,
        start_wait_s=5.0,
    )
    tree = Tree(Supervisor(SupervisorSpec(), [service.child("store")]))
    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        yield service, tree
        if not tree.ended.is_set():
            await tree.end()


def a_user(number: int) -> User:
    return User(id=UserId(f"user_{number}"), tenant=LOCAL_TENANT, name="", created_ms=number)


async def test_a_caller_cancelled_at_any_moment_leaves_no_half_done_transaction(tmp_path: Path):
    async with running(tmp_path) as (service, _):
        run = service.client.run
        for number in range(40):
            with trio.move_on_after(number * 0.0002):
                await run(lambda store, number=number: store.add_user(a_user(number)))
        await run(lambda store: store.add_user(a_user(1000)))
        users = {user.id for user in await run(lambda store: store.users())}

    # Whatever was handed over is done, though nobody waited for it.
    assert {f"user_{number}" for number in range(1, 40)} | {"user_1000"} <= users


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_no_thread_of_the_database_outlives_the_actor(tmp_path: Path, how: str):
    before = set(threading.enumerate())
    async with running(tmp_path) as (service, tree):
        await service.client.run(lambda store: store.users())
        during = set(threading.enumerate()) - before
        if how == "cancel":
            tree.scope.cancel("the test kills it")
            await tree.ended.wait()
    left = {thread for thread in set(threading.enumerate()) - before if "Trio" not in thread.name}

    assert during
    assert left == set()


async def test_a_stop_in_the_middle_of_writes_answers_each_of_them_truly(tmp_path: Path):
    answered: set[str] = set()

    async def write(service: StoreService, number: int) -> None:
        try:
            await service.client.run(lambda store: store.add_user(a_user(number)))
            answered.add(f"user_{number}")
        except StoreUnavailable:
            pass

    async with running(tmp_path) as (service, tree), trio.open_nursery() as callers:
        for number in range(200):
            callers.start_soon(write, service, number)
        while len(answered) < 20:
            await trio.lowlevel.checkpoint()
        tree.stop.set()
    async with running(tmp_path) as (service, _):
        users = {user.id for user in await service.client.run(_users)}

    assert len(answered) >= 20
    assert answered <= users


async def _users(store: Store) -> tuple[User, ...]:
    return await store.users()
