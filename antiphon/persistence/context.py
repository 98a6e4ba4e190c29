"""What a turn sees of what came before: a conversation, or a chain of responses.

Of a conversation, what follows its summary: so that much and no more is read, however long it is.

A chain walks `previous_response_id` to its root. An ancestor that ran in a conversation brings that
conversation up to its own last item, and ends the walk: what came before it is in there. Text of
cancelled, failed and interrupted answers is part of it, since it is what the person saw; such items
are marked incomplete. Deleted ancestors are gone from it.
"""

from antiphon.errors import InvalidRequest, RecordNotFound, ResponseInProgress
from antiphon.ids import ConversationId, ResponseId, UserId
from antiphon.persistence import codec, memories, summaries
from antiphon.persistence.conversations import FIRST, LAST
from antiphon.persistence.port import Transaction, statement
from antiphon.records import Accepted, Item

MOST_ITEMS = 10_000
"""Longer ones are refused rather than cut: reading them would hold up everybody's turns."""
LONGEST_CHAIN = 2_000
"""Responses that a walk may visit."""

# And before that what it began with to say how it is to go: a summary doesn't stand for that.
_CONVERSATION = statement(
    "context.conversation",
    f"""SELECT {codec.ITEM}, i.position AS place FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.home = $1 AND i.position > $2 AND i.position < $3
        UNION ALL SELECT {codec.ITEM}, i.position AS place FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.home = $1 AND i.position <= $2 AND i.position < (SELECT s.position FROM items s
            WHERE s.home = $1 AND (s.role IS NULL OR s.role NOT IN ('system', 'developer'))
            ORDER BY s.position LIMIT 1)
        ORDER BY place LIMIT {MOST_ITEMS + 1}""",
)
_HAS_MEMORY = statement(
    "context.has_memory", "SELECT memory FROM conversations WHERE id = $1 AND user_id = $2"
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
    *,
    whole: bool,
    memory_default: bool,
) -> Accepted:
    """Raises RecordNotFound, ResponseInProgress, InvalidRequest when it is too long."""
    if conversation is not None and previous is not None:
        raise InvalidRequest(
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'.",
            param="previous_response_id",
        )
    if conversation is not None:
        row = await tx.fetchrow(_HAS_MEMORY, conversation, user)
        if row is None:
            raise RecordNotFound("conversation", conversation, "conversation")
        remembering = memory_default if row[0] is None else bool(row[0])
        return await of_conversation(
            tx, user, conversation, LAST, whole=whole, remembering=remembering
        )
    if previous is not None:
        return Accepted(context=await of_chain(tx, user, previous))
    return Accepted(context=())


async def of_conversation(
    tx: Transaction,
    user: UserId,
    conversation: ConversationId,
    until: int,
    *,
    whole: bool,
    remembering: bool,
) -> Accepted:
    """The conversation is that user's. Raises InvalidRequest."""
    latest = None if whole else await summaries.latest(tx, conversation)
    summary, after = (None, FIRST) if latest is None else latest
    rows = await tx.fetch(_CONVERSATION, conversation, after, until)
    if len(rows) > MOST_ITEMS:
        raise InvalidRequest(
            f"The conversation has more than {MOST_ITEMS} items.",
            param="conversation",
            code="conversation_too_long",
        )
    remembered = await memories.shown(tx, user) if remembering else ()
    return Accepted(
        context=tuple(codec.item(row[:-1]) for row in rows),
        summary=summary,
        opening=sum(row[-1] <= after for row in rows),
        memories=remembered,
    )


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
