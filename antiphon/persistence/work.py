"""Units of work on what background workers have to do: a mark on each conversation in which turns
have ended. It isn't a queue of jobs: what is to be done follows from the conversation itself, and a
mark goes only once that was done."""

from antiphon.ids import ItemId, NodeId
from antiphon.persistence import codec, summaries
from antiphon.persistence.port import Row, Transaction, Write, statement
from antiphon.records import PendingWork

# What ends while it is held is younger than what it is held for.
_MARK = statement(
    "work.mark",
    """INSERT INTO context_work (conversation_id, mark, attempts, due_ms) VALUES ($1, 1, 0, $2)
        ON CONFLICT (conversation_id) DO UPDATE SET mark = context_work.mark + 1,
        due_ms = CASE WHEN context_work.due_ms IS NULL OR context_work.owner IS NOT NULL
            THEN excluded.due_ms ELSE context_work.due_ms END""",
)
_DUE = statement(
    "work.due",
    """SELECT conversation_id FROM context_work
        WHERE due_ms <= $1 AND (owner IS NULL OR lease_ms <= $1)
        ORDER BY due_ms, conversation_id LIMIT $2 FOR UPDATE SKIP LOCKED""",
)
_TAKE = statement(
    "work.take",
    """UPDATE context_work SET owner = $2, lease_ms = $3 WHERE conversation_id = ANY($1)
        RETURNING conversation_id, mark, attempts, (SELECT MAX(i.position) FROM items i
            WHERE i.home = conversation_id AND i.position <= remembered_position)""",
)
_CONVERSATIONS = statement(
    "work.conversations", f"SELECT {codec.CONVERSATION} FROM conversations WHERE id = ANY($1)"
)
_REMEMBERED = statement("work.remembered", "SELECT id FROM items WHERE home = $1 AND position = $2")
_RENEW = statement(
    "work.renew",
    "UPDATE context_work SET lease_ms = $3 WHERE conversation_id = $1 AND owner = $2",
)
_FINISH = statement(
    "work.finish",
    """UPDATE context_work SET owner = NULL, lease_ms = NULL,
        attempts = CASE WHEN CAST($4 AS BIGINT) IS NULL THEN 0 ELSE attempts + 1 END,
        due_ms = COALESCE(CAST($4 AS BIGINT), CASE WHEN mark > $3 THEN due_ms END),
        remembered_position = COALESCE((SELECT i.position FROM items i
            WHERE i.home = conversation_id AND i.id = $5), remembered_position)
        WHERE conversation_id = $1 AND owner = $2""",
)


def marked(conversation: str, now_ms: int) -> Write:
    """To be written with what ends there."""
    return _MARK, (conversation, now_ms)


async def take(
    tx: Transaction, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int
) -> tuple[PendingWork, ...]:
    ids = [row[0] for row in await tx.fetch(_DUE, now_ms, limit)]
    if not ids:
        return ()
    taken = {row[0]: row for row in await tx.fetch(_TAKE, ids, owner, lease_ms)}
    conversations = {row[0]: row for row in await tx.fetch(_CONVERSATIONS, ids)}
    return tuple([await _pending(tx, taken[id], conversations[id]) for id in ids])


async def _pending(tx: Transaction, taken: Row, conversation: Row) -> PendingWork:
    id, mark, attempts, position = taken
    remembered = None
    if position is not None:
        row = await tx.fetchrow(_REMEMBERED, id, position)
        remembered = None if row is None else ItemId(row[0])
    found = await summaries.latest(tx, id)
    return PendingWork(
        conversation=codec.conversation(conversation),
        mark=mark,
        attempts=attempts,
        summary=None if found is None else found[0],
        remembered=remembered,
    )


async def renew(tx: Transaction, work: PendingWork, owner: NodeId, lease_ms: int) -> bool:
    return await tx.execute(_RENEW, work.conversation.id, owner, lease_ms) == 1


async def finish(
    tx: Transaction,
    work: PendingWork,
    owner: NodeId,
    remembered: ItemId | None,
    again_ms: int | None,
) -> bool:
    held = (work.conversation.id, owner, work.mark)
    return await tx.execute(_FINISH, *held, again_ms, remembered) == 1
