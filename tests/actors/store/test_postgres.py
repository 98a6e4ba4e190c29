"""The store actor over a PostgreSQL that is killed and comes back, on a real clock."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import trio

from antiphon.actors.store.service import StoreService
from antiphon.database import opener
from antiphon.errors import StoreUnavailable
from antiphon.ids import LOCAL_TENANT, UserId
from antiphon.records import User
from antiphon.settings import DatabaseSettings, Settings
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.databases import PrivatePostgres, private_postgres
from antiphon.testing.probes import Tree
from antiphon.testing.telemetry import NullTelemetry

PATIENCE_S = 30.0
CALLERS = 20


@pytest.fixture
def server() -> Iterator[PrivatePostgres]:
    """One for each test, since they kill it; what it has committed it must keep."""
    with private_postgres(hasty=False) as server:
        yield server


async def until(condition: Callable[[], bool]) -> None:
    """The other side is a process: nothing here could set an event."""
    with trio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def start(server: PrivatePostgres) -> None:
    """The killed one's processes see that they are alone, and leave, within a moment."""
    with trio.fail_after(PATIENCE_S):
        while True:
            try:
                await trio.to_thread.run_sync(server.start)
                return
            except RuntimeError:
                await trio.sleep(0.2)


async def test_a_database_server_killed_under_load_costs_answers_and_nothing_else(
    tmp_path: Path, server: PrivatePostgres
):
    settings = msgspec.structs.replace(
        Settings(), data_dir=tmp_path, database=DatabaseSettings(url=server.fresh())
    )
    service = StoreService(
        "root/store",
        opener(settings),
        NullTelemetry(),
        concurrency=8,
        deadline_s=5.0,
        start_wait_s=5.0,
    )
    tree = Tree(Supervisor(SupervisorSpec(), [service.child("store")]))
    answered: set[str] = set()
    unanswered = 0

    async def call(number: int) -> None:
        nonlocal unanswered
        id = UserId(f"user_{number}")
        user = User(id=id, tenant=LOCAL_TENANT, name="", created_ms=number)
        try:
            await service.client.run(lambda store: store.add_user(user))
            answered.add(id)
        except StoreUnavailable as error:
            unanswered += 1
            await trio.sleep(min(0.05, error.retry_after_s))

    async def keep_calling(first: int) -> None:
        number = first
        while not over:
            await call(number)
            number += CALLERS

    async def until_ready(ready: bool) -> None:
        await until(lambda: (service.status.problem() is None) is ready)

    over = False
    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        async with trio.open_nursery() as callers:
            for number in range(CALLERS):
                callers.start_soon(keep_calling, number)
            await until(lambda: len(answered) >= 200)
            server.kill()
            await until_ready(False)
            await trio.sleep(2)
            gc.collect()
            objects = len(gc.get_objects())
            await trio.sleep(1)
            gc.collect()
            grown = len(gc.get_objects()) - objects
            during = len(answered)
            await start(server)
            await until_ready(True)
            await until(lambda: len(answered) >= during + 200)
            over = True
        (child,) = tree.root.snapshot().children
        users = {user.id for user in await service.client.run(lambda store: store.users())}
        await tree.end()

    assert unanswered > 0
    assert answered <= users
    assert grown < 1000
    assert child.incarnation == 1


async def test_a_database_server_that_is_late_is_waited_for(
    tmp_path: Path, server: PrivatePostgres
):
    settings = msgspec.structs.replace(
        Settings(), data_dir=tmp_path, database=DatabaseSettings(url=server.fresh())
    )
    server.kill()
    service = StoreService(
        "root/store",
        opener(settings),
        NullTelemetry(),
        concurrency=8,
        deadline_s=5.0,
        start_wait_s=PATIENCE_S,
    )
    tree = Tree(Supervisor(SupervisorSpec(), [service.child("store")]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tree.begin, nursery)
        await until(lambda: service.status.reason is not None)
        reason = service.status.problem()
        await start(server)
        await until(lambda: service.status.problem() is None)
        await tree.end()

    assert reason is not None
    assert reason.startswith("unavailable: ")
