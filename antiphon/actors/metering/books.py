"""The bills that this server has open: kept alive while it works, closed exactly once.

What can't be written at once is owed and written later; what nobody settles lapses with its lease,
here or on whichever server is left.
"""

from collections.abc import Awaitable, Callable

import structlog
import trio

from antiphon.errors import StorageFull, StoreError, StoreUnavailable
from antiphon.ids import NodeId, ResponseId
from antiphon.records import TokenUsage
from antiphon.storage import Store, StoreAccess

log = structlog.get_logger(__name__)

LEASE_S = 10.0
"""How long after its last sign of life a server's open bills are its own."""
_PATIENCE_S = 2.0
"""How long the end of an answer waits for its bill, before that is owed."""
_LOOK_S = LEASE_S / 4
_LAST_S = 2.0
_AT_ONCE = 500

Closing = Callable[[Store], Awaitable[bool]]


class Books:
    """`alone` says that no other server shares the database, so that whatever was open before this
    one started is nobody's."""

    def __init__(
        self, store: StoreAccess, *, node: NodeId, now_ms: Callable[[], int], alone: bool
    ) -> None:
        self._store = store
        self._node = node
        self._now_ms = now_ms
        self._alone = alone
        self._open: set[ResponseId] = set()
        self._owed: dict[ResponseId, Closing] = {}
        self._answering_since: float | None = None

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def owed(self) -> int:
        return len(self._owed)

    def lease_ms(self) -> int:
        """Until when a bill that is opened now is kept."""
        return self._now_ms() + round(LEASE_S * 1000)

    def opened(self, id: ResponseId) -> None:
        """From now on its lease is renewed."""
        self._open.add(id)

    async def settle(self, id: ResponseId, usage: TokenUsage) -> None:
        """Returns when it is written, or will be as soon as that can be done."""
        await self._close(id, lambda store: store.settle(id, usage, self._now_ms()))

    async def release(self, id: ResponseId) -> None:
        await self._close(id, lambda store: store.release(id))

    async def uncount(self, id: ResponseId, reserved_ms: int) -> None:
        """Of a stored response's."""
        await self._close(id, lambda store: store.uncount(id, reserved_ms))

    def owe(self, id: ResponseId, closing: Closing) -> None:
        """To be done as soon as the store can be reached."""
        self._owed[id] = closing

    async def run(self, stopping: trio.Event) -> None:
        """Renew, pay and reap until `stopping`; then pay what is owed, as far as the time goes."""
        while not stopping.is_set():
            await self._look()
            with trio.move_on_after(_LOOK_S):
                await stopping.wait()
        with trio.move_on_after(_LAST_S):
            await self._pay()

    async def _close(self, id: ResponseId, closing: Closing) -> None:
        self._owed[id] = closing
        self._open.discard(id)
        with trio.move_on_after(_PATIENCE_S):
            await self._write(id, closing)
            return
        log.warning("bill_owed", response_id=id, reason=f"no answer within {_PATIENCE_S:g} s")

    async def _write(self, id: ResponseId, closing: Closing) -> bool:
        """False when the store would take no other one either. One that it refuses to hear about
        holds up no other."""
        try:
            await self._store.run(closing)
        except StoreError as error:
            log.warning("bill_owed", response_id=id, reason=str(error))
            return not isinstance(error, StoreUnavailable | StorageFull)
        self._owed.pop(id, None)
        return True

    async def _look(self) -> None:
        # One moment for all of it: a machine that slept in between must not find itself dead.
        now_ms = self._now_ms()
        try:
            await self._renew()
            await self._pay()
            await self._reap(now_ms)
        except StoreError as error:
            if self._answering_since is not None:
                log.warning("bookkeeping_paused", reason=str(error))
            self._answering_since = None

    async def _pay(self) -> None:
        """Raises StoreUnavailable."""
        for id, closing in tuple(self._owed.items()):
            if not await self._write(id, closing):
                raise StoreUnavailable("a bill is owed")

    async def _renew(self) -> None:
        """Before anything else: who slept for long finds its leases passed."""
        ids, until_ms = sorted(self._open), self.lease_ms()
        for start in range(0, len(ids), _AT_ONCE):
            await self._renew_some(ids[start : start + _AT_ONCE], until_ms)

    async def _renew_some(self, ids: list[ResponseId], until_ms: int) -> None:
        await self._store.run(lambda store: store.renew_reservations(ids, until_ms))

    async def _reap(self, now_ms: int) -> None:
        now = trio.current_time()
        self._answering_since = now if self._answering_since is None else self._answering_since
        # After an outage everybody's lease has passed: who lives will renew it first.
        patient = now - self._answering_since >= LEASE_S
        node, alone = self._node, self._alone
        while patient or alone:
            lapsed = await self._store.run(
                lambda store: store.lapse_reservations(now_ms, owner=node, alone=alone)
            )
            if not lapsed:
                return
            log.info("reservations_lapsed", bills=lapsed)
