"""Units of work on leases: kept by who works, taken over from who is gone."""

import msgspec
import structlog

from antiphon.ids import NodeId
from antiphon.persistence import codec
from antiphon.persistence.conversations import LAST
from antiphon.persistence.port import Transaction, statement
from antiphon.persistence.turns import EVENTS, event_batches
from antiphon.records import Orphan

log = structlog.get_logger(__name__)

ORPHAN_LEASE_MS = 60_000
"""Who took an orphan has this long to finish it; then it is offered again."""

_RENEW = statement(
    "responses.renew",
    """UPDATE responses SET lease_ms = $2
        WHERE owner = $1 AND completed_ms IS NULL AND orphaned_ms IS NULL
        RETURNING id, conversation_id""",
)
_RENEW_LOCK = statement(
    "conversations.renew",
    "UPDATE conversations SET lock_until_ms = $3 WHERE id = $1 AND lock_response = $2",
)
_TAKE_OVER = statement(
    "responses.take_over",
    """UPDATE responses SET owner = $1, lease_ms = $3, orphaned_ms = $2
        WHERE id IN (SELECT id FROM responses WHERE completed_ms IS NULL AND lease_ms <= $5
            AND (owner <> $1 OR (orphaned_ms IS NOT NULL AND lease_ms <= $2))
            ORDER BY lease_ms LIMIT $4)
        AND completed_ms IS NULL AND lease_ms <= $5
        AND (owner <> $1 OR (orphaned_ms IS NOT NULL AND lease_ms <= $2))
        RETURNING id, conversation_id""",
)
_ORPHAN = statement(
    "responses.orphan",
    f"""SELECT {codec.RESPONSE} FROM responses r JOIN response_bodies b ON b.response_id = r.id
        WHERE r.id = $1""",
)


async def renew(tx: Transaction, owner: NodeId, until_ms: int) -> int:
    held = await tx.fetch(_RENEW, owner, until_ms)
    await _extend_locks(tx, [(row[0], row[1]) for row in held], until_ms)
    return len(held)


async def orphans(
    tx: Transaction, now_ms: int, owner: NodeId, *, alone: bool, limit: int
) -> tuple[Orphan, ...]:
    """Responses that this very owner runs aren't orphans, however late their renewal: a machine
    that slept finds all its leases passed. One that can't be read costs only itself, and holds its
    conversation no longer than its lease."""
    until_ms = now_ms + ORPHAN_LEASE_MS
    passed_ms = LAST if alone else now_ms
    taken = await tx.fetch(_TAKE_OVER, owner, now_ms, until_ms, limit, passed_ms)
    found, held = [], []
    for id, conversation in taken:
        row = await tx.fetchrow(_ORPHAN, id)
        events = await tx.fetch(EVENTS, id, -1)
        try:
            if row is not None:
                found.append(Orphan(response=codec.response(row), events=event_batches(events)))
                held.append((id, conversation))
        except (msgspec.DecodeError, ValueError) as error:
            log.error("orphan_unreadable", response_id=id, reason=str(error))
    await _extend_locks(tx, held, until_ms)
    return tuple(sorted(found, key=lambda each: (each.response.created_ms, each.response.id)))


async def _extend_locks(tx: Transaction, held: list[tuple[str, str | None]], until_ms: int) -> None:
    locks = [(conversation, id, until_ms) for id, conversation in held if conversation is not None]
    if locks:
        await tx.executemany(_RENEW_LOCK, sorted(locks))
