"""Units of work on what users may use: reserved before any work, settled, given back.

The user's row in `user_quotas` is locked from the look to the write, so that of many servers that
ask at once none decides on what another one has just taken. What runs is counted there too, and
every change of it goes with the one of its bill.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from antiphon.errors import RecordNotFound
from antiphon.ids import NodeId, ResponseId, UserId
from antiphon.persistence.conversations import LAST
from antiphon.persistence.port import MissingReference, Row, Transaction, statement
from antiphon.persistence.windows import EMPTY, Windows, admit
from antiphon.quotas import Reservation, Reserved, UsedUp
from antiphon.records import JsonObject, TokenUsage

_LOCK = statement(
    "quotas.lock", "SELECT windows, running FROM user_quotas WHERE user_id = $1 FOR UPDATE"
)
_SHOW = statement("quotas.get", "SELECT windows, running FROM user_quotas WHERE user_id = $1")
_FIRST = statement(
    "quotas.first",
    """INSERT INTO user_quotas (user_id, windows, running) VALUES ($1, $2, 0)
        ON CONFLICT (user_id) DO NOTHING""",
)
_KEEP = statement(
    "quotas.keep", "UPDATE user_quotas SET windows = $2, running = $3 WHERE user_id = $1"
)
_OPEN = statement(
    "usage.open",
    """INSERT INTO usage_entries (response_id, user_id, model, reserved_tokens, created_ms,
        reserved_ms, owner, lease_ms)
        SELECT $1, id, $3, $4, $5, $6, $7, $8 FROM users WHERE id = $2""",
)
_COUNT = statement(
    "usage.count",
    """UPDATE usage_entries SET model = $2, reserved_tokens = $3, reserved_ms = $4
        WHERE response_id = $1 AND settled_ms IS NULL AND reserved_ms IS NULL""",
)
_TOKENS = "input_tokens = $2, cached_tokens = $3, output_tokens = $4, reasoning_tokens = $5"
_SETTLE = statement(
    "usage.settle",
    f"""UPDATE usage_entries SET {_TOKENS}, settled_ms = $6, owner = NULL, lease_ms = NULL,
        model = COALESCE($7, model)
        WHERE response_id = $1 AND settled_ms IS NULL
        RETURNING user_id, reserved_tokens, reserved_ms""",
)
_AMEND = statement(
    "usage.amend",
    f"""UPDATE usage_entries SET {_TOKENS}, settled_ms = $6, owner = NULL, lease_ms = NULL
        WHERE response_id = $1 AND settled_ms IS NOT NULL AND lease_ms IS NOT NULL
        RETURNING user_id, reserved_ms""",
)
_RELEASE = statement(
    "usage.release",
    """DELETE FROM usage_entries WHERE response_id = $1 AND settled_ms IS NULL
        RETURNING user_id, reserved_tokens, reserved_ms""",
)
_UNCOUNT = statement(
    "usage.uncount",
    """UPDATE usage_entries SET reserved_ms = NULL
        WHERE response_id = $1 AND reserved_ms = $2 AND settled_ms IS NULL
        RETURNING user_id, reserved_tokens""",
)
_RENEW = statement(
    "usage.renew",
    """UPDATE usage_entries SET lease_ms = $2
        WHERE response_id = ANY($1) AND settled_ms IS NULL AND lease_ms IS NOT NULL""",
)
_LAPSED = "settled_ms IS NULL AND lease_ms <= $2 AND (owner <> $3 OR lease_ms <= $1)"
_LAPSE = statement(
    "usage.lapse",
    f"""UPDATE usage_entries SET input_tokens = 0, cached_tokens = 0, output_tokens = 0,
        reasoning_tokens = 0, settled_ms = $1
        WHERE response_id IN (SELECT response_id FROM usage_entries WHERE {_LAPSED}
            ORDER BY lease_ms LIMIT $4)
        AND {_LAPSED} RETURNING user_id, reserved_tokens, reserved_ms""",
)


async def export(tx: Transaction, user: UserId) -> JsonObject | None:
    """What is counted of a user, as plain JSON; None where no limit ever did."""
    row = await tx.fetchrow(_SHOW, user)
    if row is None:
        return None
    windows = Windows.decode(row[0])
    return {
        window.span.name: [
            {"from_ms": number * window.span.width_ms, "requests": requests, "tokens": tokens}
            for number, requests, tokens in window.buckets
        ]
        for window in (windows.minute, windows.day)
    } | {"running": row[1]}


async def reserve(tx: Transaction, wanted: Reservation) -> Reserved | UsedUp:
    """Raises RecordNotFound for a user who is gone."""
    if not wanted.limits.any:
        await _open(tx, wanted, reserved_ms=None)
        return Reserved()
    windows, running = await _locked(tx, wanted)
    verdict = admit(windows, running, wanted.limits, wanted.tokens, wanted.now_ms)
    if isinstance(verdict, UsedUp):
        return verdict
    windows, reserved = verdict
    kept = (wanted.user, windows.encode(), running + 1)
    if wanted.lease_ms is not None:
        # The user can't go before this is over: their quota's row is locked, and would have to go
        # first.
        await tx.batch([(_OPEN, _opened(wanted, wanted.now_ms)), (_KEEP, kept)])
    elif await _open(tx, wanted, reserved_ms=wanted.now_ms):
        await tx.execute(_KEEP, *kept)
    return reserved


async def _locked(tx: Transaction, wanted: Reservation) -> tuple[Windows, int]:
    row = await tx.fetchrow(_LOCK, wanted.user)
    if row is None:
        try:
            await tx.execute(_FIRST, wanted.user, EMPTY.encode())
        except MissingReference as error:
            raise RecordNotFound("user", wanted.user) from error
        row = await tx.fetchrow(_LOCK, wanted.user)
    if row is None:
        raise RecordNotFound("user", wanted.user)
    return Windows.decode(row[0]), row[1]


async def _open(tx: Transaction, wanted: Reservation, *, reserved_ms: int | None) -> bool:
    """False where the bill is that of a stored response, and that is gone or ended already."""
    if wanted.lease_ms is None:
        counted = (wanted.id, wanted.model, wanted.tokens, reserved_ms)
        return await tx.execute(_COUNT, *counted) == 1
    if await tx.execute(_OPEN, *_opened(wanted, reserved_ms)) != 1:
        raise RecordNotFound("user", wanted.user)
    return True


def _opened(wanted: Reservation, reserved_ms: int | None) -> tuple[object, ...]:
    return (
        wanted.id,
        wanted.user,
        wanted.model,
        wanted.tokens,
        wanted.now_ms,
        reserved_ms,
        wanted.owner,
        wanted.lease_ms,
    )


async def settle(
    tx: Transaction, id: ResponseId, usage: TokenUsage, now_ms: int, model: str | None = None
) -> bool:
    """Once; also where the lease had lapsed, since what a client was told is what counts. `model`
    is which one it was, where that was not known before. False when it is settled, or was
    released."""
    cost = (usage.input, usage.cached, usage.output, usage.reasoning)
    row = await tx.fetchrow(_SETTLE, id, *cost, now_ms, model)
    if row is not None:
        await give_back(tx, [row], used=usage.total)
        return True
    late = await tx.fetchrow(_AMEND, id, *cost, now_ms)
    if late is None:
        return False
    user, reserved_ms = late
    await _change(tx, [(user, reserved_ms, 0, usage.total, 0)])
    return True


async def release(tx: Transaction, id: ResponseId) -> bool:
    """As if it had never been. False when it is settled, or was released."""
    row = await tx.fetchrow(_RELEASE, id)
    if row is None:
        return False
    await give_back(tx, [row], requests=1)
    return True


async def uncount(tx: Transaction, id: ResponseId, reserved_ms: int) -> bool:
    """As `release`, but for the bill, which ends with the response that is stored."""
    row = await tx.fetchrow(_UNCOUNT, id, reserved_ms)
    if row is None:
        return False
    await give_back(tx, [(*row, reserved_ms)], requests=1)
    return True


async def renew(tx: Transaction, ids: Sequence[ResponseId], until_ms: int) -> int:
    return await tx.execute(_RENEW, list(ids), until_ms)


async def lapse(tx: Transaction, now_ms: int, owner: NodeId, *, alone: bool, limit: int) -> int:
    rows = await tx.fetch(_LAPSE, now_ms, LAST if alone else now_ms, owner, limit)
    await give_back(tx, rows)
    return len(rows)


async def give_back(
    tx: Transaction, rows: Iterable[Row], *, used: int = 0, requests: int = 0
) -> None:
    """Bills were closed. `rows` are their users, reserved tokens and the times when they were
    counted; what is not `used` is there again, and so is each request, if it leaves no trace."""
    await _change(tx, [(user, at_ms, -requests, used - held, -1) for user, held, at_ms in rows])


async def _change(
    tx: Transaction, changes: Iterable[tuple[str | None, int | None, int, int, int]]
) -> None:
    """Users, times, and by how much requests, tokens and what runs change. What no limit counted
    has no time, and who was erased no name."""
    by_user: dict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
    for user, at_ms, *rest in changes:
        if user is not None and at_ms is not None:
            requests, tokens, running = rest
            by_user[user].append((at_ms, requests, tokens, running))
    for user, those in sorted(by_user.items()):  # in one order, so that no two wait for each other
        row = await tx.fetchrow(_LOCK, user)
        if row is None:
            continue
        windows, running = Windows.decode(row[0]), row[1]
        for at_ms, requests, tokens, ran in those:
            windows = windows.with_added(at_ms, requests, tokens)
            running += ran
        await tx.execute(_KEEP, user, windows.encode(), max(0, running))
