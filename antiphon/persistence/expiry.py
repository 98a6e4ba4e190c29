"""The unit of work that removes what has outlived its time, some at a time."""

from dataclasses import dataclass

from antiphon.persistence import deletion, document_deletion
from antiphon.persistence.deletion import Removed
from antiphon.persistence.port import Transaction, statement
from antiphon.records import Receipt

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS

_CLAIMS = statement(
    "claims.expire",
    """DELETE FROM idempotency_claims WHERE (user_id, key_hash) IN (
        SELECT user_id, key_hash FROM idempotency_claims WHERE created_ms < $1
        ORDER BY created_ms LIMIT $2)""",
)
_FILES = statement(
    "files.expired",
    """SELECT id FROM files WHERE expires_ms IS NOT NULL AND expires_ms <= $1
        ORDER BY expires_ms LIMIT $2""",
)
_RESPONSES = statement(
    "responses.expired",
    """SELECT id FROM responses WHERE conversation_id IS NULL AND completed_ms < $1
        ORDER BY completed_ms LIMIT $2""",
)
_WITH_EVENTS = statement(
    "responses.with_old_events",
    """SELECT id FROM responses WHERE events_kept = 1 AND completed_ms < $1
        ORDER BY completed_ms LIMIT $2""",
)
_EVENTS = statement("events.expire", "DELETE FROM response_events WHERE response_id = ANY($1)")
_TRACES = statement(
    "traces.expire",
    """DELETE FROM inference_traces WHERE response_id IN (
        SELECT response_id FROM inference_traces WHERE created_ms < $1
        ORDER BY created_ms LIMIT $2)""",
)
_POLICY_EVENTS = statement(
    "policy_events.expire",
    """DELETE FROM policy_events WHERE id IN (
        SELECT id FROM policy_events WHERE created_ms < $1 ORDER BY created_ms LIMIT $2)""",
)
_SUSPENSIONS = statement(
    "users.end_suspensions",
    """UPDATE users SET suspended = NULL, suspended_until_ms = NULL WHERE id IN (
        SELECT id FROM users WHERE suspended_until_ms <= $1
        ORDER BY suspended_until_ms LIMIT $2)""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what is kept, in milliseconds; None is for ever. Texts and counters each have their
    own."""

    claims_ms: int | None = _DAY_MS
    """No client repeats a request after a day; OpenAI forgets keys then, too."""
    events_ms: int | None = 30 * _DAY_MS
    """A stream that ended can be watched again for this long; its response stays."""
    responses_ms: int | None = None
    """Those that ran in no conversation."""
    traces_ms: int | None = 90 * _DAY_MS


async def expire(tx: Transaction, retention: Retention, now_ms: int, limit: int) -> Receipt:
    removed = Removed()
    # They ended by themselves; from now on lists don't show them either.
    await tx.execute(_SUSPENSIONS, now_ms, limit)
    if retention.claims_ms is not None:
        until = now_ms - retention.claims_ms
        await removed.delete(tx, "idempotency_claims", _CLAIMS, until, limit)
    if expired := [row[0] for row in await tx.fetch(_FILES, now_ms, limit)]:
        removed.add(await deletion.delete_files(tx, expired))
    removed.rows += await document_deletion.expire(tx, now_ms, limit)
    if retention.responses_ms is not None:
        rows = await tx.fetch(_RESPONSES, now_ms - retention.responses_ms, limit)
        removed.add(await deletion.alone(tx, [row[0] for row in rows], now_ms))
    if retention.events_ms is not None:
        rows = await tx.fetch(_WITH_EVENTS, now_ms - retention.events_ms, limit)
        if ids := [row[0] for row in rows]:
            await removed.delete(tx, "response_events", _EVENTS, ids)
            await tx.execute(deletion.FORGET_EVENTS, ids)
    if retention.traces_ms is not None:
        until = now_ms - retention.traces_ms
        await removed.delete(tx, "inference_traces", _TRACES, until, limit)
        await removed.delete(tx, "policy_events", _POLICY_EVENTS, until, limit)
    return await deletion.receipt(tx, removed, "expired", now_ms, kept=bool(removed.rows.total()))
