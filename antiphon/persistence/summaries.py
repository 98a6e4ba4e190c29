"""Units of work on summaries: what stands for a conversation's first items, at most one each."""

from antiphon.context_records import Summary
from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.persistence import conversations
from antiphon.persistence.conversations import ITEM_POSITION
from antiphon.persistence.port import Row, Transaction, statement

# Of one whose last item were gone, nobody could tell where it ends: as if there were none.
_COLUMNS = "s.conversation_id, i.id, s.items, s.tokens, s.text, s.made_by, s.created_ms"
_FROM = "summaries s JOIN items i ON i.home = s.conversation_id AND i.position = s.until_position"
_LATEST = statement(
    "summaries.latest",
    f"SELECT {_COLUMNS}, s.until_position FROM {_FROM} WHERE s.conversation_id = $1",
)
_GET = statement(
    "summaries.get",
    f"""SELECT {_COLUMNS} FROM {_FROM} JOIN conversations c ON c.id = s.conversation_id
        WHERE s.conversation_id = $1 AND c.user_id = $2""",
)
_OF_USER = statement(
    "summaries.of_user",
    f"""SELECT {_COLUMNS} FROM conversations c
        JOIN summaries s ON s.conversation_id = c.id
        JOIN items i ON i.home = s.conversation_id AND i.position = s.until_position
        WHERE c.user_id = $1""",
)
_COVERED = statement(
    "summaries.covered", "SELECT COUNT(*) FROM items WHERE home = $1 AND position <= $2"
)
_KEEP = statement(
    "summaries.keep",
    """INSERT INTO summaries (conversation_id, until_position, items, tokens, text, made_by,
        created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (conversation_id) DO UPDATE SET until_position = excluded.until_position,
        items = excluded.items, tokens = excluded.tokens, text = excluded.text,
        made_by = excluded.made_by, created_ms = excluded.created_ms
        WHERE summaries.until_position < excluded.until_position""",
)


async def latest(tx: Transaction, conversation: ConversationId) -> tuple[Summary, int] | None:
    """With the position of the last item that it covers."""
    row = await tx.fetchrow(_LATEST, conversation)
    return None if row is None else (_summary(row[:-1]), row[-1])


async def get(tx: Transaction, user: UserId, conversation: ConversationId) -> Summary | None:
    row = await tx.fetchrow(_GET, conversation, user)
    return None if row is None else _summary(row)


async def of_user(tx: Transaction, user: UserId) -> dict[ConversationId, Summary]:
    found = map(_summary, await tx.fetch(_OF_USER, user))
    return {summary.conversation: summary for summary in found}


async def add(tx: Transaction, user: UserId, summary: Summary) -> bool:
    """Its conversation is held, so that nothing that it was made of goes until it is there, to go
    along then. What went before that is missed in the number of items."""
    if not await conversations.held(tx, [summary.conversation], user):
        return False
    position = await tx.fetchrow(ITEM_POSITION, summary.conversation, summary.until)
    if position is None:
        return False
    covered = await tx.fetchrow(_COVERED, summary.conversation, position[0])
    if covered is None or covered[0] != summary.items:
        return False
    kept = await tx.execute(
        _KEEP,
        summary.conversation,
        position[0],
        summary.items,
        summary.tokens,
        summary.text,
        summary.made_by,
        summary.created_ms,
    )
    return kept == 1


def _summary(row: Row) -> Summary:
    conversation, until, items, tokens, text, made_by, created_ms = row
    return Summary(
        conversation=ConversationId(conversation),
        until=ItemId(until),
        items=items,
        tokens=tokens,
        text=text,
        made_by=made_by,
        created_ms=created_ms,
    )
