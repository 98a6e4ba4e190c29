"""The store actor: the only one that touches the database, one unit of work a message.

Keeps the rules that work which has begun is never cut by its caller's leaving, only by its own
deadline; that a database that is gone costs answers and never the tree; and that nothing queues
without bound. Knows no SQL.
"""

from functools import partial
from typing import Any, cast

import structlog
import trio

from antiphon.actors.actor import ActorContext
from antiphon.actors.store.keeper import Keeper
from antiphon.actors.store.messages import Do, StoreMessage
from antiphon.actors.store.status import StoreStatus
from antiphon.actors.store.watched import WatchedStore
from antiphon.errors import RequestError, StorageFull, StoreFailed, StoreUnavailable
from antiphon.storage import OpenStore, Store
from antiphon.telemetry import Telemetry

log = structlog.get_logger(__name__)


class StoreActor:
    """One incarnation; `status` outlives it."""

    def __init__(
        self,
        open_store: OpenStore,
        status: StoreStatus,
        telemetry: Telemetry,
        *,
        concurrency: int,
        deadline_s: float,
        start_wait_s: float,
    ) -> None:
        self._status = status
        self._telemetry = telemetry
        self._deadline_s = deadline_s
        self._places = trio.Semaphore(concurrency)
        self._keeper = Keeper(open_store, status, patience_s=start_wait_s, deadline_s=deadline_s)

    async def start(self, me: ActorContext[StoreMessage]) -> None:
        """Open the database. Raises StoreError when it never was open and can't be."""
        me.start_soon(self._keeper.run)
        await self._keeper.settled()

    async def handle(self, message: StoreMessage) -> None:
        """Begin the work as soon as there is a place; the next message is not waited for it."""
        await self._places.acquire()
        began = False
        try:
            if message.expires_at <= trio.current_time():
                self._refuse(message, "overloaded")
            elif self._keeper.start_unit(partial(self._run, message)):
                began = True
            else:
                self._refuse(message, self._status.reason or "starting")
        finally:
            if not began:
                self._places.release()

    async def terminate(self) -> None:
        """Let the work under way end, then close the database."""
        await self._keeper.close()

    def _refuse(self, message: StoreMessage, reason: str) -> None:
        message.reply.fail(StoreUnavailable(reason, refused=True))

    async def _run(self, message: Do[Any], store: Store) -> None:
        watched = WatchedStore(store)
        began = trio.current_time()
        self._status.running += 1
        outcome = "ok"
        try:
            value, error = await self._attempt(message, cast("Store", watched))
            if error is None:
                message.reply.send(value)
                self._status.full = self._status.full and not watched.wrote
            else:
                outcome = self._note(error, watched)
                message.reply.fail(error)
        finally:
            self._status.running -= 1
            self._status.done += 1
            self._places.release()
            seconds = trio.current_time() - began
            self._telemetry.store_unit_finished(watched.kind, outcome, seconds)

    async def _attempt(
        self, message: Do[Any], store: Store
    ) -> tuple[object, None] | tuple[None, Exception]:
        """The work's value or its error, which is its caller's in either case."""
        try:
            with trio.CancelScope(deadline=message.expires_at, shield=True):
                return await message.work(store), None
        except Exception as error:
            # The work is its caller's code: what it raises is raised there, whatever it is.
            return None, error
        return None, StoreUnavailable(f"no answer within {self._deadline_s:g} s")

    def _note(self, error: Exception, watched: WatchedStore) -> str:
        """Count it, and say what an operator should know. The outcome's name."""
        match error:
            case StoreUnavailable():
                self._status.unavailable += 1
                self._keeper.suspect()
                return "unavailable"
            case StoreFailed():
                self._status.failed += 1
                self._status.full = self._status.full or isinstance(error, StorageFull)
                log.error("store_failed", operation=watched.operation, reason=error.reason)
                return "failed"
            case RequestError():
                return "refused"
            case _:
                return "defect"
