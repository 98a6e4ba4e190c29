"""The meter (`ports.Meter`): what a turn may cost at most is held before any work, in the database,
which alone decides; what it has cost is written before anybody is told.

Callers without a name are free and touch no database, and so is the server's own work. Also a child
of the tree, for what goes on behind.
"""

from collections.abc import Callable

import trio

from antiphon.actors.metering.books import Books
from antiphon.actors.metering.plans import Plans
from antiphon.actors.metering.standing import rate_limited, rate_limits
from antiphon.errors import StoreUnavailable
from antiphon.events import Turn
from antiphon.ids import NodeId, ResponseId, UserId, new_response_id
from antiphon.ports import Charge
from antiphon.quotas import Reservation, Reserved, UsedUp
from antiphon.records import TokenUsage
from antiphon.storage import StoreAccess
from antiphon.supervision.context import ChildContext
from antiphon.turn_events import RateLimit, Usage


class FreeCharge:
    """Of a turn that nobody counts."""

    limits: tuple[RateLimit, ...] = ()

    async def settle(self, usage: Usage) -> None:
        await trio.lowlevel.checkpoint()

    async def release(self) -> None:
        await trio.lowlevel.checkpoint()


class BilledCharge:
    """Of a turn with a bill of its own."""

    def __init__(self, id: ResponseId, limits: tuple[RateLimit, ...], books: Books) -> None:
        self._id = id
        self._books: Books | None = books
        self.limits = limits

    async def settle(self, usage: Usage) -> None:
        books, self._books = self._books, None
        if books is None:
            await trio.lowlevel.checkpoint()
            return
        cost = TokenUsage(
            input=usage.prompt_tokens,
            cached=usage.cached_tokens,
            output=usage.completion_tokens,
        )
        await books.settle(self._id, cost)

    async def release(self) -> None:
        books, self._books = self._books, None
        if books is None:
            await trio.lowlevel.checkpoint()
            return
        await books.release(self._id)


class StoredCharge:
    """Of a turn whose answer is stored: its bill is settled with its end, in one transaction."""

    def __init__(
        self, id: ResponseId, limits: tuple[RateLimit, ...], books: Books, reserved_ms: int
    ) -> None:
        self._id = id
        self._books: Books | None = books
        self._reserved_ms = reserved_ms
        self.limits = limits

    async def settle(self, usage: Usage) -> None:
        self._books = None
        await trio.lowlevel.checkpoint()

    async def release(self) -> None:
        books, self._books = self._books, None
        if books is None:
            await trio.lowlevel.checkpoint()
            return
        await books.uncount(self._id, self._reserved_ms)


class StoreMeter:
    """Wired and not yet running. `now_ms` is the wall clock."""

    def __init__(
        self,
        store: StoreAccess,
        plans: Plans,
        *,
        node: NodeId,
        now_ms: Callable[[], int],
        alone: bool,
    ) -> None:
        self._store = store
        self._plans = plans
        self._node = node
        self._now_ms = now_ms
        self.books = Books(store, node=node, now_ms=now_ms, alone=alone)

    async def reserve(self, turn: Turn, *, prompt_tokens: int, max_tokens: int) -> Charge:
        """Raises RateLimited, KeySuspended, RecordNotFound (the user is gone), StoreUnavailable,
        StoreFailed."""
        if turn.user is None or turn.upkeep:
            await trio.lowlevel.checkpoint()
            return FreeCharge()
        limits = self._plans.limits_of(turn.plan)
        if turn.stored and not limits.any:
            await trio.lowlevel.checkpoint()
            return FreeCharge()  # its bill was opened when it was accepted
        now_ms = self._now_ms()
        wanted = Reservation(
            id=ResponseId(turn.response or new_response_id()),
            user=UserId(turn.user),
            model=turn.model,
            tokens=prompt_tokens + max_tokens * turn.choices,
            now_ms=now_ms,
            owner=self._node,
            lease_ms=None if turn.stored else self.books.lease_ms(),
            limits=limits,
        )
        verdict = await self._reserve(wanted)
        if isinstance(verdict, UsedUp):
            raise rate_limited(verdict)
        told = rate_limits(verdict.standings)
        if wanted.lease_ms is None:
            return StoredCharge(wanted.id, told, self.books, now_ms)
        self.books.opened(wanted.id)
        return BilledCharge(wanted.id, told, self.books)

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        await self.books.run(context.stopping)

    async def _reserve(self, wanted: Reservation) -> Reserved | UsedUp:
        try:
            return await self._store.run(lambda store: store.reserve(wanted))
        except StoreUnavailable as error:
            if not error.refused:
                self._undo(wanted)
            raise
        except trio.Cancelled:
            self._undo(wanted)
            raise

    def _undo(self, wanted: Reservation) -> None:
        """It may have been written, or be written yet. What that misses lapses with its lease,
        which nobody renews; a stored response's goes with it."""
        if wanted.lease_ms is not None:
            self.books.owe(wanted.id, lambda store: store.release(wanted.id))
