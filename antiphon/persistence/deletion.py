"""Units of work that remove: each leaves a receipt of what went, by table, and no text.

Bills stay, and lose the name when their user goes.
"""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.errors import ResponseInProgress
from antiphon.ids import (
    ConversationId,
    FileId,
    ItemId,
    MemoryId,
    NodeId,
    ResponseId,
    UserId,
    VectorStoreId,
)
from antiphon.persistence import (
    codec,
    derived,
    document_deletion,
    files,
    memories,
    policy,
    quotas,
)
from antiphon.persistence.conversations import ITEM_POSITION, UNLOCK, unlocked
from antiphon.persistence.port import Statement, Transaction, statement
from antiphon.records import Receipt

_OF_RESPONSES = {
    table: statement(f"{table}.delete", f"DELETE FROM {table} WHERE response_id = ANY($1)")
    for table in (
        "response_events",
        "response_bodies",
        "idempotency_claims",
        "feedback",
        "inference_traces",
        "policy_events",
    )
}
_RESPONSES = statement("responses.delete", "DELETE FROM responses WHERE id = ANY($1)")
_SETTLE = statement(
    "usage.settle_lost",
    """UPDATE usage_entries SET input_tokens = 0, cached_tokens = 0, output_tokens = 0,
        reasoning_tokens = 0, settled_ms = $2 WHERE response_id = ANY($1) AND settled_ms IS NULL
        RETURNING user_id, reserved_tokens, reserved_ms""",
)
_FILES_USED = statement(
    "file_uses.of_homes", "SELECT DISTINCT file_id FROM file_uses WHERE home = ANY($1)"
)
_OF_HOMES = {
    table: statement(f"{table}.delete_homes", f"DELETE FROM {table} WHERE home = ANY($1)")
    for table in ("file_uses", "item_bodies", "items")
}
_OF_ITEM = {
    table: statement(
        f"{table}.delete_one", f"DELETE FROM {table} WHERE home = $1 AND position = $2"
    )
    for table in ("file_uses", "item_bodies", "items")
}
_SAID_IN = statement(
    "items.said_in",
    """SELECT response_id FROM items
        WHERE home = $1 AND position = $2 AND direction = 'out' AND response_id IS NOT NULL""",
)
FORGET_EVENTS = statement(
    "responses.forget_events", "UPDATE responses SET events_kept = 0 WHERE id = ANY($1)"
)
_ITEMS_OF_TURN = statement(
    "items.of_turn",
    """SELECT id FROM items WHERE home = $1 AND position >= $2 AND position <= $3
        AND response_id = $4""",
)
_OF_TURN = {
    "file_uses": statement(
        "file_uses.delete_turn",
        """DELETE FROM file_uses WHERE home = $1 AND position IN (SELECT i.position FROM items i
            WHERE i.home = $1 AND i.position >= $2 AND i.position <= $3 AND i.response_id = $4)""",
    ),
    "item_bodies": statement(
        "item_bodies.delete_turn",
        """DELETE FROM item_bodies WHERE home = $1 AND position IN (SELECT i.position FROM items i
            WHERE i.home = $1 AND i.position >= $2 AND i.position <= $3 AND i.response_id = $4)""",
    ),
    "items": statement(
        "items.delete_turn",
        """DELETE FROM items WHERE home = $1 AND position >= $2 AND position <= $3
            AND response_id = $4""",
    ),
}
_RESPONSES_OF_CONVERSATIONS = statement(
    "responses.of_conversations", "SELECT id FROM responses WHERE conversation_id = ANY($1)"
)
_CONVERSATIONS = statement("conversations.delete", "DELETE FROM conversations WHERE id = ANY($1)")
# Held first, since who puts one into a vector store meanwhile is seen only by what comes after.
_HOLD_FILES = statement(
    "files.hold_used", "SELECT id FROM files WHERE id = ANY($1) ORDER BY id FOR UPDATE"
)
_UNUSED_FILES = statement(
    "files.not_used",
    """SELECT id FROM files WHERE id = ANY($1)
        AND NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.file_id = files.id)
        AND NOT EXISTS (SELECT 1 FROM vector_store_files v WHERE v.file_id = files.id)""",
)
_RESPONSE = statement(
    "responses.for_deletion",
    """SELECT completed_ms, conversation_id, home, first_position, last_position FROM responses
        WHERE id = $1 AND user_id = $2 FOR UPDATE""",
)
_FILE_USES = statement("file_uses.of_files", "DELETE FROM file_uses WHERE file_id = ANY($1)")
_FILE = statement("files.delete", "DELETE FROM files WHERE id = ANY($1) RETURNING sha256")
_USER = statement("users.lock", "SELECT 1 FROM users WHERE id = $1 FOR UPDATE")
_KEYS = statement("keys.delete_of_user", "DELETE FROM api_keys WHERE user_id = $1")
_USERS_CONVERSATIONS = statement(
    "conversations.some_of_user",
    "SELECT id FROM conversations WHERE user_id = $1 ORDER BY id LIMIT $2",
)
_USERS_RESPONSES = statement(
    "responses.some_of_user",
    "SELECT id FROM responses WHERE user_id = $1 AND conversation_id IS NULL LIMIT $2",
)
_USERS_FILES = statement("files.of_user", "SELECT id FROM files WHERE user_id = $1")
_USERS_CLAIMS = statement(
    "claims.delete_of_user", "DELETE FROM idempotency_claims WHERE user_id = $1"
)
_FORGET_NAME = statement(
    "usage.forget_user", "UPDATE usage_entries SET user_id = NULL WHERE user_id = $1"
)
_FORGET_QUOTA = statement("quotas.delete", "DELETE FROM user_quotas WHERE user_id = $1")
_DELETE_USER = statement("users.delete", "DELETE FROM users WHERE id = $1")
_RECEIPT = statement(
    "receipts.insert",
    """INSERT INTO deletion_receipts (id, subject, deleted_ms, removed, contents)
        VALUES ($1, $2, $3, $4, $5)""",
)

_UNDONE = statement(
    "responses.for_withdrawal",
    """SELECT conversation_id, created_ms, home, first_position, last_position FROM responses
        WHERE id = $1 AND owner = $2 AND completed_ms IS NULL FOR UPDATE""",
)
_UNANSWERED = statement(
    "responses.for_replacement",
    """SELECT home, first_position, last_position, completed_ms FROM responses
        WHERE id = $1 AND status IN ('cancelled', 'failed') FOR UPDATE""",
)

_EVERYTHING = (1 << 63) - 1


@dataclass(slots=True)
class Removed:
    """What has gone so far."""

    rows: Counter[str] = field(default_factory=Counter)
    contents: list[str] = field(default_factory=list)

    async def delete(self, tx: Transaction, table: str, sql: Statement, *args: object) -> None:
        self.rows[table] += await tx.execute(sql, *args)

    def add(self, other: "Removed") -> None:
        self.rows += other.rows
        self.contents += other.contents


async def receipt(
    tx: Transaction, removed: Removed, subject: str, now_ms: int, *, kept: bool = True
) -> Receipt:
    """Of contents, those that no file has any more."""
    made = Receipt(
        id=f"del_{secrets.token_hex(12)}",
        subject=subject,
        deleted_ms=now_ms,
        rows={table: count for table, count in sorted(removed.rows.items()) if count},
        contents=await files.unused(tx, removed.contents),
    )
    if kept:
        rows, contents = codec.to_json(made.rows), codec.to_json(made.contents)
        await tx.execute(_RECEIPT, made.id, subject, now_ms, rows, contents)
    return made


async def conversation(
    tx: Transaction, user: UserId, id: ConversationId, now_ms: int
) -> Receipt | None:
    if not await unlocked(tx, user, id, now_ms):
        return None
    removed = await _conversations(tx, [id], now_ms)
    return await receipt(tx, removed, id, now_ms)


async def item(
    tx: Transaction, user: UserId, id: ConversationId, wanted: ItemId, now_ms: int
) -> Receipt | None:
    if not await unlocked(tx, user, id, now_ms):
        return None
    position = await tx.fetchrow(ITEM_POSITION, id, wanted)
    if position is None:
        return None
    removed = Removed()
    # An answer's words stand in its events too, bit by bit; its stream is told without them then.
    answers = [row[0] for row in await tx.fetch(_SAID_IN, id, position[0])]
    if answers:
        await removed.delete(tx, "response_events", _OF_RESPONSES["response_events"], answers)
        await tx.execute(FORGET_EVENTS, answers)
    await policy.forget_words_of(tx, id, None)
    removed.rows += await derived.leave_items(tx, id, position[0], [wanted], now_ms)
    for table, sql in _OF_ITEM.items():
        await removed.delete(tx, table, sql, id, position[0])
    return await receipt(tx, removed, wanted, now_ms)


async def response(tx: Transaction, user: UserId, id: ResponseId, now_ms: int) -> Receipt | None:
    row = await tx.fetchrow(_RESPONSE, id, user)
    if row is None:
        return None
    if row[0] is None:
        raise ResponseInProgress(id)
    _, conversation, *place = row
    await policy.forget_words_of(tx, conversation, id)
    removed = await _turn(tx, id, place, now_ms)
    removed.add(await _responses(tx, [id], now_ms))
    return await receipt(tx, removed, id, now_ms)


async def withdraw(tx: Transaction, id: ResponseId, owner: NodeId) -> bool:
    """A turn that was refused before any work leaves nothing, not even a bill."""
    row = await tx.fetchrow(_UNDONE, id, owner)
    if row is None:
        return False
    conversation, created_ms, *place = row
    await _turn(tx, id, place, created_ms)
    await quotas.release(tx, id)
    await _responses(tx, [id], created_ms)
    if conversation is not None:
        await tx.execute(UNLOCK, conversation, id, created_ms)
    return True


async def unanswered(tx: Transaction, id: ResponseId) -> bool:
    """A turn whose client was gone before its end, or that was interrupted, and that is sent again
    now: but for the bill, as if it had never been. False when it is no such turn."""
    row = await tx.fetchrow(_UNANSWERED, id)
    if row is None:
        return False
    *place, completed_ms = row
    await _turn(tx, id, place, completed_ms)
    await _responses(tx, [id], completed_ms)
    return True


async def memory(tx: Transaction, user: UserId, id: MemoryId, now_ms: int) -> Receipt | None:
    ids = await memories.forgotten(tx, user, id)
    if not ids:
        return None
    removed = Removed(rows=await derived.remove_memories(tx, ids))
    return await receipt(tx, removed, id, now_ms)


async def all_memories(tx: Transaction, user: UserId, now_ms: int) -> Receipt:
    ids = await memories.forgotten(tx, user)
    removed = Removed(rows=await derived.remove_memories(tx, ids))
    return await receipt(tx, removed, user, now_ms, kept=bool(ids))


async def file(tx: Transaction, user: UserId, id: FileId, now_ms: int) -> Receipt | None:
    if await files.get(tx, user, id) is None:
        return None
    return await receipt(tx, await delete_files(tx, [id]), id, now_ms)


async def vector_store(
    tx: Transaction, id: VectorStoreId, now_ms: int, removed: Removed
) -> Receipt:
    """The last step of its deletion; `removed` is what went before."""
    removed.rows += await document_deletion.rest_of_store(tx, id)
    return await receipt(tx, removed, id, now_ms)


async def vector_store_file(
    tx: Transaction, user: UserId, id: VectorStoreId, file: FileId, now_ms: int
) -> Receipt | None:
    rows = await document_deletion.file_of_store(tx, user, id, file)
    return None if rows is None else await receipt(tx, Removed(rows=rows), file, now_ms)


async def delete_files(tx: Transaction, ids: Sequence[str]) -> Removed:
    removed = Removed()
    if not ids:
        return removed
    removed.rows += await document_deletion.leave_files(tx, ids)
    await removed.delete(tx, "file_uses", _FILE_USES, list(ids))
    gone = await tx.fetch(_FILE, list(ids))
    removed.rows["files"] += len(gone)
    removed.contents += [row[0] for row in gone]
    return removed


async def alone(tx: Transaction, ids: Sequence[str], now_ms: int) -> Removed:
    """Responses that ran in no conversation, each with the items that it is home to."""
    removed = await _homes(tx, ids)
    removed.add(await _responses(tx, ids, now_ms))
    return removed


async def some_of_user(tx: Transaction, user: UserId, now_ms: int, limit: int) -> Removed | None:
    """The first step of an erasure, to be repeated until it removes nothing: the keys, then some
    conversations and responses at a time. None when there is no such user."""
    if await tx.fetchrow(_USER, user) is None:
        return None
    removed = Removed()
    await removed.delete(tx, "api_keys", _KEYS, user)
    conversations = [row[0] for row in await tx.fetch(_USERS_CONVERSATIONS, user, limit)]
    removed.add(await _conversations(tx, conversations, now_ms))
    responses = [row[0] for row in await tx.fetch(_USERS_RESPONSES, user, limit)]
    removed.add(await alone(tx, responses, now_ms))
    removed.rows += await document_deletion.some_of_user(
        tx, user, min(limit, document_deletion.AT_ONCE)
    )
    return removed


async def rest_of_user(tx: Transaction, user: UserId, now_ms: int, removed: Removed) -> Receipt:
    """The last step, also of what came meanwhile."""
    last = await some_of_user(tx, user, now_ms, _EVERYTHING) or Removed()
    while documents := await document_deletion.some_of_user(tx, user, document_deletion.AT_ONCE):
        last.rows += documents
    last.rows += await document_deletion.stores_of_user(tx, user)
    last.add(await delete_files(tx, [row[0] for row in await tx.fetch(_USERS_FILES, user)]))
    await last.delete(tx, "idempotency_claims", _USERS_CLAIMS, user)
    last.rows["policy_events"] += await policy.delete_of_user(tx, user)
    last.rows += await derived.remove_memories(tx, await memories.forgotten(tx, user))
    await tx.execute(_FORGET_NAME, user)
    await tx.execute(_FORGET_QUOTA, user)
    await last.delete(tx, "users", _DELETE_USER, user)
    last.add(removed)
    return await receipt(tx, last, user, now_ms)


async def _conversations(tx: Transaction, ids: Sequence[str], now_ms: int) -> Removed:
    removed = Removed()
    if not ids:
        return removed
    ids = list(ids)
    responses = [row[0] for row in await tx.fetch(_RESPONSES_OF_CONVERSATIONS, ids)]
    used = [row[0] for row in await tx.fetch(_FILES_USED, ids)]
    removed.rows += await derived.leave_conversations(tx, ids)
    removed.add(await _homes(tx, ids))
    removed.add(await _responses(tx, responses, now_ms))
    await removed.delete(tx, "conversations", _CONVERSATIONS, ids)
    if used:
        await tx.fetch(_HOLD_FILES, used)
        unused = [row[0] for row in await tx.fetch(_UNUSED_FILES, used)]
        removed.add(await delete_files(tx, unused))
    return removed


async def _turn(tx: Transaction, id: ResponseId, place: Sequence[Any], now_ms: int) -> Removed:
    """The items of a response: its place is their home, and the first and last position there."""
    removed = Removed()
    home, first, _ = place
    if home != id:
        rows = await tx.fetch(_ITEMS_OF_TURN, *place, id)
        ids = [row[0] for row in rows]
        removed.rows += await derived.leave_items(tx, home, first, ids, now_ms)
    for table, sql in _OF_TURN.items():
        await removed.delete(tx, table, sql, *place, id)
    return removed


async def _homes(tx: Transaction, ids: Sequence[str]) -> Removed:
    removed = Removed()
    if ids:
        for table, sql in _OF_HOMES.items():
            await removed.delete(tx, table, sql, list(ids))
    return removed


async def _responses(tx: Transaction, ids: Sequence[str], now_ms: int) -> Removed:
    removed = Removed()
    if ids:
        for table, sql in _OF_RESPONSES.items():
            await removed.delete(tx, table, sql, list(ids))
        await quotas.give_back(tx, await tx.fetch(_SETTLE, list(ids), now_ms))
        await removed.delete(tx, "responses", _RESPONSES, list(ids))
    return removed
