"""Units of work on the making of documents: taken by one server, held under a lease, and written
all at once."""

from typing import Any

import msgspec

from antiphon.document_records import DocumentFailure, DocumentWork, ReadyDocument
from antiphon.ids import DocumentId, FileId, NodeId
from antiphon.persistence import codec, document_codec, documents
from antiphon.persistence.document_schema import CHUNKS_AT_MOST, PLACE_BITS
from antiphon.persistence.port import Transaction, statement
from antiphon.persistence.words import ChunkWords, chunk_words, marks
from antiphon.reading_files import EXTRACTOR

_DUE = statement(
    "documents.due",
    """SELECT id FROM documents
        WHERE priority = $3 AND due_ms <= $1 AND (owner IS NULL OR lease_ms <= $1)
        ORDER BY due_ms, number LIMIT $2 FOR UPDATE SKIP LOCKED""",
)
_TAKE = statement(
    "documents.take",
    """UPDATE documents SET owner = $2, lease_ms = $3,
        status = CASE WHEN status = 'pending' THEN 'reading' ELSE status END
        WHERE id = ANY($1)""",
)
_TAKEN = statement(
    "documents.taken",
    f"SELECT {document_codec.DOCUMENT}, d.attempts FROM documents d WHERE d.id = ANY($1)",
)
_FILES = statement(
    "files.of_documents",
    """SELECT w.document_id, f.id, f.filename, f.media_type, f.bytes
        FROM file_documents w JOIN files f ON f.id = w.file_id WHERE w.document_id = ANY($1)
        UNION SELECT v.document_id, f.id, f.filename, f.media_type, f.bytes
        FROM vector_store_files v JOIN files f ON f.id = v.file_id WHERE v.document_id = ANY($1)""",
)
_RENEW = statement(
    "documents.renew",
    "UPDATE documents SET lease_ms = $3, progress = $4 WHERE id = $1 AND owner = $2",
)
_FINISH = statement(
    "documents.finish",
    """UPDATE documents SET status = 'ready', progress = 1, failure_code = NULL,
        failure_message = NULL, title = $3, media_type = $4, pages = $5, characters = $6,
        chunks = $7, words = $8, notices = $9, usage_bytes = $10, extractor = $11, model = $12,
        revision = $13, due_ms = NULL, attempts = 0, owner = NULL, lease_ms = NULL
        WHERE id = $1 AND owner = $2""",
)
_HELD = statement(
    "documents.held",
    "SELECT number, user_id FROM documents WHERE id = $1 AND owner = $2 FOR UPDATE",
)
_INSERT_TEXT = statement(
    "document_texts.insert",
    "INSERT INTO document_texts (document_id, headings, page_starts, text) VALUES ($1, $2, $3, $4)",
)
_INSERT_VECTORS = statement(
    "document_vectors.insert",
    "INSERT INTO document_vectors (document_id, vectors) VALUES ($1, $2)",
)
_INSERT_CHUNK = statement(
    "chunks.insert",
    """INSERT INTO chunks (place, page, headings, starts, ends, text)
        VALUES ($1, $2, $3, $4, $5, $6)""",
)
_INSERT_WORDS = statement(
    "chunk_words.insert",
    "INSERT INTO chunk_words (place, length, repeated, words) VALUES ($1, $2, $3, $4)",
)
# The index knows the set of a vector store by its revision.
_STORES_CHANGE = statement(
    "vector_stores.with_document",
    """UPDATE vector_stores SET revision = revision + 1
        WHERE id IN (SELECT store_id FROM vector_store_files WHERE document_id = $1)""",
)
_FAIL = statement(
    "documents.fail",
    """UPDATE documents SET status = CASE WHEN status = 'ready' THEN status ELSE 'failed' END,
        failure_code = CASE WHEN status = 'ready' THEN NULL ELSE CAST($3 AS TEXT) END,
        failure_message = CASE WHEN status = 'ready' THEN NULL ELSE CAST($4 AS TEXT) END,
        extractor = CASE WHEN status = 'ready' THEN extractor ELSE $5 END,
        due_ms = NULL, owner = NULL, lease_ms = NULL
        WHERE id = $1 AND owner = $2""",
)
_RELEASE = statement(
    "documents.release",
    """UPDATE documents SET status = CASE WHEN status = 'ready' THEN status ELSE 'pending' END,
        due_ms = $3, attempts = attempts + $4, owner = NULL, lease_ms = NULL
        WHERE id = $1 AND owner = $2""",
)
_REMAKE = statement(
    "documents.remake",
    """UPDATE documents SET due_ms = $3, attempts = 0, priority = 1, failure_code = NULL,
        failure_message = NULL, progress = CASE WHEN status = 'failed' THEN 0 ELSE progress END,
        status = CASE WHEN status = 'failed' THEN 'pending' ELSE status END WHERE id IN (
        SELECT d.id FROM documents d WHERE d.due_ms IS NULL AND (d.extractor <> $1
            OR (d.status = 'ready' AND COALESCE(d.model, '') <> $2))
        ORDER BY d.number LIMIT $4)""",
)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What takes the time of a processor, done before anything is locked."""

    headings: str
    page_starts: str
    chunks: list[tuple[Any, ...]]
    found_by: list[tuple[int, ChunkWords]]
    words: int
    usage_bytes: int


def prepared(ready: ReadyDocument) -> Prepared:
    """Raises ValueError for more chunks than a document may have."""
    read = ready.read
    if len(read.chunks) > CHUNKS_AT_MOST:
        raise ValueError(f"{len(read.chunks)} chunks in one document")
    found_by = [(chunk.number, chunk_words(chunk.text)) for chunk in read.chunks]
    texts = (read.text, *(chunk.text for chunk in read.chunks))
    return Prepared(
        headings=codec.to_json(read.headings),
        page_starts=codec.to_json(read.page_starts),
        chunks=[
            (each.number, each.page, codec.to_json(each.headings), each.start, each.end, each.text)
            for each in read.chunks
        ],
        found_by=found_by,
        words=sum(each.length for _, each in found_by),
        usage_bytes=sum(len(text.encode()) for text in texts) + len(ready.vectors),
    )


async def take(
    tx: Transaction, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int
) -> tuple[DocumentWork, ...]:
    ids: list[str] = []
    for priority in (documents.WAITED_FOR, documents.IN_STORE):
        ids += [row[0] for row in await tx.fetch(_DUE, now_ms, limit - len(ids), priority)]
    if not ids:
        return ()
    await tx.execute(_TAKE, ids, owner, lease_ms)
    files = {row[0]: tuple(row)[1:] for row in sorted(map(tuple, await tx.fetch(_FILES, ids)))}
    taken = {row[0]: tuple(row) for row in await tx.fetch(_TAKEN, ids)}
    work = []
    for id in filter(files.__contains__, ids):
        *fields, attempts = taken[id]
        file, filename, media_type, size = files[id]
        work.append(
            DocumentWork(
                document=document_codec.document(fields),
                file=FileId(file),
                filename=filename,
                media_type=media_type,
                bytes=size,
                attempts=attempts,
            )
        )
    return tuple(work)


async def renew(
    tx: Transaction, id: DocumentId, owner: NodeId, lease_ms: int, progress: float
) -> bool:
    return await tx.execute(_RENEW, id, owner, lease_ms, float(progress)) == 1


async def finish(
    tx: Transaction, id: DocumentId, owner: NodeId, ready: ReadyDocument, prepared: Prepared
) -> bool:
    held = await tx.fetchrow(_HELD, id, owner)
    if held is None:
        return False
    number, user = held
    read, base, mark = ready.read, number << PLACE_BITS, marks(user)
    await documents.remove_text(tx, id, number)
    await tx.execute(_INSERT_TEXT, id, prepared.headings, prepared.page_starts, read.text)
    if ready.vectors:
        await tx.execute(_INSERT_VECTORS, id, ready.vectors)
    await tx.executemany(
        _INSERT_CHUNK, [(base + number, *rest) for number, *rest in prepared.chunks]
    )
    await tx.executemany(
        _INSERT_WORDS,
        [
            (base + number, each.length, each.repeated, f"{mark} {each.words}".rstrip())
            for number, each in prepared.found_by
        ],
    )
    await tx.execute(
        _FINISH,
        id,
        owner,
        read.title,
        read.media_type,
        len(read.page_starts) or None,
        len(read.text),
        len(read.chunks),
        prepared.words,
        codec.to_json(read.notices),
        prepared.usage_bytes,
        ready.extractor,
        ready.model,
        await documents.next_number(tx, "revisions"),
    )
    await tx.execute(_STORES_CHANGE, id)
    return True


async def fail(tx: Transaction, id: DocumentId, owner: NodeId, failure: DocumentFailure) -> bool:
    told = (failure.code, failure.message, EXTRACTOR)
    return await tx.execute(_FAIL, id, owner, *told) == 1


async def release(
    tx: Transaction, id: DocumentId, owner: NodeId, again_ms: int, *, counted: bool
) -> bool:
    return await tx.execute(_RELEASE, id, owner, again_ms, int(counted)) == 1


async def remake(
    tx: Transaction, extractor: str, model: str | None, now_ms: int, limit: int
) -> int:
    return await tx.execute(_REMAKE, extractor, model or "", now_ms, limit)
