"""What a turn sees of what came before: a conversation, or a chain of responses.

A chain walks `previous_response_id` to its root. An ancestor that ran in a conversation brings that
conversation up to its own last item, and ends the walk: what came before it is in there. Text of
cancelled, failed and interrupted answers is part of it, since it is what the person saw; such items
are marked incomplete. Deleted ancestors are gone from it.
"""

from antiphon.errors import InvalidRequest, RecordNotFound, ResponseInProgress
from antiphon.ids import ConversationId, ResponseId, UserId
from antiphon.persistence import codec
from antiphon.persistence.conversations import EXISTS, LAST
from antiphon.persistence.port import Transaction, statement
from antiphon.records import Item

MOST_ITEMS = 10_000
"""Longer ones are refused rather than cut: reading them would hold up everybody's turns."""
LONGEST_CHAIN = 2_000
"""Responses that a walk may visit."""

_CONVERSATION = statement(
    "context.conversation",
    f"""SELECT {codec.ITEM} FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.home = $1 AND i.position < $2 ORDER BY i.position LIMIT {MOST_ITEMS + 1}""",
)
_CHAIN = statement(
    "context.chain",
    f"""WITH RECURSIVE chain (previous_id, home, until, conversation_id, depth) AS (
            SELECT previous_id, home, last_position, conversation_id, 0
            FROM responses WHERE id = $1 AND user_id = $2
            UNION ALL
            SELECT r.previous_id, r.home, r.last_position, r.conversation_id, c.depth + 1
            FROM chain c JOIN responses r ON r.id = c.previous_id
            WHERE r.user_id = $2 AND c.conversation_id IS NULL AND c.depth < {LONGEST_CHAIN})
        SELECT {codec.ITEM}, c.depth FROM chain c
        JOIN items i ON i.home = c.home AND i.position <= c.until
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        ORDER BY c.depth DESC, i.position LIMIT {MOST_ITEMS + 1}""",
)
_PREVIOUS = statement(
    "context.previous",
    "SELECT completed_ms FROM responses WHERE id = $1 AND user_id = $2",
)


async def before(
    tx: Transaction,
    user: UserId,
    conversation: ConversationId | None,
    previous: ResponseId | None,
) -> tuple[Item, ...]:
    """Raises RecordNotFound, ResponseInProgress, InvalidRequest when it is too long."""
    if conversation is not None and previous is not None:
        raise InvalidRequest(
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'.",
            param="previous_response_id",
        )
    if conversation is not None:
        if await tx.fetchrow(EXISTS, conversation, user) is None:
            raise RecordNotFound("conversation", conversation, "conversation")
        return await of_conversation(tx, conversation, LAST)
    if previous is not None:
        return await of_chain(tx, user, previous)
    return ()


async def of_conversation(
    tx: Transaction, conversation: ConversationId, until: int
) -> tuple[Item, ...]:
    rows = await tx.fetch(_CONVERSATION, conversation, until)
    if len(rows) > MOST_ITEMS:
        raise InvalidRequest(
            f"The conversation has more than {MOST_ITEMS} items.",
            param="conversation",
            code="conversation_too_long",
        )
    return codec.items(rows)


async def of_chain(tx: Transaction, user: UserId, previous: ResponseId) -> tuple[Item, ...]:
    row = await tx.fetchrow(_PREVIOUS, previous, user)
    if row is None:
        raise RecordNotFound("response", previous, "previous_response_id")
    if row[0] is None:
        raise ResponseInProgress(previous)
    rows = await tx.fetch(_CHAIN, previous, user)
    if len(rows) > MOST_ITEMS or (rows and rows[0][-1] >= LONGEST_CHAIN):
        raise InvalidRequest(
            f"The chain of previous responses has more than {MOST_ITEMS} items or "
            f"{LONGEST_CHAIN} responses.",
            param="previous_response_id",
            code="conversation_too_long",
        )
    return tuple(codec.item(row[:-1]) for row in rows)
