"""Units of work on responses that exist: read, list, annotate."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from antiphon.errors import UnknownCursor
from antiphon.ids import ConversationId, ModelName, NodeId, ResponseId, UserId
from antiphon.persistence import codec
from antiphon.persistence.conversations import FIRST, LAST
from antiphon.persistence.port import Row, Statement, Transaction, statement
from antiphon.persistence.turns import EVENTS, event_batches
from antiphon.records import EventBatch, Feedback, Item, Page, Response, ResponseKind, UsageEntry

MOST_PAIRS = 16
"""Metadata pairs that a record may have, and so a filter."""

_FROM = "FROM responses r JOIN response_bodies b ON b.response_id = r.id"
_GET = statement(
    "responses.get", f"SELECT {codec.RESPONSE} {_FROM} WHERE r.id = $1 AND r.user_id = $2"
)
_EXISTS = statement("responses.exists", "SELECT 1 FROM responses WHERE id = $1 AND user_id = $2")
_CURSOR = statement(
    "responses.cursor", "SELECT created_ms, id FROM responses WHERE id = $1 AND user_id = $2"
)
_OUTPUT = statement(
    "items.output",
    f"""SELECT r.id, {codec.ITEM} FROM responses r
        JOIN items i ON i.home = r.home AND i.position >= r.first_position
            AND i.position <= r.last_position
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE r.id = ANY($1) AND i.response_id = r.id AND i.direction = 'out'
        ORDER BY r.id, i.position""",
)
_INPUT = {
    newest_first: statement(
        f"items.input_{'newest' if newest_first else 'oldest'}_first",
        f"""SELECT {codec.ITEM} FROM responses r
            JOIN items i ON i.home = r.home AND i.position >= r.first_position
                AND i.position < r.first_position + r.input_count
            JOIN item_bodies b ON b.home = i.home AND b.position = i.position
            WHERE r.id = $1 AND r.user_id = $2 AND i.response_id = r.id AND i.direction = 'in'
                AND i.position {"<" if newest_first else ">"} $3
            ORDER BY i.position {"DESC" if newest_first else "ASC"} LIMIT $4""",
    )
    for newest_first in (False, True)
}
_INPUT_POSITION = statement(
    "items.input_position",
    """SELECT i.position FROM responses r JOIN items i ON i.home = r.home
        WHERE r.id = $1 AND r.user_id = $2 AND i.id = $3 AND i.response_id = r.id
            AND i.direction = 'in'""",
)
_SET_METADATA = statement(
    "responses.set_metadata",
    "UPDATE responses SET metadata = $3 WHERE id = $1 AND user_id = $2",
)
_REQUEST_CANCEL = statement(
    "responses.request_cancel",
    """UPDATE responses SET cancel_requested = 1
        WHERE id = $1 AND user_id = $2 AND completed_ms IS NULL""",
)
_CANCEL_REQUESTS = statement(
    "responses.cancel_requests",
    """SELECT id FROM responses
        WHERE owner = $1 AND completed_ms IS NULL AND cancel_requested = 1""",
)
_SET_FEEDBACK = statement(
    "feedback.set",
    """INSERT INTO feedback (response_id, rating, reason, created_ms) VALUES ($1, $2, $3, $4)
        ON CONFLICT (response_id) DO UPDATE SET rating = excluded.rating,
        reason = excluded.reason, created_ms = excluded.created_ms""",
)
_FEEDBACK = statement(
    "feedback.of",
    "SELECT response_id, rating, reason, created_ms FROM feedback WHERE response_id = ANY($1)",
)
_USAGE = statement(
    "usage.list",
    """SELECT response_id, user_id, model, reserved_tokens, created_ms, settled_ms, input_tokens,
        cached_tokens, output_tokens, reasoning_tokens FROM usage_entries
        WHERE user_id = $1 AND created_ms >= $2 ORDER BY created_ms, response_id""",
)


def _list(newest_first: bool, in_conversation: bool, by_model: bool, pairs: int) -> Statement:
    """The list's statement for these filters. Each pair is searched as the text that it is in
    stored metadata; `replace` minds the case on both databases, LIKE doesn't."""
    order = "DESC" if newest_first else "ASC"
    filters = ["r.conversation_id = $6"] if in_conversation else []
    if by_model:
        filters.append(f"r.model = ${6 + len(filters)}")
    start = 6 + len(filters)
    filters += [
        f"replace(r.metadata, ${start + index}, '') <> r.metadata" for index in range(pairs)
    ]
    name = ["responses.list", "newest" if newest_first else "oldest"]
    name += ["conversation"] * in_conversation + ["model"] * by_model
    name += [f"metadata{pairs}"] * bool(pairs)
    return statement(
        "_".join(name),
        f"""SELECT {codec.RESPONSE} {_FROM}
            WHERE r.user_id = $1 AND r.kind = $2
            AND (r.created_ms, r.id) {"<" if newest_first else ">"} ($3, $4)
            {" ".join(f"AND {each}" for each in filters)}
            ORDER BY r.created_ms {order}, r.id {order} LIMIT $5""",
    )


_LISTS = {
    shape: _list(*shape)
    for shape in (
        (newest_first, in_conversation, by_model, pairs)
        for newest_first in (False, True)
        for in_conversation in (False, True)
        for by_model in (False, True)
        for pairs in range(MOST_PAIRS + 1)
    )
}


async def get(tx: Transaction, user: UserId, id: ResponseId) -> Response | None:
    row = await tx.fetchrow(_GET, id, user)
    return None if row is None else (await _whole(tx, [row]))[0]


async def listed(
    tx: Transaction,
    user: UserId,
    page: Page,
    kind: ResponseKind,
    conversation: ConversationId | None,
    model: ModelName | None,
    metadata: dict[str, str] | None,
) -> tuple[Response, ...]:
    start: Sequence[object] = (LAST if page.newest_first else FIRST, "")
    if page.after is not None:
        cursor = await tx.fetchrow(_CURSOR, page.after, user)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor
    pairs = [codec.metadata_pair(*pair) for pair in sorted((metadata or {}).items())]
    if len(pairs) > MOST_PAIRS:
        return ()  # no record has as many
    filters = [each for each in (conversation, model) if each is not None] + pairs
    sql = _LISTS[page.newest_first, conversation is not None, model is not None, len(pairs)]
    rows = await tx.fetch(sql, user, kind.value, start[0], start[1], max(page.limit, 0), *filters)
    return await _whole(tx, rows)


async def _whole(tx: Transaction, rows: Sequence[Row]) -> tuple[Response, ...]:
    """With what was answered, and what was thought of it."""
    outputs: dict[str, list[Item]] = defaultdict(list)
    rated: dict[str, Feedback] = {}
    if rows:
        ids = [row[0] for row in rows]
        for id, *item in await tx.fetch(_OUTPUT, ids):
            outputs[id].append(codec.item(item))
        rated = {row[0]: codec.feedback(row) for row in await tx.fetch(_FEEDBACK, ids)}
    return tuple(
        replace(codec.response(row, tuple(outputs[row[0]])), feedback=rated.get(row[0]))
        for row in rows
    )


async def events(
    tx: Transaction, user: UserId, id: ResponseId, after: int
) -> tuple[EventBatch, ...]:
    if await tx.fetchrow(_EXISTS, id, user) is None:
        return ()
    return event_batches(await tx.fetch(EVENTS, id, min(after, LAST)))


async def input_items(
    tx: Transaction, user: UserId, id: ResponseId, page: Page
) -> tuple[Item, ...] | None:
    if await tx.fetchrow(_EXISTS, id, user) is None:
        return None
    start = LAST if page.newest_first else FIRST
    if page.after is not None:
        cursor = await tx.fetchrow(_INPUT_POSITION, id, user, page.after)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor[0]
    rows = await tx.fetch(_INPUT[page.newest_first], id, user, start, max(page.limit, 0))
    return codec.items(rows)


async def set_metadata(
    tx: Transaction, user: UserId, id: ResponseId, metadata: dict[str, str]
) -> Response | None:
    if await tx.execute(_SET_METADATA, id, user, codec.to_json(metadata)) == 0:
        return None
    return await get(tx, user, id)


async def request_cancel(tx: Transaction, user: UserId, id: ResponseId) -> Response | None:
    await tx.execute(_REQUEST_CANCEL, id, user)
    return await get(tx, user, id)


async def cancel_requests(tx: Transaction, owner: NodeId) -> frozenset[ResponseId]:
    return frozenset(ResponseId(row[0]) for row in await tx.fetch(_CANCEL_REQUESTS, owner))


async def set_feedback(tx: Transaction, user: UserId, feedback: Feedback) -> bool:
    if await tx.fetchrow(_EXISTS, feedback.response, user) is None:
        return False
    await tx.execute(
        _SET_FEEDBACK,
        feedback.response,
        feedback.rating.value,
        feedback.reason,
        feedback.created_ms,
    )
    return True


async def usage(tx: Transaction, user: UserId, since_ms: int) -> tuple[UsageEntry, ...]:
    return tuple(map(codec.usage_entry, await tx.fetch(_USAGE, user, since_ms)))
