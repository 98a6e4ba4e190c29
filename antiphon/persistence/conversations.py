"""Units of work on conversations and their items."""

from collections.abc import Sequence

from antiphon.errors import ConversationLocked, UnknownCursor
from antiphon.ids import ConversationId, ItemId, UserId
from antiphon.persistence import codec, itemlog
from antiphon.persistence.port import Transaction, statement
from antiphon.records import Conversation, Item, Page

_INSERT = statement(
    "conversations.insert",
    """INSERT INTO conversations (id, user_id, created_ms, updated_ms, title, metadata,
        archived_ms, title_folded, next_position, memory, title_made)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)""",
)
_GET = statement(
    "conversations.get",
    f"SELECT {codec.CONVERSATION} FROM conversations WHERE id = $1 AND user_id = $2",
)
EXISTS = statement(
    "conversations.exists", "SELECT 1 FROM conversations WHERE id = $1 AND user_id = $2"
)
CURSOR = statement(
    "conversations.cursor",
    "SELECT updated_ms, id FROM conversations WHERE id = $1 AND user_id = $2",
)
_LISTS = {
    (archived, newest_first, searched): statement(
        f"conversations.{'archived' if archived else 'open'}"
        f"{'' if newest_first else '_oldest_first'}{'_search' if searched else ''}",
        f"""SELECT {codec.CONVERSATION} FROM conversations
            WHERE user_id = $1 AND archived_ms IS {"NOT NULL" if archived else "NULL"}
            AND (updated_ms, id) {"<" if newest_first else ">"} ($2, $3)
            {"AND title_folded LIKE $5 ESCAPE '" + chr(92) + "'" if searched else ""}
            ORDER BY updated_ms {"DESC" if newest_first else "ASC"},
                id {"DESC" if newest_first else "ASC"} LIMIT $4""",
    )
    for archived in (False, True)
    for newest_first in (False, True)
    for searched in (False, True)
}
_UPDATE = statement(
    "conversations.update",
    f"""UPDATE conversations SET title = $3, title_folded = $4, metadata = $5, archived_ms = $6,
        updated_ms = $7, memory = $8, title_made = CASE WHEN title = $3 THEN title_made END
        WHERE id = $1 AND user_id = $2
        RETURNING {codec.CONVERSATION}""",
)
_GIVE_TITLE = statement(
    "conversations.give_title",
    """UPDATE conversations SET title = $3, title_folded = $4, title_made = 1
        WHERE id = $1 AND user_id = $2 AND title IS NULL""",
)
_HOW_MANY = statement(
    "items.how_many", "SELECT COUNT(*) FROM items WHERE home = $1 AND id = ANY($2)"
)
_HOLD = statement(
    "conversations.hold",
    """SELECT id FROM conversations WHERE id = ANY($1) AND user_id = $2
        ORDER BY id FOR KEY SHARE""",
)
HOLD_ALONE = statement(
    "conversations.hold_alone", "SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE"
)
UNLOCK = statement(
    "conversations.unlock",
    """UPDATE conversations SET
        updated_ms = CASE WHEN updated_ms < $3 THEN $3 ELSE updated_ms END,
        lock_until_ms = CASE WHEN lock_response = $2 THEN NULL ELSE lock_until_ms END,
        lock_response = CASE WHEN lock_response = $2 THEN NULL ELSE lock_response END
        WHERE id = $1""",
)
LOCK_STATE = statement(
    "conversations.lock_state",
    """SELECT lock_response, lock_until_ms FROM conversations
        WHERE id = $1 AND user_id = $2 FOR UPDATE""",
)
_APPEND = statement(
    "conversations.append",
    """UPDATE conversations SET next_position = next_position + $2,
        updated_ms = CASE WHEN updated_ms < $3 THEN $3 ELSE updated_ms END
        WHERE id = $1 RETURNING next_position""",
)
_ITEMS = {
    newest_first: statement(
        f"items.{'newest' if newest_first else 'oldest'}_first",
        f"""SELECT {codec.ITEM} FROM items i
            JOIN item_bodies b ON b.home = i.home AND b.position = i.position
            WHERE i.home = $1 AND i.position {"<" if newest_first else ">"} $2
            ORDER BY i.position {"DESC" if newest_first else "ASC"} LIMIT $3""",
    )
    for newest_first in (False, True)
}
ITEM_POSITION = statement(
    "items.position", "SELECT position FROM items WHERE home = $1 AND id = $2"
)
_ITEM = statement(
    "items.get",
    f"""SELECT {codec.ITEM} FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.home = $1 AND i.id = $2""",
)
_FIND_ITEMS = statement(
    "items.find",
    f"""SELECT {codec.ITEM} FROM items i
        JOIN item_bodies b ON b.home = i.home AND b.position = i.position
        WHERE i.id = ANY($1) AND (
            EXISTS (SELECT 1 FROM conversations c WHERE c.id = i.home AND c.user_id = $2)
            OR EXISTS (SELECT 1 FROM responses r WHERE r.id = i.home AND r.user_id = $2))""",
)

LAST = (1 << 63) - 1
"""After every position and every time."""
FIRST = -1
"""Before them all."""


async def create(tx: Transaction, conversation: Conversation, items: Sequence[Item]) -> None:
    await tx.execute(
        _INSERT,
        conversation.id,
        conversation.user,
        conversation.created_ms,
        conversation.updated_ms,
        conversation.title,
        codec.to_json(conversation.metadata),
        conversation.archived_ms,
        codec.folded(conversation.title),
        len(items),
        _flag(conversation.memory),
        1 if conversation.title_made else None,
    )
    batch = itemlog.writes(items, user=conversation.user, home=conversation.id, first=0)
    await itemlog.write(tx, batch, "items")


async def get(tx: Transaction, user: UserId, id: ConversationId) -> Conversation | None:
    row = await tx.fetchrow(_GET, id, user)
    return None if row is None else codec.conversation(row)


async def listed(
    tx: Transaction, user: UserId, page: Page, search: str | None, archived: bool
) -> tuple[Conversation, ...]:
    start: Sequence[object] = (LAST if page.newest_first else FIRST, "")
    if page.after is not None:
        cursor = await tx.fetchrow(CURSOR, page.after, user)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor
    sql = _LISTS[archived, page.newest_first, bool(search)]
    pattern = (codec.like_part(search),) if search else ()
    rows = await tx.fetch(sql, user, start[0], start[1], max(page.limit, 0), *pattern)
    return tuple(map(codec.conversation, rows))


async def update(tx: Transaction, conversation: Conversation) -> Conversation | None:
    row = await tx.fetchrow(
        _UPDATE,
        conversation.id,
        conversation.user,
        conversation.title,
        codec.folded(conversation.title),
        codec.to_json(conversation.metadata),
        conversation.archived_ms,
        conversation.updated_ms,
        _flag(conversation.memory),
    )
    return None if row is None else codec.conversation(row)


async def give_title(
    tx: Transaction, user: UserId, id: ConversationId, title: str, of: Sequence[ItemId]
) -> bool:
    """Its place among the others stays: nothing was said in it. It is held, so that none of the
    items goes until the title is there, to go along then."""
    if not await held(tx, [id], user):
        return False
    found = await tx.fetchrow(_HOW_MANY, id, list(of))
    if found is None or found[0] != len(set(of)):
        return False
    return await tx.execute(_GIVE_TITLE, id, user, title, codec.folded(title)) == 1


async def held(tx: Transaction, ids: Sequence[str], user: UserId) -> list[str]:
    """Those that are the user's and that nobody deletes, nor any item of them, until the
    transaction ends; turns go on."""
    return [row[0] for row in await tx.fetch(_HOLD, list(ids), user)]


async def unlocked(tx: Transaction, user: UserId, id: ConversationId, now_ms: int) -> bool:
    """Hold the row until the transaction ends; False when there is none. Raises
    ConversationLocked while a turn's lease runs."""
    row = await tx.fetchrow(LOCK_STATE, id, user)
    if row is None:
        return False
    if row[0] is not None and row[1] > now_ms:
        raise ConversationLocked(id)
    return True


async def add_items(
    tx: Transaction, user: UserId, id: ConversationId, items: Sequence[Item], now_ms: int
) -> bool:
    if not await unlocked(tx, user, id, now_ms):
        return False
    row = await tx.fetchrow(_APPEND, id, len(items), now_ms)
    if row is None:
        return False
    batch = itemlog.writes(items, user=user, home=id, first=row[0] - len(items))
    await itemlog.write(tx, batch, "items")
    return True


async def items(
    tx: Transaction, user: UserId, id: ConversationId, page: Page
) -> tuple[Item, ...] | None:
    if await tx.fetchrow(EXISTS, id, user) is None:
        return None
    start = LAST if page.newest_first else FIRST
    if page.after is not None:
        cursor = await tx.fetchrow(ITEM_POSITION, id, page.after)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor[0]
    rows = await tx.fetch(_ITEMS[page.newest_first], id, start, max(page.limit, 0))
    return codec.items(rows)


async def item(tx: Transaction, user: UserId, id: ConversationId, wanted: ItemId) -> Item | None:
    if await tx.fetchrow(EXISTS, id, user) is None:
        return None
    row = await tx.fetchrow(_ITEM, id, wanted)
    return None if row is None else codec.item(row)


async def find_items(tx: Transaction, user: UserId, ids: Sequence[ItemId]) -> tuple[Item, ...]:
    return codec.items(await tx.fetch(_FIND_ITEMS, list(ids), user))


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)
