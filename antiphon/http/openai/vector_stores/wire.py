"""Vector stores, their files and what is found in them as they go on the wire."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.document_records import (
    DocumentFailure,
    FileBatch,
    FileCounts,
    StoreFileStatus,
    VectorStore,
    VectorStoreFile,
    VectorStoreStatus,
)
from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.lists import ListBody
from antiphon.http.openai.vector_stores.schema import (
    AttributesBody,
    ExpiresAfter,
    StaticChunking,
    StaticStrategy,
)
from antiphon.sources import Found


class FileCountsObject(msgspec.Struct, kw_only=True):
    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class VectorStoreObject(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    description: str
    """Ours; the specification only takes it."""
    usage_bytes: int
    file_counts: FileCountsObject
    status: VectorStoreStatus
    expires_after: ExpiresAfter | UnsetType = UNSET
    """Where there is none it is left out: the specification has no null there."""
    expires_at: int | None
    last_active_at: int | None
    metadata: dict[str, str]


class LastError(msgspec.Struct, kw_only=True):
    """`reason` is ours: which of its kinds it is exactly."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str
    reason: str | UnsetType = UNSET


class StoreFileObject(msgspec.Struct, kw_only=True):
    """`progress`, from 0 to 1, and `filename` are ours."""

    id: str
    object: Literal["vector_store.file"] = "vector_store.file"
    usage_bytes: int
    created_at: int
    vector_store_id: str
    status: StoreFileStatus
    last_error: LastError | None
    chunking_strategy: StaticStrategy
    attributes: AttributesBody
    filename: str
    progress: float


class FileBatchObject(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: StoreFileStatus
    file_counts: FileCountsObject


class DeletedVectorStore(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["vector_store.deleted"] = "vector_store.deleted"
    deleted: Literal[True] = True
    receipt: ReceiptObject


class DeletedStoreFile(msgspec.Struct, kw_only=True):
    """The file itself stays."""

    id: str
    object: Literal["vector_store.file.deleted"] = "vector_store.file.deleted"
    deleted: Literal[True] = True
    receipt: ReceiptObject


class TextContent(msgspec.Struct, kw_only=True):
    type: Literal["text"] = "text"
    text: str


class FileContent(msgspec.Struct, kw_only=True):
    """A file as it is searched in: its pieces, in order."""

    object: Literal["vector_store.file_content.page"] = "vector_store.file_content.page"
    data: list[TextContent]
    has_more: bool = False
    next_page: str | None = None


class SearchResult(msgspec.Struct, kw_only=True):
    file_id: str
    filename: str
    score: Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
    attributes: AttributesBody
    content: list[TextContent]


class SearchResults(msgspec.Struct, kw_only=True):
    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[SearchResult]
    has_more: bool = False
    next_page: str | None = None


VectorStoreList = ListBody[VectorStoreObject]
StoreFileList = ListBody[StoreFileObject]


def vector_store_object(store: VectorStore, now_ms: int) -> VectorStoreObject:
    """The vector store, its times in seconds."""
    days = store.expires_after_days
    return VectorStoreObject(
        id=store.id,
        created_at=store.created_ms // 1000,
        name=store.name,
        description=store.description,
        usage_bytes=store.usage_bytes,
        file_counts=_counts(store.counts),
        status=store.status(now_ms),
        expires_after=UNSET if days is None else ExpiresAfter(anchor="last_active_at", days=days),
        expires_at=None if store.expires_ms is None else store.expires_ms // 1000,
        last_active_at=store.last_active_ms // 1000,
        metadata=store.metadata,
    )


def store_file_object(file: VectorStoreFile) -> StoreFileObject:
    """The file, its times in seconds."""
    return StoreFileObject(
        id=file.file,
        usage_bytes=file.usage_bytes,
        created_at=file.created_ms // 1000,
        vector_store_id=file.store,
        status=file.status,
        last_error=None if file.failure is None else _last_error(file.failure),
        chunking_strategy=StaticStrategy(
            static=StaticChunking(
                max_chunk_size_tokens=file.chunking.max_tokens,
                chunk_overlap_tokens=file.chunking.overlap_tokens,
            )
        ),
        attributes=dict(file.attributes),
        filename=file.filename,
        progress=file.progress,
    )


def file_batch_object(batch: FileBatch) -> FileBatchObject:
    """The batch, its times in seconds."""
    return FileBatchObject(
        id=batch.id,
        created_at=batch.created_ms // 1000,
        vector_store_id=batch.store,
        status=batch.status,
        file_counts=_counts(batch.counts),
    )


def search_results(queries: Sequence[str], found: Sequence[Found]) -> SearchResults:
    """What was found, the best first."""
    return SearchResults(
        search_query=list(queries),
        data=[
            SearchResult(
                file_id=each.file,
                filename=each.filename,
                score=each.score,
                attributes=dict(each.attributes),
                content=[TextContent(text=each.text)],
            )
            for each in found
        ],
    )


def _counts(counts: FileCounts) -> FileCountsObject:
    return FileCountsObject(
        in_progress=counts.in_progress,
        completed=counts.completed,
        failed=counts.failed,
        cancelled=counts.cancelled,
        total=counts.total,
    )


def _last_error(failure: DocumentFailure) -> LastError:
    """In the API's three codes; ours says more."""
    match failure.code:
        case "server_error" | "unsupported_file" | "invalid_file" as code:
            return LastError(code=code, message=failure.message)
        case reason:
            return LastError(code="invalid_file", message=failure.message, reason=reason)
