"""A store that a test scripts, for what must run on a clock that jumps: the real one works in
threads, which such a clock doesn't wait for.

It knows people and keys, which bills are open, that nothing is left over, and nothing else on
purpose: a second store with every rule would only drift from the real one, which is quick enough on
a real clock.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import cast

import trio

from antiphon.document_records import DocumentWork
from antiphon.errors import StoreError
from antiphon.ids import KeyId, NodeId, ResponseId, UserId
from antiphon.quotas import Reservation, Reserved, Standing, UsedUp
from antiphon.records import ApiKey, Orphan, PendingWork, Receipt, TokenUsage, User
from antiphon.storage import Store

_CLOSING_S = 0.1


class ScriptedStore:
    """What was opened; `before` runs ahead of every operation, and may wait or raise."""

    def __init__(self) -> None:
        self.people: dict[UserId, User] = {}
        self.by_hash: dict[str, ApiKey] = {}
        self.touched: list[dict[KeyId, int]] = []
        self.bills: dict[ResponseId, Reservation] = {}
        """Those that are open."""
        self.settled: dict[ResponseId, TokenUsage] = {}
        self.refusal: UsedUp | None = None
        self.standings: tuple[Standing, ...] = ()
        self.before: Callable[[], Awaitable[None]] | None = None
        self.asked: list[str] = []

    async def user(self, user: UserId) -> User | None:
        await self._begin("user")
        return self.people.get(user)

    async def add_user(self, user: User) -> None:
        await self._begin("add_user")
        self.people.setdefault(user.id, user)

    async def add_key(self, key: ApiKey, secret_hash: str) -> None:
        await self._begin("add_key")
        self.by_hash[secret_hash] = key

    async def find_key(self, secret_hash: str) -> tuple[ApiKey, User] | None:
        await self._begin("find_key")
        key = self.by_hash.get(secret_hash)
        return None if key is None else (key, self.people[key.user])

    async def has_keys(self) -> bool:
        await self._begin("has_keys")
        return bool(self.by_hash)

    async def suspend_until(self, user: UserId, reason: str, until_ms: int) -> User | None:
        await self._begin("suspend_until")
        known = self.people.get(user)
        if known is None or (known.suspended and known.suspended_until_ms is None):
            return None
        self.people[user] = replace(known, suspended=reason, suspended_until_ms=until_ms)
        return self.people[user]

    async def lift_suspension(self, user: UserId) -> User | None:
        await self._begin("lift_suspension")
        known = self.people.get(user)
        if known is None or known.suspended_until_ms is None:
            return None
        self.people[user] = replace(known, suspended=None, suspended_until_ms=None)
        return self.people[user]

    async def suspended_users(self, now_ms: int, *, limit: int = 1000) -> tuple[User, ...]:
        await self._begin("suspended_users")
        return tuple(
            each for each in self.people.values() if (each.suspended_until_ms or 0) > now_ms
        )

    async def touch_keys(self, used: dict[KeyId, int]) -> None:
        await self._begin("touch_keys")
        self.touched.append(dict(used))

    async def remake_documents(
        self, extractor: str, model: str | None, now_ms: int, *, limit: int = 500
    ) -> int:
        await self._begin("remake_documents")
        return 0

    async def take_documents(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 4
    ) -> tuple[DocumentWork, ...]:
        await self._begin("take_documents")
        return ()

    async def orphans(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> tuple[Orphan, ...]:
        await self._begin("orphans")
        return ()

    async def reserve(self, reservation: Reservation) -> Reserved | UsedUp:
        await self._begin("reserve")
        if self.refusal is not None:
            return self.refusal
        self.bills[reservation.id] = reservation
        return Reserved(standings=self.standings)

    async def settle(self, id: ResponseId, usage: TokenUsage, now_ms: int) -> bool:
        await self._begin("settle")
        self.bills.pop(id, None)
        return self.settled.setdefault(id, usage) is usage

    async def release(self, id: ResponseId) -> bool:
        await self._begin("release")
        return self.bills.pop(id, None) is not None

    async def uncount(self, id: ResponseId, reserved_ms: int) -> bool:
        await self._begin("uncount")
        held = self.bills.get(id)
        return held is not None and held.now_ms == reserved_ms and bool(self.bills.pop(id))

    async def renew_reservations(self, ids: Sequence[ResponseId], until_ms: int) -> int:
        await self._begin("renew_reservations")
        held = [id for id in ids if id in self.bills]
        self.bills |= {id: replace(self.bills[id], lease_ms=until_ms) for id in held}
        return len(held)

    async def lapse_reservations(
        self, now_ms: int, *, owner: NodeId, alone: bool = False, limit: int = 100
    ) -> int:
        await self._begin("lapse_reservations")
        gone = [
            each.id
            for each in self.bills.values()
            if (each.lease_ms is not None and each.lease_ms <= now_ms)
            or (alone and each.owner != owner)
        ]
        for id in gone:
            del self.bills[id]
            self.settled[id] = TokenUsage()
        return len(gone)

    async def expire(self, now_ms: int, *, limit: int = 500) -> Receipt:
        await self._begin("expire")
        return Receipt(id="none", subject="expired", deleted_ms=now_ms, rows={})

    async def take_work(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 8
    ) -> tuple[PendingWork, ...]:
        await self._begin("take_work")
        return ()

    async def _begin(self, name: str) -> None:
        self.asked.append(name)
        await trio.lowlevel.checkpoint()
        if self.before is not None:
            await self.before()


class ScriptedOpener:
    """Opens `store`, or raises `error`; counts what was opened and what was closed again."""

    def __init__(self, store: ScriptedStore | None = None) -> None:
        self.store = store or ScriptedStore()
        self.error: StoreError | None = None
        self.attempts = 0
        self.opened = 0
        self.closed = 0

    def __call__(self) -> "_Opening":
        return _Opening(self)


class _Opening:
    """Closing in a cancelled scope is cut, and doesn't count: who opened it must let it close."""

    def __init__(self, opener: ScriptedOpener) -> None:
        self._opener = opener

    async def __aenter__(self) -> Store:
        self._opener.attempts += 1
        await trio.lowlevel.checkpoint()
        if self._opener.error is not None:
            raise self._opener.error
        self._opener.opened += 1
        return cast("Store", self._opener.store)

    async def __aexit__(self, *error: object) -> bool | None:
        is_cut = trio.current_effective_deadline() == -math.inf
        with trio.move_on_after(_CLOSING_S, shield=True):
            await trio.lowlevel.checkpoint()
        self._opener.closed += not is_cut
        return None
