"""Who a request is from: API keys, looked up in the store and remembered for a moment.

While no key was ever made, everybody who reaches a loopback address is the local user. Also a child
of the tree, since when keys were last used is written now and then and at the end.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
import trio

from antiphon.actors.accounts.cache import Cache, Remembered
from antiphon.actors.accounts.flights import Flights
from antiphon.actors.accounts.keys import hash_secret, is_secret
from antiphon.actors.metering.plans import Plans
from antiphon.errors import KeySuspended, StoreError, Unauthenticated
from antiphon.ids import LOCAL_TENANT, LOCAL_USER, KeyId, UserId
from antiphon.records import ApiKey, Principal, Scope, User
from antiphon.storage import Store, StoreAccess
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

V = TypeVar("V")

FOUND_S = 5.0
"""A revoked key, or one whose user was erased, is refused after this at the latest."""
MISSING_S = 2.0
"""A new key works after this at the latest; also the first one, which ends access without keys."""
OUTAGE_S = 300.0
"""While the store doesn't answer, what was known this long ago still counts."""
_PATIENCE_S = 1.0
"""How long a look may take where an older answer would do."""
_SIZE = 4096
"""Of each cache. What wasn't found has one of its own, so that guesses don't push out keys."""
_WRITE_S = 60.0
_LAST_WRITE_S = 2.0
_ANY_KEY = "any key"

_NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
_BAD_KEY = "Incorrect API key provided."
"""The same for a key that is unknown, expired or revoked: which of them is nobody's business."""

LOCAL_PRINCIPAL = Principal(user=LOCAL_USER, tenant=LOCAL_TENANT, scopes=frozenset(Scope))

Found = tuple[ApiKey, User]


class Accounts:
    """`is_local`: whether the API can be reached from this machine alone. `now_ms` is the wall
    clock. Without `plans` nothing limits anybody."""

    def __init__(
        self,
        store: StoreAccess,
        *,
        is_local: bool,
        now_ms: Callable[[], int],
        plans: Plans | None = None,
    ) -> None:
        self._store = store
        self._plans = plans
        self._is_local = is_local
        self._now_ms = now_ms
        self._keys_exist: Remembered[bool] | None = None
        self._found: Cache[Found] = Cache(_SIZE)
        self._missing: Cache[None] = Cache(_SIZE)
        self._flights = Flights()
        self._used: dict[KeyId, int] = {}

    async def authenticate(self, secret: str | None) -> Principal:
        """Raises Unauthenticated, KeySuspended, StoreUnavailable."""
        if self._is_local and not await self._any_key():
            return LOCAL_PRINCIPAL
        if secret is None:
            raise Unauthenticated(_NO_KEY)
        found = await self._find(hash_secret(secret)) if is_secret(secret) else None
        now_ms = self._now_ms()
        if found is None or not _is_good(found[0], now_ms):
            raise Unauthenticated(_BAD_KEY)
        key, user = found
        self._used[key.id] = now_ms
        if (reason := user.suspension(now_ms) or key.suspended) is not None:
            raise KeySuspended(reason)
        return Principal(
            user=user.id,
            tenant=user.tenant,
            scopes=key.scopes,
            key=key.id,
            plan=None if self._plans is None else self._plans.name_for(user.plan),
        )

    def remembers(self, secret: str) -> bool:
        """Whether it was a key a moment ago, as far as that is known without a look."""
        known = self._found.get(hash_secret(secret)) if is_secret(secret) else None
        return known is not None and _is_good(known.value[0], self._now_ms())

    def forget(self, user: UserId) -> None:
        """Look again at this user's keys: something about them was changed here."""
        for digest in self._found.where(lambda found: found[1].id == user):
            self._found.forget(digest)

    async def run(self, context: ChildContext) -> None:
        """A child's start function: see that the local user exists, then keep the times of use."""
        try:
            await self._store.run(self._ensure_local_user)
        except StoreError as error:
            # Whoever needs it will try again, and is told if that fails.
            log.warning("local_user_not_checked", reason=str(error))
        context.ready()
        while not context.stopping.is_set():
            with trio.move_on_after(_WRITE_S):
                await context.stopping.wait()
            with trio.move_on_after(_LAST_WRITE_S):
                await self._write_times()

    async def _write_times(self) -> None:
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await self._store.run(lambda store: store.touch_keys(used))
        except StoreError as error:
            log.warning("key_times_not_written", keys=len(used), reason=str(error))
            self._used = used | self._used

    async def _any_key(self) -> bool:
        """Whether a key was ever made. Once that is so it stays so for the life of this process,
        also when the user who had them all is erased."""
        while True:
            known = self._keys_exist
            if known is not None and (known.value or known.age_s(trio.current_time()) <= MISSING_S):
                return known.value
            if await self._refresh(_ANY_KEY, self._look_for_any_key, stale=known):
                return False

    async def _look_for_any_key(self) -> None:
        any_key = await self._store.run(self._any_key_or_local_user)
        self._keys_exist = Remembered(any_key, trio.current_time())

    async def _any_key_or_local_user(self, store: Store) -> bool:
        if await store.has_keys():
            return True
        # Also after somebody erased it: without keys, every conversation belongs to it.
        await self._ensure_local_user(store)
        return False

    async def _ensure_local_user(self, store: Store) -> None:
        if await store.user(LOCAL_USER) is None:
            created_ms = self._now_ms()
            await store.add_user(
                User(id=LOCAL_USER, tenant=LOCAL_TENANT, name="local", created_ms=created_ms)
            )

    async def _find(self, digest: str) -> Found | None:
        while True:
            now = trio.current_time()
            found, missing = self._found.get(digest), self._missing.get(digest)
            if found is not None and found.age_s(now) <= FOUND_S:
                return found.value
            if missing is not None and missing.age_s(now) <= MISSING_S:
                return None
            if await self._refresh(digest, lambda: self._look_for(digest), stale=found):
                assert found is not None
                return found.value

    async def _look_for(self, digest: str) -> None:
        found = await self._store.run(lambda store: store.find_key(digest))
        now = trio.current_time()
        if found is None:
            self._found.forget(digest)
            self._missing.put(digest, None, now)
        else:
            self._found.put(digest, found, now)

    async def _refresh(
        self, name: str, look: Callable[[], Awaitable[None]], *, stale: Remembered[V] | None
    ) -> bool:
        """Look again. True when that failed and the stale value counts on. Raises
        StoreError where there is none."""
        if stale is None or stale.age_s(trio.current_time()) > OUTAGE_S:
            await self._flights.share(name, look)
            return False
        try:
            with trio.move_on_after(_PATIENCE_S):
                await self._flights.share(name, look)
                return False
        except StoreError:
            pass
        return True


def _is_good(key: ApiKey, now_ms: int) -> bool:
    expired = key.expires_ms is not None and key.expires_ms <= now_ms
    return key.revoked_ms is None and not expired
