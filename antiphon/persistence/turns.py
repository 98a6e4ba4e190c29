"""Units of work of a turn: accepted, begun, logged, finished. Only its owner does
so, and only until it has ended."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NoReturn

from antiphon.errors import ConversationLocked, IdempotencyMismatch, RecordNotFound
from antiphon.ids import ModelName, NodeId, ResponseId, UserId
from antiphon.persistence import codec, context, deletion, itemlog, quotas, work
from antiphon.persistence.conversations import EXISTS, UNLOCK
from antiphon.persistence.port import MissingReference, Transaction, Write, statement
from antiphon.records import (
    Accepted,
    Claim,
    EventBatch,
    FinalState,
    NewTurn,
    Repeated,
)

ROOM_FOR_OUTPUT = 1024
"""Positions kept free for a turn's own output, so that it stands after its input even when it ends
after the lease was lost and the next turn has begun."""
RETRY_WINDOW_MS = 10 * 60_000
"""An SDK has given up sending a request again by then."""
LAST_RETRY_MS = 60_000
"""An SDK that loses an answer asks again within seconds of its end. Who says the same later says it
once more: a second "yes" in a conversation is no repetition of the first."""

_CLAIM = statement(
    "claims.insert",
    """INSERT INTO idempotency_claims (user_id, key_hash, fingerprint, response_id, created_ms)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id, key_hash) DO NOTHING
        RETURNING response_id""",
)
_CLAIMED = statement(
    "claims.get",
    """SELECT fingerprint, response_id FROM idempotency_claims
        WHERE user_id = $1 AND key_hash = $2""",
)
_RETRIED = statement(
    "responses.retried",
    """SELECT id FROM responses WHERE user_id = $1 AND retry_fingerprint = $2 AND created_ms > $3
        AND (completed_ms IS NULL OR completed_ms > $4) ORDER BY created_ms DESC LIMIT 1""",
)
_LOCK = statement(
    "conversations.lock",
    f"""UPDATE conversations SET lock_response = $3, lock_until_ms = $4,
        next_position = next_position + $5 + {ROOM_FOR_OUTPUT},
        updated_ms = CASE WHEN updated_ms < $6 THEN $6 ELSE updated_ms END
        WHERE id = $1 AND user_id = $2 AND (lock_response IS NULL OR lock_until_ms <= $6)
        RETURNING next_position, memory""",
)
_INSERT_RESPONSE = statement(
    "responses.insert",
    """INSERT INTO responses (id, user_id, kind, model, status, created_ms, conversation_id,
        previous_id, background, streamed, metadata, home, first_position, input_count,
        last_position, owner, lease_ms, request_id, retry_fingerprint, events_kept,
        cancel_requested)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
        $19, 1, 0)""",
)
_INSERT_BODY = statement(
    "response_bodies.insert", "INSERT INTO response_bodies (response_id, request) VALUES ($1, $2)"
)
_RESERVE = statement(
    "usage.reserve",
    """INSERT INTO usage_entries (response_id, user_id, model, reserved_tokens, created_ms)
        VALUES ($1, $2, $3, $4, $5)""",
)
_START = statement(
    "responses.start",
    """UPDATE responses SET status = 'in_progress', model = COALESCE($3, model)
        WHERE id = $1 AND owner = $2 AND completed_ms IS NULL""",
)
_OWNED = statement(
    "responses.owned",
    """SELECT id FROM responses WHERE id = ANY($1) AND owner = $2 AND completed_ms IS NULL
        ORDER BY id FOR SHARE""",
)
_LOG = statement(
    "events.insert",
    """INSERT INTO response_events (response_id, first, last, body) VALUES ($1, $2, $3, $4)
        ON CONFLICT (response_id, first) DO NOTHING""",
)
_FINISH = statement(
    "responses.finish",
    """UPDATE responses SET status = $3, completed_ms = $4, incomplete_reason = $5,
        input_tokens = $6, cached_tokens = $7, output_tokens = $8, reasoning_tokens = $9,
        orphaned_ms = NULL, last_position = first_position + input_count + $10 - 1,
        model = COALESCE($11, model)
        WHERE id = $1 AND owner = $2 AND completed_ms IS NULL
        RETURNING user_id, home, first_position + input_count, conversation_id, model""",
)
_COUNT = statement(
    "items.count_tokens",
    "UPDATE items SET tokens = $3 WHERE home = $1 AND id = $2 AND tokens IS NULL",
)
_FINISHED_BY = statement(
    "responses.finished_by", "SELECT 1 FROM responses WHERE id = $1 AND owner = $2"
)
_KEEP_ERROR = statement(
    "response_bodies.error", "UPDATE response_bodies SET error = $2 WHERE response_id = $1"
)
_KEEP_REQUEST = statement(
    "response_bodies.request", "UPDATE response_bodies SET request = $2 WHERE response_id = $1"
)
_TRACE = statement(
    "traces.insert",
    """INSERT INTO inference_traces (response_id, request_id, model, prompt_version, status,
        finish, queued_s, first_token_s, total_s, input_tokens, output_tokens, created_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        ON CONFLICT (response_id) DO NOTHING""",
)
EVENTS = statement(
    "events.after",
    """SELECT first, last, body FROM response_events
        WHERE response_id = $1 AND last > $2 ORDER BY first""",
)


async def accept(tx: Transaction, turn: NewTurn) -> Accepted | Repeated:
    """Raises what the contract says, and ResponseInProgress for a previous response that hasn't
    ended."""
    response = turn.response
    while (repeated := await _repeated(tx, turn)) is not None:
        # An SDK asks again when it got no answer. What was cancelled then was cancelled because
        # its client had gone, and half an answer is not what that came back for.
        if not (turn.is_retry and await deletion.unanswered(tx, repeated)):
            return Repeated(response=repeated)
    home: str = response.id
    first = 0
    if response.conversation is not None and response.previous is None:
        home = response.conversation
        row = await tx.fetchrow(
            _LOCK,
            response.conversation,
            response.user,
            response.id,
            turn.lease_ms,
            len(turn.input),
            response.created_ms,
        )
        if row is None:
            await _refuse_lock(tx, turn)
        first = row[0] - len(turn.input) - ROOM_FOR_OUTPUT
        before = await context.of_conversation(
            tx,
            response.user,
            response.conversation,
            first,
            whole=turn.whole,
            remembering=turn.memory_default if row[1] is None else bool(row[1]),
        )
    else:
        before = await context.before(
            tx,
            response.user,
            response.conversation,
            response.previous,
            whole=turn.whole,
            memory_default=turn.memory_default,
        )
    try:
        await itemlog.write(tx, _accepted(turn, home, first), "input")
    except MissingReference as error:
        raise RecordNotFound("user", response.user) from error
    return before


async def _repeated(tx: Transaction, turn: NewTurn) -> ResponseId | None:
    response, now_ms = turn.response, turn.response.created_ms
    if turn.claim is not None:
        key = _key_hash(turn.claim)
        while (
            await tx.fetchrow(
                _CLAIM, response.user, key, turn.claim.fingerprint, response.id, now_ms
            )
            is None
        ):
            # On PostgreSQL one that was in the way may be withdrawn before it is looked at.
            if (earlier := await claim(tx, response.user, turn.claim)) is not None:
                return earlier
        return None
    if turn.is_retry and turn.retry_fingerprint is not None:
        row = await tx.fetchrow(
            _RETRIED,
            response.user,
            turn.retry_fingerprint,
            now_ms - RETRY_WINDOW_MS,
            now_ms - LAST_RETRY_MS,
        )
        return None if row is None else ResponseId(row[0])
    return None


async def claim(tx: Transaction, user: UserId, claim: Claim) -> ResponseId | None:
    """The response that this claim was accepted as. Raises IdempotencyMismatch."""
    row = await tx.fetchrow(_CLAIMED, user, _key_hash(claim))
    if row is None:
        return None
    if row[0] != claim.fingerprint:
        raise IdempotencyMismatch(claim.key)
    return ResponseId(row[1])


def _key_hash(claim: Claim) -> str:
    """Keys are texts of the client's, of any length: only their hash is kept."""
    return sha256(claim.key.encode("utf-8", "surrogatepass")).hexdigest()


async def _refuse_lock(tx: Transaction, turn: NewTurn) -> NoReturn:
    conversation = turn.response.conversation
    if conversation is None or await tx.fetchrow(EXISTS, conversation, turn.response.user) is None:
        raise RecordNotFound("conversation", str(conversation), "conversation")
    raise ConversationLocked(conversation)


def _accepted(turn: NewTurn, home: str, first: int) -> list[Write]:
    response = turn.response
    row = (
        response.id,
        response.user,
        response.kind.value,
        response.model,
        response.status.value,
        response.created_ms,
        response.conversation,
        response.previous,
        int(response.background),
        int(response.streamed),
        codec.to_json(response.metadata),
        home,
        first,
        len(turn.input),
        first + len(turn.input) - 1,
        turn.owner,
        turn.lease_ms,
        turn.request,
        turn.retry_fingerprint,
    )
    reservation = (
        response.id,
        response.user,
        response.model,
        turn.reserved_tokens,
        response.created_ms,
    )
    items = itemlog.writes(
        turn.input,
        user=response.user,
        home=home,
        first=first,
        response=response.id,
        direction=itemlog.INPUT,
    )
    return [
        (_INSERT_RESPONSE, row),
        (_INSERT_BODY, (response.id, codec.to_json(response.request))),
        (_RESERVE, reservation),
        *items,
    ]


async def start(
    tx: Transaction, id: ResponseId, owner: NodeId, model: ModelName | None = None
) -> bool:
    return await tx.execute(_START, id, owner, model) == 1


async def append_events(
    tx: Transaction, owner: NodeId, batches: Sequence[tuple[ResponseId, EventBatch]]
) -> frozenset[ResponseId]:
    wanted = {response for response, _ in batches}
    if not wanted:
        return frozenset()
    rows = await tx.fetch(_OWNED, sorted(wanted), owner)
    owned = {ResponseId(row[0]) for row in rows}
    await tx.executemany(
        _LOG,
        [
            (response, batch.first, batch.last, batch.body)
            for response, batch in batches
            if response in owned
        ],
    )
    return frozenset(wanted - owned)


async def finish(tx: Transaction, final: FinalState) -> bool:
    if not final.status.is_final:
        raise ValueError(f"{final.status} ends nothing")
    usage = (
        final.usage.input,
        final.usage.cached,
        final.usage.output,
        final.usage.reasoning,
    )
    row = await tx.fetchrow(
        _FINISH,
        final.response,
        final.owner,
        final.status.value,
        final.completed_ms,
        final.incomplete_reason,
        *usage,
        len(final.output),
        final.model,
    )
    if row is None:
        # Final already by this owner, or lost to another one.
        return await tx.fetchrow(_FINISHED_BY, final.response, final.owner) is not None
    user, home, first, conversation, model = row
    if len(final.output) > ROOM_FOR_OUTPUT:
        raise ValueError(f"a response may have {ROOM_FOR_OUTPUT} output items")
    batch = itemlog.writes(
        final.output,
        user=user,
        home=home,
        first=first,
        response=final.response,
        direction=itemlog.OUTPUT,
    )
    if final.error is not None:
        batch.append((_KEEP_ERROR, (final.response, codec.error_text(final.error))))
    if final.request is not None:
        batch.append((_KEEP_REQUEST, (final.response, codec.to_json(final.request))))
    if final.events is not None:
        events = final.events
        batch.append((_LOG, (final.response, events.first, events.last, events.body)))
    if final.trace is not None:
        batch.append((_TRACE, _trace(final, model)))
    if conversation is not None:
        batch.append((UNLOCK, (conversation, final.response, final.completed_ms)))
        batch.append(work.marked(conversation, final.completed_ms))
    await quotas.settle(tx, final.response, final.usage, final.completed_ms, model)
    await itemlog.write(tx, batch, "output")
    if final.counts:  # some may be of the output, so not in the same batch
        counts = sorted((home, id, tokens) for id, tokens in final.counts.items())
        await tx.executemany(_COUNT, counts)
    return True


def _trace(final: FinalState, model: str) -> tuple[object, ...]:
    trace = final.trace
    assert trace is not None
    return (
        final.response,
        trace.request,
        model,
        trace.prompt_version,
        final.status.value,
        trace.finish,
        trace.queued_s,
        trace.first_token_s,
        trace.total_s,
        final.usage.input,
        final.usage.output,
        final.completed_ms,
    )


def event_batches(rows: Sequence[Sequence[object]]) -> tuple[EventBatch, ...]:
    return tuple(
        EventBatch(first=first, last=last, body=bytes(body))  # type: ignore[arg-type, call-overload]
        for first, last, body in rows
    )
