"""Units of work on documents: which there are, which are wanted, and what of them is needed by
nothing any more. One that is large goes at once, for all who read, and its chunks after it, some
at a time: nobody waits for long to write meanwhile."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from antiphon.document_records import Document, DocumentStatus, DocumentText
from antiphon.errors import RecordNotFound
from antiphon.ids import DocumentId, FileId, UserId, new_document_id
from antiphon.persistence import codec, document_codec
from antiphon.persistence.document_schema import PLACE_BITS
from antiphon.persistence.port import Transaction, statement
from antiphon.reading_files import Chunking
from antiphon.records import File

WAITED_FOR, IN_STORE = 0, 1
"""Priorities: what somebody waits for in a conversation comes first."""

COUNT = statement(
    "counters.next",
    """INSERT INTO counters (name, value) VALUES ($1, 1)
        ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value""",
)
# Nobody deletes them before this transaction has ended.
_FILES = statement(
    "files.hold",
    f"SELECT {codec.FILE} FROM files WHERE id = ANY($1) ORDER BY id FOR KEY SHARE",
)
_SAME = statement(
    "documents.same",
    f"""SELECT {document_codec.DOCUMENT} FROM documents d WHERE d.user_id = $1 AND d.sha256 = $2
        AND d.kind = $3 AND d.max_tokens = $4 AND d.overlap_tokens = $5 FOR UPDATE""",
)
_INSERT = statement(
    "documents.insert",
    """INSERT INTO documents (id, number, user_id, sha256, kind, max_tokens, overlap_tokens, status,
        progress, characters, chunks, words, notices, usage_bytes, revision, created_ms, priority,
        due_ms, attempts)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, 0, 0, 0, '[]', 0, 0, $8, $9, $8, 0)
        ON CONFLICT (user_id, sha256, kind, max_tokens, overlap_tokens) DO NOTHING""",
)
_HURRY = statement("documents.hurry", "UPDATE documents SET priority = $2 WHERE id = $1")
_AGAIN = statement(
    "documents.again",
    """UPDATE documents SET status = 'pending', progress = 0, failure_code = NULL,
        failure_message = NULL, due_ms = $2, attempts = 0 WHERE id = $1 AND status = 'failed'""",
)
_WANT = statement(
    "file_documents.insert",
    "INSERT INTO file_documents (file_id, document_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
)
_OF_FILES = statement(
    "documents.of_files",
    f"""SELECT w.file_id, {document_codec.DOCUMENT} FROM documents d
        JOIN (SELECT file_id, document_id FROM file_documents WHERE file_id = ANY($1)
            UNION SELECT file_id, document_id FROM vector_store_files WHERE file_id = ANY($1)) w
        ON w.document_id = d.id WHERE d.user_id = $2""",
)
_TEXT = statement(
    "document_texts.get",
    "SELECT text, headings, page_starts FROM document_texts WHERE document_id = $1",
)
_HOLD_UNNEEDED = statement(
    "documents.hold", "SELECT id FROM documents WHERE id = ANY($1) ORDER BY id FOR UPDATE"
)
_UNNEEDED = statement(
    "documents.unneeded",
    """SELECT d.id, d.number, d.chunks FROM documents d WHERE d.id = ANY($1)
        AND NOT EXISTS (SELECT 1 FROM vector_store_files v WHERE v.document_id = d.id)
        AND NOT EXISTS (SELECT 1 FROM file_documents f WHERE f.document_id = d.id)""",
)
_DELETE_PLACES = {
    table: statement(f"{table}.delete", f"DELETE FROM {table} WHERE place >= $1 AND place < $2")
    for table in ("chunk_words", "chunks")
}
_DELETE_FIRST = {
    table: statement(
        f"{table}.delete_first",
        f"""DELETE FROM {table} WHERE place IN (SELECT place FROM {table}
            WHERE place >= $1 AND place < $2 ORDER BY place LIMIT $3)""",
    )
    for table in ("chunk_words", "chunks")
}
_NOTE_REMOVAL = statement(
    "removed_documents.insert", "INSERT INTO removed_documents (number) VALUES ($1)"
)
_ANY_REMOVAL = statement(
    "removed_documents.first", "SELECT number FROM removed_documents ORDER BY number LIMIT 1"
)
_HOLD_REMOVAL = statement(
    "removed_documents.hold",
    "SELECT number FROM removed_documents WHERE number = $1 FOR UPDATE",
)
_END_REMOVAL = statement(
    "removed_documents.delete", "DELETE FROM removed_documents WHERE number = $1"
)
_DELETE_PARTS = {
    table: statement(f"{table}.delete", f"DELETE FROM {table} WHERE document_id = ANY($1)")
    for table in ("document_vectors", "document_texts")
}
_DELETE = statement("documents.delete", "DELETE FROM documents WHERE id = ANY($1)")

REMOVED_AT_ONCE = 2000
"""Chunks that the transaction of a deletion removes itself: some hundredths of a second."""


async def held_files(tx: Transaction, user: UserId, ids: Sequence[FileId]) -> dict[FileId, File]:
    """Raises RecordNotFound unless all of them are there, until this transaction ends."""
    found = map(codec.file, await tx.fetch(_FILES, list(ids)))
    files = {file.id: file for file in found if file.user == user}
    for id in ids:
        if id not in files:
            raise RecordNotFound("file", id)
    return files


async def ensure(
    tx: Transaction, file: File, chunking: Chunking, now_ms: int, *, priority: int, again: bool
) -> Document:
    """The document of a file that is held. With `again`, one that has failed is tried again."""
    suffix = PurePosixPath(file.filename).suffix.lower()
    key = (file.sha256, f"{file.media_type} {suffix}", chunking.max_tokens, chunking.overlap_tokens)
    while (row := await tx.fetchrow(_SAME, file.user, *key)) is None:
        number = await next_number(tx, "documents")
        id = new_document_id()
        await tx.execute(_INSERT, id, number, file.user, *key, now_ms, priority)
    document = document_codec.document(row)
    waits = document.status in {DocumentStatus.PENDING, DocumentStatus.READING}
    if waits and priority == WAITED_FOR:
        await tx.execute(_HURRY, document.id, priority)
    if again and document.status is DocumentStatus.FAILED:
        await tx.execute(_AGAIN, document.id, now_ms)
    return document


async def next_number(tx: Transaction, name: str) -> int:
    row = await tx.fetchrow(COUNT, name)
    assert row is not None, "it returns what it wrote"
    number: int = row[0]
    return number


async def want(
    tx: Transaction, user: UserId, file: FileId, now_ms: int, chunking: Chunking
) -> Document | None:
    try:
        files = await held_files(tx, user, [file])
    except RecordNotFound:
        return None
    document = await ensure(tx, files[file], chunking, now_ms, priority=WAITED_FOR, again=False)
    await tx.execute(_WANT, file, document.id)
    return document


async def of_files(
    tx: Transaction, user: UserId, files: Sequence[FileId]
) -> dict[FileId, Document]:
    rows = await tx.fetch(_OF_FILES, list(files), user)
    found = [(FileId(row[0]), document_codec.document(tuple(row)[1:])) for row in rows]
    found.sort(key=lambda each: _preference(each[1]), reverse=True)
    return dict(found)


def _preference(document: Document) -> tuple[int, int, str]:
    """The least is shown."""
    order = (DocumentStatus.READY, DocumentStatus.READING, DocumentStatus.PENDING)
    rank = order.index(document.status) if document.status in order else len(order)
    return rank, document.created_ms, document.id


async def text(tx: Transaction, user: UserId, file: FileId) -> DocumentText | None:
    document = (await of_files(tx, user, [file])).get(file)
    if document is None or document.status is not DocumentStatus.READY:
        return None
    row = await tx.fetchrow(_TEXT, document.id)
    return None if row is None else document_codec.document_text(document, row)


async def remove_unneeded(tx: Transaction, ids: Sequence[str]) -> Counter[str]:
    """Of these documents, those that nothing needs, with all their text; the rows by table."""
    gone: Counter[str] = Counter()
    if not ids:
        return gone
    # Whoever puts a file in again meanwhile either has its document before this, or makes another.
    await tx.fetch(_HOLD_UNNEEDED, list(ids))
    rows = await tx.fetch(_UNNEEDED, list(ids))
    if not rows:
        return gone
    unneeded = [row[0] for row in rows]
    left = REMOVED_AT_ONCE
    for _, number, chunks in rows:
        if chunks <= left:
            left -= chunks
            gone += await _remove_chunks(tx, number)
        else:  # nothing finds them any more, and they go with `remove_some`
            await tx.execute(_NOTE_REMOVAL, number)
            gone += Counter(dict.fromkeys(_DELETE_FIRST, chunks))
    for table, sql in _DELETE_PARTS.items():
        gone[table] += await tx.execute(sql, unneeded)
    gone["documents"] += await tx.execute(_DELETE, unneeded)
    return gone


async def remove_some(tx: Transaction, most: int) -> bool:
    """Some chunks of a document that is gone. False when none are left of any."""
    row = await tx.fetchrow(_ANY_REMOVAL)
    if row is None:
        return False
    number = row[0]
    if await tx.fetchrow(_HOLD_REMOVAL, number) is None:
        return True  # another server has removed the last of it
    places = _places(number)
    counts = [await tx.execute(sql, *places, most) for sql in _DELETE_FIRST.values()]
    if max(counts) < most:
        await tx.execute(_END_REMOVAL, number)
    return True


async def _remove_chunks(tx: Transaction, number: int) -> Counter[str]:
    places = _places(number)
    return Counter({table: await tx.execute(sql, *places) for table, sql in _DELETE_PLACES.items()})


def _places(number: int) -> tuple[int, int]:
    """Of a document's chunks: the first one there may be, and the first one of the next."""
    return number << PLACE_BITS, (number + 1) << PLACE_BITS


async def remove_text(tx: Transaction, id: DocumentId, number: int) -> None:
    """Before it is written anew."""
    await _remove_chunks(tx, number)
    for sql in _DELETE_PARTS.values():
        await tx.execute(sql, [id])
