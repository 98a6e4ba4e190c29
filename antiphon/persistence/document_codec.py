"""Between rows and the records of documents and vector stores."""

import msgspec

from antiphon.document_records import (
    Document,
    DocumentFailure,
    DocumentStatus,
    DocumentText,
    FileBatch,
    FileCounts,
    StoreFileStatus,
    VectorStore,
    VectorStoreFile,
)
from antiphon.ids import DocumentId, FileBatchId, FileId, UserId, VectorStoreId
from antiphon.persistence.codec import from_json
from antiphon.persistence.port import Row
from antiphon.reading_files import Chunking, Heading, TextChunk

_headings = msgspec.json.Decoder(tuple[Heading, ...])
_titles = msgspec.json.Decoder(tuple[str, ...])
_positions = msgspec.json.Decoder(tuple[int, ...])

DOCUMENT = (
    "d.id, d.user_id, d.sha256, d.max_tokens, d.overlap_tokens, d.status, d.created_ms, "
    "d.progress, d.failure_code, d.failure_message, d.title, d.media_type, d.pages, "
    "d.characters, d.chunks, d.notices, d.usage_bytes, d.extractor, d.model, d.revision"
)
VECTOR_STORE = (
    "s.id, s.user_id, s.name, s.description, s.metadata, s.created_ms, s.last_active_ms, "
    "s.expires_after_days, s.expired, s.revision"
)
STATUS = """CASE WHEN v.document_id IS NULL THEN 'cancelled' WHEN d.status = 'ready'
    THEN 'completed' WHEN d.status = 'failed' THEN 'failed' ELSE 'in_progress' END"""
"""Of a file `v` in a vector store with its document `d`, which may be none."""
STORE_FILE = (
    f"v.store_id, v.file_id, f.filename, v.document_id, {STATUS}, v.created_ms, v.max_tokens, "
    "v.overlap_tokens, v.attributes, d.failure_code, d.failure_message, d.usage_bytes, "
    "d.progress, v.batch_id"
)
CHUNK = "c.place, c.text, c.starts, c.ends, c.headings, c.page"


def document(row: Row) -> Document:
    (
        id,
        owner,
        sha256,
        max_tokens,
        overlap_tokens,
        status,
        created_ms,
        progress,
        failure_code,
        failure_message,
        title,
        media_type,
        pages,
        characters,
        chunks,
        notices,
        usage_bytes,
        extractor,
        model,
        revision,
    ) = row
    return Document(
        id=DocumentId(id),
        user=UserId(owner),
        sha256=sha256,
        chunking=Chunking(max_tokens=max_tokens, overlap_tokens=overlap_tokens),
        status=DocumentStatus(status),
        created_ms=created_ms,
        progress=progress,
        failure=_failure(failure_code, failure_message),
        title=title,
        media_type=media_type,
        pages=pages,
        characters=characters,
        chunks=chunks,
        notices=_titles.decode(notices),
        usage_bytes=usage_bytes,
        extractor=extractor,
        model=model,
        revision=revision,
    )


def document_text(document: Document, row: Row) -> DocumentText:
    text, headings, page_starts = row
    return DocumentText(
        document=document,
        text=text,
        headings=_headings.decode(headings),
        page_starts=_positions.decode(page_starts),
    )


def chunk(row: Row, number: int) -> TextChunk:
    _, text, starts, ends, headings, page = row
    return TextChunk(
        number=number,
        text=text,
        start=starts,
        end=ends,
        headings=_titles.decode(headings),
        page=page,
    )


def vector_store(row: Row, counts: FileCounts, usage_bytes: int) -> VectorStore:
    id, owner, name, description, metadata, created_ms, last_active_ms, days, *rest = row
    expired, revision = rest
    return VectorStore(
        id=VectorStoreId(id),
        user=UserId(owner),
        created_ms=created_ms,
        last_active_ms=last_active_ms,
        name=name,
        description=description,
        metadata=from_json(metadata),
        expires_after_days=days,
        counts=counts,
        usage_bytes=usage_bytes,
        revision=revision,
        expired=bool(expired),
    )


def counts(by_status: dict[str, int]) -> FileCounts:
    return FileCounts(**{StoreFileStatus(status).value: n for status, n in by_status.items()})


def store_file(row: Row) -> VectorStoreFile:
    (
        store,
        file,
        filename,
        document_id,
        status,
        created_ms,
        max_tokens,
        overlap_tokens,
        attributes,
        failure_code,
        failure_message,
        usage_bytes,
        progress,
        batch,
    ) = row
    return VectorStoreFile(
        store=VectorStoreId(store),
        file=FileId(file),
        filename=filename,
        document=None if document_id is None else DocumentId(document_id),
        status=StoreFileStatus(status),
        created_ms=created_ms,
        chunking=Chunking(max_tokens=max_tokens, overlap_tokens=overlap_tokens),
        attributes=from_json(attributes),
        failure=_failure(failure_code, failure_message),
        usage_bytes=usage_bytes or 0,
        progress=progress or 0.0,
        batch=None if batch is None else FileBatchId(batch),
    )


def file_batch(row: Row, counts: FileCounts) -> FileBatch:
    id, store, created_ms, cancelled = row
    return FileBatch(
        id=FileBatchId(id),
        store=VectorStoreId(store),
        created_ms=created_ms,
        counts=counts,
        cancelled=bool(cancelled),
    )


def _failure(code: str | None, message: str | None) -> DocumentFailure | None:
    return None if code is None else DocumentFailure(code=code, message=message or "")
