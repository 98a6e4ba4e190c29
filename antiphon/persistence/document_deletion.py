"""Units of work that remove vector stores and files from them, with every word of the documents
that nothing needs any more. Some files at a time: what has begun is gone on with when it is asked
for again, and nothing is found meanwhile."""

from collections import Counter
from collections.abc import Sequence

from antiphon.ids import FileId, UserId, VectorStoreId
from antiphon.persistence import documents
from antiphon.persistence.port import Transaction, statement
from antiphon.persistence.vector_stores import CHANGED

_CLOSE = statement(
    "vector_stores.close",
    """UPDATE vector_stores SET expired = 1, revision = revision + 1
        WHERE id = ANY($1) AND expired = 0""",
)
_EXPIRED = statement(
    "vector_stores.expired",
    """SELECT id FROM vector_stores
        WHERE expires_ms IS NOT NULL AND expires_ms <= $1 AND expired = 0
        ORDER BY expires_ms LIMIT $2""",
)
_LEFT_BEHIND = statement(
    "vector_stores.left_behind",
    "SELECT id FROM vector_stores WHERE expired = 1 ORDER BY id LIMIT 1",
)
_LEFT_EMPTY = statement(
    "vector_stores.left_empty", "UPDATE vector_stores SET expired = 2 WHERE id = $1"
)
_SOME = statement(
    "vector_store_files.some",
    "SELECT file_id FROM vector_store_files WHERE store_id = $1 LIMIT $2",
)
_EXISTS = statement(
    "vector_stores.exists", "SELECT 1 FROM vector_stores WHERE id = $1 AND user_id = $2"
)
_HOLD = statement(
    "vector_stores.hold_alone", "SELECT id FROM vector_stores WHERE id = ANY($1) FOR UPDATE"
)
_OF_STORE = statement(
    "vector_store_files.documents_of",
    """SELECT document_id FROM vector_store_files
        WHERE store_id = $1 AND file_id = ANY($2) AND document_id IS NOT NULL""",
)
_LEAVE = statement(
    "vector_store_files.delete",
    "DELETE FROM vector_store_files WHERE store_id = $1 AND file_id = ANY($2)",
)
_ALL_LEAVE = statement(
    "vector_store_files.delete_all", "DELETE FROM vector_store_files WHERE store_id = ANY($1)"
)
_BATCHES = statement("file_batches.delete", "DELETE FROM file_batches WHERE store_id = ANY($1)")
_STORES = statement("vector_stores.delete", "DELETE FROM vector_stores WHERE id = ANY($1)")
_USERS_STORES = statement(
    "vector_stores.of_user", "SELECT id FROM vector_stores WHERE user_id = $1"
)
_USERS_DOCUMENTS = statement(
    "documents.of_user",
    "SELECT id FROM documents WHERE user_id = $1 LIMIT $2 FOR UPDATE",
)
_OF_DOCUMENTS = {
    table: statement(
        f"{table}.delete_documents", f"DELETE FROM {table} WHERE document_id = ANY($1)"
    )
    for table in ("vector_store_files", "file_documents")
}
_HOLD_FILES = statement(
    "files.hold_alone", "SELECT id FROM files WHERE id = ANY($1) ORDER BY id FOR UPDATE"
)
_USES = statement(
    "vector_store_files.of_files",
    "SELECT store_id, document_id FROM vector_store_files WHERE file_id = ANY($1)",
)
_WANTED = statement(
    "file_documents.of_files",
    "SELECT document_id FROM file_documents WHERE file_id = ANY($1)",
)
_OF_FILES = {
    table: statement(f"{table}.delete_files", f"DELETE FROM {table} WHERE file_id = ANY($1)")
    for table in ("vector_store_files", "file_documents")
}

AT_ONCE = 20
"""Files that one transaction takes out of a vector store: each may have thousands of chunks, and
other writers wait meanwhile."""


async def some_of_store(tx: Transaction, user: UserId, id: VectorStoreId) -> Counter[str] | None:
    """The first step, to be repeated until it removes nothing: nobody finds anything in it from
    then on. None when there is no such vector store."""
    if await tx.fetchrow(_EXISTS, id, user) is None:
        return None
    await tx.execute(_CLOSE, [id])
    return await _take_some_out(tx, id)


async def rest_of_store(tx: Transaction, id: VectorStoreId) -> Counter[str]:
    """The last step."""
    await tx.fetch(_HOLD, [id])
    gone: Counter[str] = Counter()
    while some := await _take_some_out(tx, id):
        gone += some
    return gone + await _remove_stores(tx, [id])


async def file_of_store(
    tx: Transaction, user: UserId, id: VectorStoreId, file: FileId
) -> Counter[str] | None:
    if await tx.fetchrow(_EXISTS, id, user) is None:
        return None
    gone = await _take_out(tx, id, [file])
    if not gone:
        return None
    await tx.execute(CHANGED, [id])
    return gone


async def leave_files(tx: Transaction, ids: Sequence[str]) -> Counter[str]:
    """Before files are deleted: nobody puts them into a vector store any more."""
    await tx.fetch(_HOLD_FILES, list(ids))
    uses = await tx.fetch(_USES, list(ids))
    wanted = await tx.fetch(_WANTED, list(ids))
    unneeded = {row[1] for row in uses if row[1] is not None} | {row[0] for row in wanted}
    gone: Counter[str] = Counter()
    for table, sql in _OF_FILES.items():
        gone[table] += await tx.execute(sql, list(ids))
    gone += await documents.remove_unneeded(tx, sorted(unneeded))
    if uses:
        await tx.execute(CHANGED, sorted({row[0] for row in uses}))
    return gone


async def some_of_user(tx: Transaction, user: UserId, limit: int) -> Counter[str]:
    """Some of the user's documents, whatever needs them."""
    ids = [row[0] for row in await tx.fetch(_USERS_DOCUMENTS, user, limit)]
    gone: Counter[str] = Counter()
    if ids:
        for table, sql in _OF_DOCUMENTS.items():
            gone[table] += await tx.execute(sql, ids)
        gone += await documents.remove_unneeded(tx, ids)
    return gone


async def stores_of_user(tx: Transaction, user: UserId) -> Counter[str]:
    """Once they have no documents."""
    return await _remove_stores(tx, [row[0] for row in await tx.fetch(_USERS_STORES, user)])


async def expire(tx: Transaction, now_ms: int, limit: int) -> Counter[str]:
    """Vector stores whose time is over lose their files, some at a time, also those of one whose
    deletion was cut short; the rest of what they say of themselves stays."""
    expired = [row[0] for row in await tx.fetch(_EXPIRED, now_ms, limit)]
    if expired:
        await tx.execute(_CLOSE, expired)
    gone: Counter[str] = Counter()
    while gone.total() < limit and (left := await tx.fetchrow(_LEFT_BEHIND)) is not None:
        some = await _take_some_out(tx, left[0])
        gone += some
        if not some:
            await tx.execute(_LEFT_EMPTY, left[0])
    return gone


async def _take_some_out(tx: Transaction, id: str) -> Counter[str]:
    some = [row[0] for row in await tx.fetch(_SOME, id, AT_ONCE)]
    return await _take_out(tx, id, some) if some else Counter()


async def _take_out(tx: Transaction, id: str, files: Sequence[str]) -> Counter[str]:
    await tx.fetch(_HOLD_FILES, list(files))
    unneeded = [row[0] for row in await tx.fetch(_OF_STORE, id, list(files))]
    gone = Counter({"vector_store_files": await tx.execute(_LEAVE, id, list(files))})
    return +(gone + await documents.remove_unneeded(tx, unneeded))


async def _remove_stores(tx: Transaction, ids: Sequence[str]) -> Counter[str]:
    gone: Counter[str] = Counter()
    if ids:
        gone["vector_store_files"] += await tx.execute(_ALL_LEAVE, list(ids))
        gone["file_batches"] += await tx.execute(_BATCHES, list(ids))
        gone["vector_stores"] += await tx.execute(_STORES, list(ids))
    return gone
