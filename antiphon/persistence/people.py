"""Units of work on users and keys."""

from collections.abc import Sequence

from antiphon.ids import KeyId, UserId
from antiphon.persistence import codec
from antiphon.persistence.port import Transaction, statement
from antiphon.records import ApiKey, User

_ADD_USER = statement(
    "users.add",
    f"""INSERT INTO users ({codec.USER}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (id) DO NOTHING""",
)
_USER = statement("users.get", f"SELECT {codec.USER} FROM users WHERE id = $1")
_USERS = statement("users.list", f"SELECT {codec.USER} FROM users ORDER BY created_ms, id")
_SET_TRAINING = statement(
    "users.set_training",
    f"UPDATE users SET training = $2 WHERE id = $1 RETURNING {codec.USER}",
)
_SET_PLAN = statement(
    "users.set_plan", f"UPDATE users SET plan = $2 WHERE id = $1 RETURNING {codec.USER}"
)
_SUSPEND_USER = statement(
    "users.suspend",
    f"""UPDATE users SET suspended = $2, suspended_until_ms = NULL WHERE id = $1
        RETURNING {codec.USER}""",
)
_SUSPEND_UNTIL = statement(
    "users.suspend_until",
    f"""UPDATE users SET suspended = $2, suspended_until_ms = $3
        WHERE id = $1 AND (suspended IS NULL OR suspended_until_ms IS NOT NULL)
        RETURNING {codec.USER}""",
)
_LIFT = statement(
    "users.lift_suspension",
    f"""UPDATE users SET suspended = NULL, suspended_until_ms = NULL
        WHERE id = $1 AND suspended_until_ms IS NOT NULL RETURNING {codec.USER}""",
)
_SUSPENDED = statement(
    "users.suspended_until",
    f"""SELECT {codec.USER} FROM users WHERE suspended_until_ms > $1
        ORDER BY suspended_until_ms, id LIMIT $2""",
)
_SUSPEND_KEY = statement(
    "keys.suspend", f"UPDATE api_keys SET suspended = $2 WHERE id = $1 RETURNING {codec.KEY}"
)
_ADD_KEY = statement(
    "keys.add",
    f"""INSERT INTO api_keys ({codec.KEY}, secret_hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)""",
)
_NOTE_FACT = statement(
    "facts.note",
    "INSERT INTO facts (name, noted_ms) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
)
_FACT = statement("facts.get", "SELECT noted_ms FROM facts WHERE name = $1")
_KEYS = statement("keys.list", f"SELECT {codec.KEY} FROM api_keys ORDER BY created_ms, id")
_KEYS_OF_USER = statement(
    "keys.list_of_user",
    f"SELECT {codec.KEY} FROM api_keys WHERE user_id = $1 ORDER BY created_ms, id",
)
_FIND_KEY = statement("keys.find", f"SELECT {codec.KEY} FROM api_keys WHERE secret_hash = $1")
_KEY = statement("keys.get", f"SELECT {codec.KEY} FROM api_keys WHERE id = $1")
_KEYS_BY_PREFIX = statement(
    "keys.by_prefix", f"SELECT {codec.KEY} FROM api_keys WHERE prefix = $1 LIMIT 2"
)
_REVOKE_KEY = statement(
    "keys.revoke",
    f"""UPDATE api_keys SET revoked_ms = coalesce(revoked_ms, $2) WHERE id = $1
        RETURNING {codec.KEY}""",
)
_TOUCH_KEY = statement(
    "keys.touch",
    """UPDATE api_keys SET last_used_ms = $2
        WHERE id = $1 AND (last_used_ms IS NULL OR last_used_ms < $2)""",
)

_KEYS_EXIST = "keys_exist"


async def add_user(tx: Transaction, user: User) -> None:
    await tx.execute(
        _ADD_USER,
        user.id,
        user.tenant,
        user.name,
        user.created_ms,
        int(user.training),
        user.plan,
        user.suspended,
        user.suspended_until_ms,
    )


async def user(tx: Transaction, id: UserId) -> User | None:
    row = await tx.fetchrow(_USER, id)
    return None if row is None else codec.user(row)


async def users(tx: Transaction) -> tuple[User, ...]:
    return tuple(map(codec.user, await tx.fetch(_USERS)))


async def set_training(tx: Transaction, id: UserId, allowed: bool) -> User | None:
    row = await tx.fetchrow(_SET_TRAINING, id, int(allowed))
    return None if row is None else codec.user(row)


async def set_plan(tx: Transaction, id: UserId, plan: str | None) -> User | None:
    row = await tx.fetchrow(_SET_PLAN, id, plan)
    return None if row is None else codec.user(row)


async def suspend_user(tx: Transaction, id: UserId, reason: str | None) -> User | None:
    row = await tx.fetchrow(_SUSPEND_USER, id, reason)
    return None if row is None else codec.user(row)


async def suspend_until(tx: Transaction, id: UserId, reason: str, until_ms: int) -> User | None:
    row = await tx.fetchrow(_SUSPEND_UNTIL, id, reason, until_ms)
    return None if row is None else codec.user(row)


async def lift_suspension(tx: Transaction, id: UserId) -> User | None:
    row = await tx.fetchrow(_LIFT, id)
    return None if row is None else codec.user(row)


async def suspended_users(tx: Transaction, now_ms: int, limit: int) -> tuple[User, ...]:
    return tuple(map(codec.user, await tx.fetch(_SUSPENDED, now_ms, limit)))


async def suspend_key(tx: Transaction, id: KeyId, reason: str | None) -> ApiKey | None:
    row = await tx.fetchrow(_SUSPEND_KEY, id, reason)
    return None if row is None else codec.api_key(row)


async def add_key(tx: Transaction, key: ApiKey, secret_hash: str) -> None:
    # Erasing the last user must not turn a server with keys into one without.
    await tx.execute(_NOTE_FACT, _KEYS_EXIST, key.created_ms)
    await tx.execute(
        _ADD_KEY,
        key.id,
        key.user,
        key.prefix,
        key.name,
        codec.scopes_text(key.scopes),
        key.created_ms,
        key.expires_ms,
        key.revoked_ms,
        key.last_used_ms,
        key.suspended,
        secret_hash,
    )


async def keys(tx: Transaction, owner: UserId | None) -> tuple[ApiKey, ...]:
    rows = await (tx.fetch(_KEYS) if owner is None else tx.fetch(_KEYS_OF_USER, owner))
    return tuple(map(codec.api_key, rows))


async def find_key(tx: Transaction, secret_hash: str) -> tuple[ApiKey, User] | None:
    row = await tx.fetchrow(_FIND_KEY, secret_hash)
    if row is None:
        return None
    key = codec.api_key(row)
    owner = await user(tx, key.user)
    return None if owner is None else (key, owner)


async def has_keys(tx: Transaction) -> bool:
    return await tx.fetchrow(_FACT, _KEYS_EXIST) is not None


async def revoke_key(tx: Transaction, key: KeyId, now_ms: int) -> ApiKey | None:
    """A prefix that two keys share names neither."""
    found: Sequence[object] | None = await tx.fetchrow(_KEY, key)
    if found is None:
        alike = await tx.fetch(_KEYS_BY_PREFIX, key)
        found = alike[0] if len(alike) == 1 else None
    if found is None:
        return None
    row = await tx.fetchrow(_REVOKE_KEY, found[0], now_ms)
    return None if row is None else codec.api_key(row)


async def touch_keys(tx: Transaction, used: dict[KeyId, int]) -> None:
    await tx.executemany(_TOUCH_KEY, sorted(used.items()))
