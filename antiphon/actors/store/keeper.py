"""Holds the database open: opens it, notices when it is lost, opens it again, closes it at the end.

Keeps the rule that the database is closed on every path, and only once nobody works with it: also
when the actor is killed, work under way ends by its own deadline first.
"""

from collections.abc import Awaitable, Callable

import structlog
import trio

from antiphon.actors.store.status import StoreStatus
from antiphon.errors import StoreError, StoreFailed, StoreUnavailable
from antiphon.storage import OpenStore, Store

log = structlog.get_logger(__name__)

_DELAYS_S = (0.5, 1.0, 2.0, 5.0)
"""Between attempts to open; the last one for ever. A database that restarts is away for seconds."""
CLOSE_S = 12.0
"""For the database to close, after the last unit of work has ended."""


class Keeper:
    """Belongs to one incarnation of the store actor. `store` is the open database, if it is."""

    def __init__(
        self, open_store: OpenStore, status: StoreStatus, *, patience_s: float, deadline_s: float
    ) -> None:
        self._open_store = open_store
        self._status = status
        self._patience_s = patience_s
        self._deadline_s = deadline_s
        self.store: Store | None = None
        self._units: trio.Nursery
        self._scope = trio.CancelScope(shield=True)
        self._wanted = True
        self._changed = trio.Event()
        self._suspicious = False
        self._settled = trio.Event()
        self._failure: StoreError | None = None
        self._ended = trio.Event()

    async def run(self) -> None:
        """The task beside the actor that holds the database. Cancelling it closes in order."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep)
            try:
                await self._ended.wait()
            finally:
                self._leave()

    async def settled(self) -> None:
        """Return when the database is open, or when it is known to take a while and had been open
        before. Raises StoreError where a first start can't succeed."""
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def start_unit(self, unit: Callable[[Store], Awaitable[None]]) -> bool:
        """Run it with the open database, which stays open until it has ended; False if none is."""
        if self.store is None:
            return False
        self._units.start_soon(unit, self.store)
        return True

    def suspect(self) -> None:
        """An operation had no answer: see whether the database is still there."""
        self._suspicious = True
        self._wake()

    async def close(self) -> None:
        """Take no more work, let the work under way end, and close."""
        self._leave()
        await self._ended.wait()

    def _leave(self) -> None:
        if self._wanted:
            self._wanted = False
            self._scope.deadline = trio.current_time() + self._deadline_s + CLOSE_S
            if self.store is None:
                self._scope.cancel("the store is not wanted any more, and not open")
            self.store = None
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _keep(self) -> None:
        try:
            with self._scope:
                await self._hold_until_unwanted()
        finally:
            self._status.is_closed()
            self._ended.set()
            self._settled.set()

    async def _hold_until_unwanted(self) -> None:
        began, attempts = trio.current_time(), 0
        while self._wanted:
            try:
                await self._hold()
                attempts = 0
            except StoreError as error:
                if not self._may_go_on(error, waited_s=trio.current_time() - began):
                    self._failure = error
                    return
                reason = reason_of(error)
                if self._status.reason != reason:
                    log.warning("store_waiting", reason=reason, attempts=attempts + 1)
                self._status.is_closed(reason)
                if self._status.opened:
                    self._settled.set()
                delay_s = _DELAYS_S[min(attempts, len(_DELAYS_S) - 1)]
                attempts += 1
                with trio.move_on_after(delay_s):
                    while self._wanted:
                        await self._changed.wait()

    def _may_go_on(self, error: StoreError, *, waited_s: float) -> bool:
        """At the first start only what may pass by itself is waited for, and not for ever. Later
        nothing is given up: a crash would only be repeated, until the whole tree ends."""
        if self._status.opened:
            return True
        return isinstance(error, StoreUnavailable) and waited_s < self._patience_s

    async def _hold(self) -> None:
        """Open, and stay until the database is lost or not wanted any more."""
        began = trio.current_time()
        async with self._open_store() as store:
            if not self._wanted:
                return
            async with trio.open_nursery() as self._units:
                self._opened(store, trio.current_time() - began)
                await self._watch(store)
                self.store = None

    def _opened(self, store: Store, seconds: float) -> None:
        again = self._status.opened > 0
        self.store = store
        self._status.is_open()
        self._suspicious = False
        self._settled.set()
        log.info("store_back" if again else "store_opened", seconds=round(seconds, 3))

    async def _watch(self, store: Store) -> None:
        while self._wanted:
            if not self._suspicious:
                await self._changed.wait()
                continue
            self._suspicious = False
            problem = await self._probe(store)
            if problem is not None and self._wanted:
                self.store = None
                self._status.is_closed(problem)
                log.error("store_lost", reason=problem)
                return

    async def _probe(self, store: Store) -> str | None:
        with trio.move_on_after(self._deadline_s):
            try:
                await store.has_keys()
            except StoreError as error:
                return reason_of(error)
            return None
        return f"no answer within {self._deadline_s:g} s"


def reason_of(error: StoreError) -> str:
    """Without "store unavailable:", which is said by where it is shown."""
    match error:
        case StoreUnavailable(reason=reason) | StoreFailed(reason=reason):
            return reason
        case _:
            return str(error)
