"""The one place where asyncio runs: a trio-asyncio loop that lives as long as an open store.

A whole unit of work crosses at once. Nothing of asyncio comes out: a crash of its loop ends the
store's scope, and a CancelledError that is not the caller's own becomes StoreUnavailable.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import trio
import trio_asyncio  # type: ignore[import-untyped]

from antiphon import faults
from antiphon.errors import SettingsError, StoreUnavailable
from antiphon.fault_plan import Site
from antiphon.persistence.expiry import Retention
from antiphon.persistence.migrations import migrate, require_current
from antiphon.persistence.port import Database, Dialect, Work
from antiphon.persistence.postgres import open_postgres
from antiphon.persistence.sqlite import Durability, open_sqlite
from antiphon.persistence.store import SqlStore

R = TypeVar("R")

FILE_NAME = "antiphon.db"
_CLOSE_S = 10.0


class TrioDatabase:
    """An asyncio-flavoured database for Trio's tasks, whichever nursery they are in."""

    def __init__(self, database: Database, loop: trio_asyncio.TrioEventLoop) -> None:
        self._database = database
        self._loop = loop
        self._open = True

    @property
    def native(self) -> Database:
        """As asyncio sees it; for tests of what is underneath."""
        return self._database

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def read(self, work: Work[R]) -> R:
        return await self._crossed(partial(self._database.read, work))

    async def write(self, work: Work[R]) -> R:
        await faults.pause(Site.STORE_UNIT)
        return await self._crossed(partial(self._database.write, work))

    async def tidy(self, *, deleted: bool = True) -> None:
        await self._crossed(partial(self._database.tidy, deleted=deleted))

    async def health(self) -> list[str]:
        return await self._crossed(self._database.health)

    def close(self) -> None:
        """From now on every call is refused."""
        self._open = False

    async def _crossed(self, function: Callable[[], Awaitable[R]]) -> R:
        if not self._open:
            raise StoreUnavailable("the store is closed", refused=True)
        with _NoStrayCancellation():
            result: R = await trio_asyncio.aio_as_trio(function, loop=self._loop)()
            return result


class _NoStrayCancellation:
    """Makes a CancelledError of asyncio's an error: the loop ended under a call, or a task of a
    library was cancelled. One that the caller caused is Trio's Cancelled by now."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, asyncio.CancelledError):
            raise StoreUnavailable("the database's event loop dropped the call") from error


def is_postgres(url: str) -> bool:
    """Whether the setting names a server; otherwise it is a file. Raises SettingsError."""
    scheme = urlsplit(url).scheme
    if scheme not in {"", "postgres", "postgresql", "sqlite"}:
        raise SettingsError(
            "database.url", f"must begin with postgresql:// or sqlite:///, not {scheme}://"
        )
    return scheme.startswith("postgres")


def sqlite_path(url: str | None, data_dir: Path) -> Path:
    """`sqlite:///name.db` is relative to the data directory, `sqlite:////name.db` is absolute;
    nothing is `antiphon.db`."""
    return data_dir / ((url or "").removeprefix("sqlite:///") or FILE_NAME)


@asynccontextmanager
async def open_store(
    *,
    url: str | None = None,
    data_dir: Path,
    connections: int = 8,
    durability: Durability = "normal",
    retention: Retention | None = None,
    migrated: bool = True,
) -> AsyncIterator[SqlStore]:
    """The store that the settings name, for as long as the block lasts. The schema is brought up
    to date first, or only compared when `migrated` is False.

    Raises SettingsError, StoreUnavailable, StoreFailed, SchemaMismatch.
    """
    async with open_database(
        url=url, data_dir=data_dir, connections=connections, durability=durability
    ) as database:
        await (migrate(database) if migrated else require_current(database))
        yield SqlStore(database, retention)


@asynccontextmanager
async def open_database(
    *,
    url: str | None = None,
    data_dir: Path,
    connections: int = 8,
    durability: Durability = "normal",
) -> AsyncIterator[TrioDatabase]:
    """The database alone, whatever its schema: for the commands that look after it."""
    try:
        async with trio_asyncio.open_loop() as loop:
            stack = AsyncExitStack()
            try:
                if url is not None and is_postgres(url):
                    opened: Database = await trio_asyncio.aio_as_trio(open_postgres, loop=loop)(
                        url, stack, connections=connections
                    )
                else:
                    path = sqlite_path(url, data_dir)
                    opened = await trio_asyncio.aio_as_trio(open_sqlite, loop=loop)(
                        path, stack, durability=durability
                    )
                database = TrioDatabase(opened, loop)
                try:
                    yield database
                finally:
                    database.close()
            finally:
                # Threads and sockets must end, also when everything around is cancelled.
                with trio.move_on_after(_CLOSE_S, shield=True):
                    await trio_asyncio.aio_as_trio(stack.aclose, loop=loop)()
    except BaseExceptionGroup as group:
        error = _alone(group)
        if error is None:
            raise
    else:
        return
    raise error


def _alone(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The one error that the loop's nurseries wrapped, or None where there are more."""
    found: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        match pending.pop():
            case BaseExceptionGroup(exceptions=inner):
                pending.extend(inner)
            case error:
                found.append(error)
    told = [error for error in found if not isinstance(error, trio.Cancelled)]
    if not told:
        return found[0]
    if len(told) > 1:
        return None
    if isinstance(told[0], asyncio.CancelledError):
        return StoreUnavailable("the database's event loop ended")
    return told[0]
