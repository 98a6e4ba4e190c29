"""What background workers have made of conversations and items goes when those go, and so does what
is remembered of nothing else. Units of work that delete call it while the items are still there."""

from collections import Counter
from collections.abc import Sequence

from antiphon.context_records import MemoryOrigin
from antiphon.persistence import memories, work
from antiphon.persistence.conversations import HOLD_ALONE
from antiphon.persistence.port import Row, Transaction, statement

_WHERE = {
    "conversations": "conversation_id = ANY($1)",
    "items": "conversation_id = $1 AND item_id = ANY($2)",
}
_REMEMBERERS = {
    what: statement(
        f"memory_sources.users_of_{what}",
        f"""SELECT DISTINCT m.user_id FROM memory_sources s JOIN memories m ON m.id = s.memory_id
            WHERE s.{where.replace(" item_id", " s.item_id")} ORDER BY m.user_id""",
    )
    for what, where in _WHERE.items()
}
_SOURCES = {
    what: statement(f"memory_sources.delete_of_{what}", f"DELETE FROM memory_sources WHERE {where}")
    for what, where in _WHERE.items()
}
_FORGOTTEN = {
    what: statement(
        f"forgotten_memories.delete_of_{what}", f"DELETE FROM forgotten_memories WHERE {where}"
    )
    for what, where in _WHERE.items()
}
# To another place where it was said, if there is one.
_MOVE = {
    what: statement(
        f"memories.move_from_{what}",
        f"""UPDATE memories SET (conversation_id, item_id) = (
            SELECT s.conversation_id, s.item_id FROM memory_sources s
            WHERE s.memory_id = memories.id ORDER BY s.conversation_id, s.item_id LIMIT 1)
            WHERE {where} RETURNING id, origin, conversation_id""",
    )
    for what, where in _WHERE.items()
}
_OF_CONVERSATIONS = {
    table: statement(f"{table}.delete", f"DELETE FROM {table} WHERE conversation_id = ANY($1)")
    for table in ("summaries", "context_work")
}
_COVERING = statement(
    "summaries.delete_covering",
    "DELETE FROM summaries WHERE conversation_id = $1 AND until_position >= $2",
)
_UNTITLE = statement(
    "conversations.untitle",
    """UPDATE conversations SET title = NULL, title_folded = NULL, title_made = NULL
        WHERE id = $1 AND title_made = 1""",
)
_MEMORIES = statement("memories.delete", "DELETE FROM memories WHERE id = ANY($1)")
_SOURCES_OF = statement(
    "memory_sources.delete_of_memories", "DELETE FROM memory_sources WHERE memory_id = ANY($1)"
)


async def leave_conversations(tx: Transaction, ids: Sequence[str]) -> Counter[str]:
    """Rows that went, by table."""
    gone: Counter[str] = Counter()
    for table, sql in _OF_CONVERSATIONS.items():
        gone[table] += await tx.execute(sql, list(ids))
    return gone + await _unremembered(tx, "conversations", list(ids))


async def leave_items(
    tx: Transaction, home: str, first: int, ids: Sequence[str], now_ms: int
) -> Counter[str]:
    """The first of them has that position. Their home is held; it may be no conversation."""
    gone: Counter[str] = Counter()
    if not ids or await tx.fetchrow(HOLD_ALONE, home) is None:
        return gone
    gone["summaries"] += await tx.execute(_COVERING, home, first)
    untitled = await tx.execute(_UNTITLE, home)
    if gone["summaries"] or untitled:  # others are made, of what is left
        sql, args = work.marked(home, now_ms)
        await tx.execute(sql, *args)
    return gone + await _unremembered(tx, "items", home, list(ids))


async def remove_memories(tx: Transaction, ids: Sequence[str]) -> Counter[str]:
    """Their users are held."""
    gone = Counter({"memory_sources": await tx.execute(_SOURCES_OF, list(ids))})
    gone["memories"] += await tx.execute(_MEMORIES, list(ids))
    return gone


async def _unremembered(tx: Transaction, what: str, *which: object) -> Counter[str]:
    for row in await tx.fetch(_REMEMBERERS[what], *which):
        await tx.fetchrow(memories.HOLD_USER, row[0])
    gone = Counter({"memory_sources": await tx.execute(_SOURCES[what], *which)})
    moved: Sequence[Row] = await tx.fetch(_MOVE[what], *which)
    left = [id for id, origin, place in moved if origin == MemoryOrigin.STATED and place is None]
    if left:
        gone += await remove_memories(tx, left)
    gone["forgotten_memories"] += await tx.execute(_FORGOTTEN[what], *which)
    return gone
