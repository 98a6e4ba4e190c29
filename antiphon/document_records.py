"""What the store keeps of files that are searched in, as values: documents, vector stores, the
files in them, and what a search finds. They are records as those in `records`."""

import enum
from dataclasses import dataclass, field

from antiphon.ids import DocumentId, FileBatchId, FileId, UserId, VectorStoreId
from antiphon.reading_files import Chunking, Heading, ReadDocument, TextChunk

_DAY_MS = 24 * 3_600_000

DEFAULT_CHUNKING = Chunking()

Attributes = dict[str, str | float | bool]
"""What a user notes about a file in a vector store, to search by."""


class DocumentStatus(enum.StrEnum):
    """How far the reading of a file has come."""

    PENDING = "pending"
    READING = "reading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFailure:
    """Why a file could not be read: a code for programs, a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was made of the content of a user's files, cut in one way. Files with the same content
    and the same kind of name share it; those of other users never do."""

    id: DocumentId
    user: UserId
    sha256: str
    chunking: Chunking
    status: DocumentStatus
    created_ms: int
    progress: float = 0.0
    """0…1."""
    failure: DocumentFailure | None = None
    """When failed."""
    title: str | None = None
    media_type: str | None = None
    """What the content was found to be."""
    pages: int | None = None
    """None where there are none, or none are known yet."""
    characters: int = 0
    chunks: int = 0
    notices: tuple[str, ...] = ()
    usage_bytes: int = 0
    """Of text and vectors, as they are stored."""
    extractor: str | None = None
    """Which reader has made it."""
    model: str | None = None
    """Which model its vectors are of; None where it has none."""
    revision: int = 0
    """Another one, never used for another document, whenever it was made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """A document's text as it was read."""

    document: Document
    text: str
    headings: tuple[Heading, ...]
    page_starts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyDocument:
    """All that is written when a document is ready. `vectors` are those of its chunks in the order
    of their numbers, one after the other and all as long."""

    read: ReadDocument
    extractor: str
    model: str | None
    vectors: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWork:
    """A document that is to be made, held by whoever took it. `file` is one of those with its
    content, whose name and media type say how to read it."""

    document: Document
    file: FileId
    filename: str
    media_type: str
    bytes: int
    attempts: int
    """How often it was tried and let go of."""


class VectorStoreStatus(enum.StrEnum):
    """As the API shows it."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    EXPIRED = "expired"


class StoreFileStatus(enum.StrEnum):
    """Where a file in a vector store stands."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """How many files of a vector store, or of a batch, stand where."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.in_progress + self.completed + self.failed + self.cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStore:
    """A named set of files that are searched in as one."""

    id: VectorStoreId
    user: UserId
    created_ms: int
    last_active_ms: int
    name: str = ""
    description: str = ""
    """What it is for; it never changes."""
    metadata: dict[str, str] = field(default_factory=dict)
    expires_after_days: int | None = None
    """Counted from when it was last active."""
    counts: FileCounts = field(default_factory=FileCounts)
    usage_bytes: int = 0
    revision: int = 0
    """Grows whenever another set of chunks, or of attributes, would be searched."""
    expired: bool = False
    """Whether its files were removed since its time was over; that is for good."""

    @property
    def expires_ms(self) -> int | None:
        days = self.expires_after_days
        return None if days is None else self.last_active_ms + days * _DAY_MS

    def status(self, now_ms: int) -> VectorStoreStatus:
        expires_ms = self.expires_ms
        if self.expired or (expires_ms is not None and expires_ms <= now_ms):
            return VectorStoreStatus.EXPIRED
        if self.counts.in_progress:
            return VectorStoreStatus.IN_PROGRESS
        return VectorStoreStatus.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStoreFile:
    """A file that is to be put into a vector store."""

    file: FileId
    chunking: Chunking = DEFAULT_CHUNKING
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStoreFile:
    """A file in a vector store. Its status is that of its document; without one, it was
    cancelled."""

    store: VectorStoreId
    file: FileId
    filename: str
    document: DocumentId | None
    status: StoreFileStatus
    created_ms: int
    chunking: Chunking
    attributes: Attributes
    failure: DocumentFailure | None = None
    usage_bytes: int = 0
    progress: float = 0.0
    batch: FileBatchId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBatch:
    """Files that were put into a vector store together."""

    id: FileBatchId
    store: VectorStoreId
    created_ms: int
    counts: FileCounts
    cancelled: bool = False

    @property
    def status(self) -> StoreFileStatus:
        if self.cancelled:
            return StoreFileStatus.CANCELLED
        if self.counts.in_progress:
            return StoreFileStatus.IN_PROGRESS
        if self.counts.total and self.counts.failed == self.counts.total:
            return StoreFileStatus.FAILED
        return StoreFileStatus.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFile:
    """A file that can be searched in: its document is ready."""

    file: FileId
    filename: str
    attributes: Attributes
    document: DocumentId
    chunks: int
    model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChunk:
    """A chunk as a search shows it. `score` is the full-text search's, the higher the better: 1 for
    a chunk of average length that has each of the words once. 0 where it was asked for by its
    number."""

    file: FileId
    filename: str
    chunk: TextChunk
    attributes: Attributes = field(default_factory=dict)
    store: VectorStoreId | None = None
    """Where it was found; None is outside of any."""
    score: float = 0.0
