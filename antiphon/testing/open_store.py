"""The real store on a temporary file, without the actor before it: for tests of the routes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from antiphon.ids import LOCAL_TENANT, LOCAL_USER
from antiphon.persistence.bridge import open_store
from antiphon.records import User
from antiphon.storage import Store

R = TypeVar("R")


@dataclass(slots=True)
class DirectAccess:
    """Runs each unit of work where it is asked for. `before` runs ahead of each, and may wait or
    raise; `after` runs when its work is done and its answer isn't given yet."""

    store: Store
    before: Callable[[], Awaitable[None]] | None = None
    after: Callable[[], Awaitable[None]] | None = None
    runs: int = field(default=0)

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        self.runs += 1
        if self.before is not None:
            await self.before()
        done = await work(self.store)
        if self.after is not None:
            await self.after()
        return done


@asynccontextmanager
async def direct_store(folder: Path) -> AsyncIterator[DirectAccess]:
    """A migrated SQLite store that knows the local user."""
    async with open_store(data_dir=folder) as store:
        await store.add_user(
            User(id=LOCAL_USER, tenant=LOCAL_TENANT, name="local", created_ms=1_700_000_000_000)
        )
        yield DirectAccess(store)
