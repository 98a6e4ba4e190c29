"""Units of work on what is remembered of users.

Whoever adds, changes or removes one has the user's row locked, and before it those of the
conversations that it is about: so nothing is remembered twice, and nothing of what is gone.
"""

from collections.abc import Sequence
from hashlib import sha256

from antiphon.context_records import Memory, MemoryOrigin
from antiphon.errors import InvalidRequest, UnknownCursor
from antiphon.ids import ConversationId, ItemId, MemoryId, UserId
from antiphon.persistence import conversations
from antiphon.persistence.conversations import FIRST, LAST
from antiphon.persistence.port import Row, Transaction, clean, statement
from antiphon.records import Page

MOST_SHOWN = 200
"""Memories that a turn reads."""

_COLUMNS = "id, user_id, text, origin, created_ms, updated_ms, conversation_id, item_id"
_GET = statement("memories.get", f"SELECT {_COLUMNS} FROM memories WHERE id = $1 AND user_id = $2")
_CURSOR = statement(
    "memories.cursor", "SELECT created_ms, id FROM memories WHERE id = $1 AND user_id = $2"
)
_LISTS = {
    newest_first: statement(
        f"memories.list_{'newest' if newest_first else 'oldest'}",
        f"""SELECT {_COLUMNS} FROM memories
            WHERE user_id = $1 AND (created_ms, id) {"<" if newest_first else ">"} ($2, $3)
            ORDER BY created_ms {"DESC" if newest_first else "ASC"},
                id {"DESC" if newest_first else "ASC"} LIMIT $4""",
    )
    for newest_first in (False, True)
}
_OF_USER = statement(
    "memories.of_user",
    f"SELECT {_COLUMNS} FROM memories WHERE user_id = $1 ORDER BY created_ms, id",
)
HOLD_USER = statement("users.hold", "SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE")
_KNOWN = statement(
    "memories.known", "SELECT text_hash, id, origin FROM memories WHERE user_id = $1"
)
_SAID = statement(
    "memories.said", "SELECT home, id FROM items WHERE home = ANY($1) AND id = ANY($2)"
)
_FORGOTTEN = statement(
    "memories.forgotten",
    """SELECT conversation_id, item_id, text_hash FROM forgotten_memories
        WHERE conversation_id = ANY($1) AND item_id = ANY($2)""",
)
_INSERT = statement(
    "memories.insert",
    f"""INSERT INTO memories ({_COLUMNS}, text_hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)""",
)
_INSERT_SOURCE = statement(
    "memory_sources.insert",
    """INSERT INTO memory_sources (memory_id, conversation_id, item_id) VALUES ($1, $2, $3)
        ON CONFLICT (memory_id, conversation_id, item_id) DO NOTHING""",
)
_KEEP = statement(
    "memories.keep",
    f"""UPDATE memories SET origin = 'added', updated_ms = $2 WHERE id = $1
        RETURNING {_COLUMNS}""",
)
_HASH = statement("memories.hash", "SELECT text_hash FROM memories WHERE id = $1 AND user_id = $2")
_TAKEN = statement(
    "memories.taken",
    "SELECT 1 FROM memories WHERE user_id = $1 AND text_hash = $2 AND id <> $3",
)
_UPDATE = statement(
    "memories.update",
    f"""UPDATE memories SET text = $2, text_hash = $3, origin = 'added', updated_ms = $4
        WHERE id = $1 RETURNING {_COLUMNS}""",
)
_FORGET = statement(
    "memories.forget",
    """INSERT INTO forgotten_memories (conversation_id, item_id, text_hash)
        SELECT s.conversation_id, s.item_id, m.text_hash FROM memories m
        JOIN memory_sources s ON s.memory_id = m.id WHERE m.id = ANY($1)
        ON CONFLICT (conversation_id, item_id, text_hash) DO NOTHING""",
)


async def get(tx: Transaction, user: UserId, id: MemoryId) -> Memory | None:
    row = await tx.fetchrow(_GET, id, user)
    return None if row is None else _memory(row)


async def listed(tx: Transaction, user: UserId, page: Page) -> tuple[Memory, ...]:
    start: Sequence[object] = (LAST if page.newest_first else FIRST, "")
    if page.after is not None:
        cursor = await tx.fetchrow(_CURSOR, page.after, user)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor
    rows = await tx.fetch(_LISTS[page.newest_first], user, start[0], start[1], max(page.limit, 0))
    return tuple(map(_memory, rows))


async def shown(tx: Transaction, user: UserId) -> tuple[Memory, ...]:
    """To a turn: the latest, oldest first."""
    latest = await listed(tx, user, Page(limit=MOST_SHOWN))
    return latest[::-1]


async def of_user(tx: Transaction, user: UserId) -> tuple[Memory, ...]:
    return tuple(map(_memory, await tx.fetch(_OF_USER, user)))


async def add(
    tx: Transaction, user: UserId, memories: Sequence[Memory], most: int
) -> tuple[Memory, ...]:
    places = [_place(memory) for memory in memories]
    homes = sorted({place[0] for place in places if place is not None})
    said, forgotten = await _said(tx, user, homes, [place[1] for place in places if place])
    if not memories or await tx.fetchrow(HOLD_USER, user) is None:
        return ()
    known = {row[0]: (row[1], row[2]) for row in await tx.fetch(_KNOWN, user)}
    written, rows, sources = [], [], []
    for memory, place in zip(memories, places, strict=True):
        hash = hash_of(memory.text)
        if place is not None and (place not in said or (*place, hash) in forgotten):
            continue
        id, origin = known.get(hash, (None, memory.origin))
        if id is None and len(known) < most:
            id, known[hash] = memory.id, (memory.id, memory.origin)
            written.append(memory)
            rows.append((*_row(memory, user), hash))
        elif id is not None and origin == MemoryOrigin.STATED and place is None:
            known[hash] = (id, MemoryOrigin.ADDED)
            kept = await tx.fetchrow(_KEEP, id, memory.updated_ms)
            assert kept is not None, "its user is held"
            written.append(_memory(kept))
        if id is not None and origin == MemoryOrigin.STATED and place is not None:
            sources.append((id, *place))
    if rows:
        await tx.executemany(_INSERT, rows)
    if sources:
        await tx.executemany(_INSERT_SOURCE, sorted(set(sources)))
    return tuple(written)


def _place(memory: Memory) -> tuple[str, str] | None:
    """Where it was said. None is nowhere: the user wrote it down."""
    if memory.conversation is None or memory.item is None:
        if memory.origin is MemoryOrigin.STATED:
            raise ValueError("what was stated was stated in an item of a conversation")
        return None
    if memory.origin is MemoryOrigin.ADDED:
        raise ValueError("what is added comes from nowhere")
    return memory.conversation, memory.item


async def _said(
    tx: Transaction, user: UserId, homes: Sequence[str], items: Sequence[str]
) -> tuple[set[tuple[str, str]], set[tuple[str, str, str]]]:
    """Which of these items there are, held until the transaction ends, and what was forgotten of
    them."""
    if not homes:
        return set(), set()
    held = await conversations.held(tx, homes, user)
    said = {(row[0], row[1]) for row in await tx.fetch(_SAID, held, list(items))}
    rows = await tx.fetch(_FORGOTTEN, held, list(items))
    return said, {(row[0], row[1], row[2]) for row in rows}


async def update(
    tx: Transaction, user: UserId, id: MemoryId, text: str, now_ms: int
) -> Memory | None:
    """What it said before isn't learned again either. Raises InvalidRequest where another one says
    that already."""
    await tx.fetchrow(HOLD_USER, user)
    old = await tx.fetchrow(_HASH, id, user)
    if old is None:
        return None
    new = hash_of(text)
    if await tx.fetchrow(_TAKEN, user, new, id) is not None:
        raise InvalidRequest(
            "Another memory says that already.", param="text", code="duplicate_memory"
        )
    if new != old[0]:
        await tx.execute(_FORGET, [id])
    row = await tx.fetchrow(_UPDATE, id, text, new, now_ms)
    return None if row is None else _memory(row)


async def forgotten(tx: Transaction, user: UserId, id: MemoryId | None = None) -> list[str]:
    """The ids of that one, or of all: where they were said, they aren't learned again. The user is
    held."""
    await tx.fetchrow(HOLD_USER, user)
    rows = await tx.fetch(_KNOWN, user)
    ids = [row[1] for row in rows if id is None or row[1] == id]
    await tx.execute(_FORGET, ids)
    return ids


def hash_of(text: str) -> str:
    """The same for what differs in case and spacing alone."""
    return sha256(" ".join(clean(text).split()).casefold().encode()).hexdigest()


def _row(memory: Memory, user: UserId) -> tuple[object, ...]:
    return (
        memory.id,
        user,
        memory.text,
        memory.origin.value,
        memory.created_ms,
        memory.updated_ms,
        memory.conversation,
        memory.item,
    )


def _memory(row: Row) -> Memory:
    id, owner, text, origin, created_ms, updated_ms, conversation, item = row
    return Memory(
        id=MemoryId(id),
        user=UserId(owner),
        text=text,
        origin=MemoryOrigin(origin),
        created_ms=created_ms,
        updated_ms=updated_ms,
        conversation=None if conversation is None else ConversationId(conversation),
        item=None if item is None else ItemId(item),
    )
