"""Units of work on vector stores and the files in them. How many of these stand where is counted,
never kept: a status changes in one place, the document's.

Whoever changes what is searched locks in this order: files, documents, and vector stores last, by
raising their revision.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.document_records import (
    Attributes,
    FileBatch,
    FileCounts,
    NewStoreFile,
    StoreFileStatus,
    VectorStore,
    VectorStoreFile,
)
from antiphon.errors import RecordNotFound, UnknownCursor
from antiphon.ids import FileBatchId, FileId, UserId, VectorStoreId
from antiphon.persistence import codec, document_codec, documents
from antiphon.persistence.conversations import FIRST, LAST
from antiphon.persistence.document_codec import STATUS, STORE_FILE, VECTOR_STORE
from antiphon.persistence.port import Row, Transaction, statement
from antiphon.records import JsonObject, Page

_INSERT = statement(
    "vector_stores.insert",
    """INSERT INTO vector_stores (id, user_id, name, description, metadata, created_ms,
        last_active_ms, expires_after_days, expires_ms, expired, revision)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0)""",
)
_GET = statement(
    "vector_stores.get",
    f"SELECT {VECTOR_STORE} FROM vector_stores s WHERE s.id = $1 AND s.user_id = $2",
)
_CURSOR = statement(
    "vector_stores.cursor",
    "SELECT created_ms, id FROM vector_stores WHERE id = $1 AND user_id = $2",
)
_LISTS = {
    newest_first: statement(
        f"vector_stores.list_{'newest' if newest_first else 'oldest'}",
        f"""SELECT {VECTOR_STORE} FROM vector_stores s
            WHERE s.user_id = $1 AND (s.created_ms, s.id) {"<" if newest_first else ">"} ($2, $3)
            ORDER BY s.created_ms {"DESC" if newest_first else "ASC"},
                s.id {"DESC" if newest_first else "ASC"} LIMIT $4""",
    )
    for newest_first in (False, True)
}
_COUNTS = {
    what: statement(
        f"vector_store_files.count_by_{what}",
        f"""SELECT v.{what}_id, {STATUS}, COUNT(*),
            CAST(SUM(COALESCE(d.usage_bytes, 0)) AS BIGINT)
            FROM vector_store_files v LEFT JOIN documents d ON d.id = v.document_id
            WHERE v.{what}_id = ANY($1) GROUP BY 1, 2""",
    )
    for what in ("store", "batch")
}
_UPDATE = statement(
    "vector_stores.update",
    """UPDATE vector_stores SET name = $3, metadata = $4, expires_after_days = $5,
        last_active_ms = $6, expires_ms = $7 WHERE id = $1 AND user_id = $2""",
)
_TOUCH = statement(
    "vector_stores.touch",
    """UPDATE vector_stores SET last_active_ms = $2,
        expires_ms = $2 + 86400000 * expires_after_days
        WHERE id = $1 AND last_active_ms < $2 AND expired = 0
        AND (expires_ms IS NULL OR expires_ms > $2)""",
)
# It stays until this transaction has ended; that its revision grows is no matter.
_HOLD = statement(
    "vector_stores.hold",
    """SELECT 1 FROM vector_stores WHERE id = $1 AND user_id = $2 AND expired = 0
        AND (expires_ms IS NULL OR expires_ms > $3) FOR KEY SHARE""",
)
CHANGED = statement(
    "vector_stores.changed",
    "UPDATE vector_stores SET revision = revision + 1 WHERE id = ANY($1)",
)
_OLD_DOCUMENTS = statement(
    "vector_store_files.documents",
    """SELECT document_id FROM vector_store_files
        WHERE store_id = $1 AND file_id = ANY($2) AND document_id IS NOT NULL""",
)
_PUT = statement(
    "vector_store_files.put",
    """INSERT INTO vector_store_files (store_id, file_id, document_id, batch_id, attributes,
        max_tokens, overlap_tokens, created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (store_id, file_id) DO UPDATE SET document_id = excluded.document_id,
        batch_id = excluded.batch_id, attributes = excluded.attributes,
        max_tokens = excluded.max_tokens, overlap_tokens = excluded.overlap_tokens,
        created_ms = excluded.created_ms""",
)
_JOINED = f"""SELECT {STORE_FILE} FROM vector_store_files v
    JOIN vector_stores s ON s.id = v.store_id JOIN files f ON f.id = v.file_id
    LEFT JOIN documents d ON d.id = v.document_id"""
_FILE = statement(
    "vector_store_files.get",
    f"{_JOINED} WHERE v.store_id = $1 AND s.user_id = $2 AND v.file_id = ANY($3)",
)
_FILE_CURSOR = statement(
    "vector_store_files.cursor",
    "SELECT created_ms, file_id FROM vector_store_files WHERE store_id = $1 AND file_id = $2",
)
_FILE_LISTS = {
    (newest_first, by_batch): statement(
        f"vector_store_files.list_{'newest' if newest_first else 'oldest'}"
        f"{'_batch' if by_batch else ''}",
        f"""{_JOINED} WHERE v.store_id = $1 AND s.user_id = $2
            AND (v.created_ms, v.file_id) {"<" if newest_first else ">"} ($3, $4)
            AND (CAST($6 AS TEXT) IS NULL OR {STATUS} = $6)
            {"AND v.batch_id = $7" if by_batch else ""}
            ORDER BY v.created_ms {"DESC" if newest_first else "ASC"},
                v.file_id {"DESC" if newest_first else "ASC"} LIMIT $5""",
    )
    for newest_first in (False, True)
    for by_batch in (False, True)
}
_OF_USER = statement(
    "vector_stores.export",
    f"SELECT {VECTOR_STORE} FROM vector_stores s WHERE s.user_id = $1 ORDER BY s.created_ms, s.id",
)
_FILES_OF_USER = statement(
    "vector_store_files.export",
    f"{_JOINED} WHERE s.user_id = $1",
)
_SET_ATTRIBUTES = statement(
    "vector_store_files.set_attributes",
    "UPDATE vector_store_files SET attributes = $3 WHERE store_id = $1 AND file_id = $2",
)
_INSERT_BATCH = statement(
    "file_batches.insert",
    "INSERT INTO file_batches (id, store_id, created_ms, cancelled) VALUES ($1, $2, $3, 0)",
)
_BATCH = statement(
    "file_batches.get",
    """SELECT b.id, b.store_id, b.created_ms, b.cancelled FROM file_batches b
        JOIN vector_stores s ON s.id = b.store_id
        WHERE b.id = $1 AND b.store_id = $2 AND s.user_id = $3""",
)
_CANCEL_BATCH = statement(
    "file_batches.cancel", "UPDATE file_batches SET cancelled = 1 WHERE id = $1"
)
_UNREAD = statement(
    "vector_store_files.unread",
    """SELECT d.id FROM vector_store_files v JOIN documents d ON d.id = v.document_id
        WHERE v.batch_id = $1 AND d.status IN ('pending', 'reading')""",
)
_HOLD_UNREAD = statement(
    "documents.hold_unread",
    """SELECT id FROM documents WHERE id = ANY($1) AND status IN ('pending', 'reading')
        ORDER BY id FOR UPDATE""",
)
_CANCEL = statement(
    "vector_store_files.cancel",
    """UPDATE vector_store_files SET document_id = NULL
        WHERE batch_id = $1 AND document_id = ANY($2)""",
)


async def create(tx: Transaction, store: VectorStore, files: Sequence[NewStoreFile]) -> VectorStore:
    await tx.execute(
        _INSERT,
        store.id,
        store.user,
        store.name,
        store.description,
        codec.to_json(store.metadata),
        store.created_ms,
        store.last_active_ms,
        store.expires_after_days,
        store.expires_ms,
    )
    if files:
        await _put(tx, store.user, store.id, files, store.created_ms, None)
    found = await get(tx, store.user, store.id)
    assert found is not None, "just written"
    return found


async def get(tx: Transaction, user: UserId, id: VectorStoreId) -> VectorStore | None:
    row = await tx.fetchrow(_GET, id, user)
    return None if row is None else (await _counted(tx, [row]))[0]


async def listed(tx: Transaction, user: UserId, page: Page) -> tuple[VectorStore, ...]:
    start: Sequence[object] = (LAST if page.newest_first else FIRST, "")
    if page.after is not None:
        cursor = await tx.fetchrow(_CURSOR, page.after, user)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor
    sql = _LISTS[page.newest_first]
    return await _counted(tx, await tx.fetch(sql, user, start[0], start[1], max(page.limit, 0)))


async def update(tx: Transaction, store: VectorStore) -> VectorStore | None:
    await tx.execute(
        _UPDATE,
        store.id,
        store.user,
        store.name,
        codec.to_json(store.metadata),
        store.expires_after_days,
        store.last_active_ms,
        store.expires_ms,
    )
    return await get(tx, store.user, store.id)


async def touch(tx: Transaction, used: Mapping[VectorStoreId, int]) -> None:
    await tx.executemany(_TOUCH, sorted(used.items()))


async def add_files(
    tx: Transaction,
    user: UserId,
    id: VectorStoreId,
    files: Sequence[NewStoreFile],
    now_ms: int,
    batch: FileBatchId | None,
) -> tuple[VectorStoreFile, ...]:
    if await tx.fetchrow(_HOLD, id, user, now_ms) is None:
        raise RecordNotFound("vector store", id)
    if batch is not None:
        await tx.execute(_INSERT_BATCH, batch, id, now_ms)
    await _put(tx, user, id, files, now_ms, batch)
    await tx.execute(_TOUCH, id, now_ms)
    wanted = [each.file for each in files]
    found = {
        row[1]: document_codec.store_file(row) for row in await tx.fetch(_FILE, id, user, wanted)
    }
    return tuple(found[file] for file in wanted)


async def file(
    tx: Transaction, user: UserId, id: VectorStoreId, file: FileId
) -> VectorStoreFile | None:
    row = await tx.fetchrow(_FILE, id, user, [file])
    return None if row is None else document_codec.store_file(row)


async def files(
    tx: Transaction,
    user: UserId,
    id: VectorStoreId,
    page: Page,
    status: StoreFileStatus | None,
    batch: FileBatchId | None,
) -> tuple[VectorStoreFile, ...] | None:
    if await tx.fetchrow(_GET, id, user) is None:
        return None
    start: Sequence[object] = (LAST if page.newest_first else FIRST, "")
    if page.after is not None:
        cursor = await tx.fetchrow(_FILE_CURSOR, id, page.after)
        if cursor is None:
            raise UnknownCursor(page.after)
        start = cursor
    sql = _FILE_LISTS[page.newest_first, batch is not None]
    args: list[Any] = [id, user, start[0], start[1], max(page.limit, 0)]
    args.append(None if status is None else status.value)
    if batch is not None:
        args.append(batch)
    return tuple(map(document_codec.store_file, await tx.fetch(sql, *args)))


async def set_attributes(
    tx: Transaction, user: UserId, id: VectorStoreId, wanted: FileId, attributes: Attributes
) -> VectorStoreFile | None:
    if await file(tx, user, id, wanted) is None:
        return None
    await tx.execute(_SET_ATTRIBUTES, id, wanted, codec.to_json(attributes))
    await tx.execute(CHANGED, [id])
    return await file(tx, user, id, wanted)


async def batch(
    tx: Transaction, user: UserId, id: VectorStoreId, batch: FileBatchId
) -> FileBatch | None:
    row = await tx.fetchrow(_BATCH, batch, id, user)
    if row is None:
        return None
    counts = await _counts(tx, "batch", [batch])
    return document_codec.file_batch(row, counts.get(batch, (FileCounts(), 0))[0])


async def cancel_batch(
    tx: Transaction, user: UserId, id: VectorStoreId, wanted: FileBatchId
) -> FileBatch | None:
    if await batch(tx, user, id, wanted) is None:
        return None
    await tx.execute(_CANCEL_BATCH, wanted)
    unread = [row[0] for row in await tx.fetch(_UNREAD, wanted)]
    if unread:
        # One that has become ready while this waited for it stays.
        unread = [row[0] for row in await tx.fetch(_HOLD_UNREAD, unread)]
        await tx.execute(_CANCEL, wanted, unread)
        await documents.remove_unneeded(tx, unread)
    return await batch(tx, user, id, wanted)


async def export(tx: Transaction, user: UserId) -> list[JsonObject]:
    """All of a user's, each with its files."""
    files: dict[str, list[JsonObject]] = {}
    rows = map(document_codec.store_file, await tx.fetch(_FILES_OF_USER, user))
    for each in sorted(rows, key=lambda each: (each.created_ms, each.file)):
        files.setdefault(each.store, []).append(codec.plain(each))
    stores = await _counted(tx, await tx.fetch(_OF_USER, user))
    return [{**codec.plain(store), "files": files.get(store.id, [])} for store in stores]


async def _put(
    tx: Transaction,
    user: UserId,
    id: VectorStoreId,
    files: Sequence[NewStoreFile],
    now_ms: int,
    batch: FileBatchId | None,
) -> None:
    wanted = sorted({each.file for each in files})
    held = await documents.held_files(tx, user, wanted)
    before = [row[0] for row in await tx.fetch(_OLD_DOCUMENTS, id, wanted)]
    for each in files:
        document = await documents.ensure(
            tx, held[each.file], each.chunking, now_ms, priority=documents.IN_STORE, again=True
        )
        cut = (each.chunking.max_tokens, each.chunking.overlap_tokens)
        attributes = codec.to_json(each.attributes)
        await tx.execute(_PUT, id, each.file, document.id, batch, attributes, *cut, now_ms)
    await documents.remove_unneeded(tx, before)
    await tx.execute(CHANGED, [id])


async def _counted(tx: Transaction, rows: Sequence[Row]) -> tuple[VectorStore, ...]:
    counts = await _counts(tx, "store", [row[0] for row in rows])
    nothing = (FileCounts(), 0)
    return tuple(document_codec.vector_store(row, *counts.get(row[0], nothing)) for row in rows)


async def _counts(
    tx: Transaction, what: str, ids: Sequence[str]
) -> dict[str, tuple[FileCounts, int]]:
    """By id: how many files stand where, and what they use."""
    by_id: dict[str, dict[str, int]] = {}
    used: dict[str, int] = {}
    for id, status, count, usage_bytes in await tx.fetch(_COUNTS[what], list(ids)) if ids else ():
        by_id.setdefault(id, {})[status] = count
        used[id] = used.get(id, 0) + usage_bytes
    return {id: (document_codec.counts(found), used[id]) for id, found in by_id.items()}
