"""What the core needs from a store to find things in files: the part of `storage.Store` for
documents, vector stores, their ingestion and full-text search, under the same rules."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from antiphon.document_records import (
    DEFAULT_CHUNKING,
    Attributes,
    Document,
    DocumentFailure,
    DocumentText,
    DocumentWork,
    FileBatch,
    FoundChunk,
    NewStoreFile,
    ReadyDocument,
    SearchFile,
    StoreFileStatus,
    VectorStore,
    VectorStoreFile,
)
from antiphon.ids import DocumentId, FileBatchId, FileId, NodeId, UserId, VectorStoreId
from antiphon.reading_files import Chunking
from antiphon.records import Page, Receipt


class DocumentStore(Protocol):
    """What every method may raise, `storage.Store` says.

    Where a search may look is said in the same way everywhere: in the files of these vector
    stores, or, without any, in these files themselves, as far as `want_document` was asked for
    them; with both, in those of the stores' files that are named.
    """

    # ── vector stores ────────────────────────────────────────────────────────────────────────────

    async def create_vector_store(
        self, store: VectorStore, files: Sequence[NewStoreFile] = ()
    ) -> VectorStore:
        """With these files in it. Raises RecordNotFound for a file that isn't there."""

    async def vector_store(self, user: UserId, id: VectorStoreId) -> VectorStore | None: ...

    async def vector_stores(self, user: UserId, page: Page) -> tuple[VectorStore, ...]:
        """By creation. Raises UnknownCursor."""

    async def update_vector_store(self, store: VectorStore) -> VectorStore | None:
        """Replace name, metadata, expires_after_days and last_active_ms. One that has expired
        stays so."""

    async def delete_vector_store(
        self, user: UserId, id: VectorStoreId, now_ms: int
    ) -> Receipt | None:
        """With the documents that nothing else needs. The files stay."""

    async def touch_vector_stores(self, used: Mapping[VectorStoreId, int]) -> None:
        """Note when they were last active, in milliseconds; never earlier than it was."""

    # ── files in vector stores ───────────────────────────────────────────────────────────────────

    async def add_vector_store_files(
        self,
        user: UserId,
        id: VectorStoreId,
        files: Sequence[NewStoreFile],
        now_ms: int,
        *,
        batch: FileBatchId | None = None,
    ) -> tuple[VectorStoreFile, ...]:
        """All of them or none, as a batch if there is an id for one. One that is in it already is
        put in anew, and read again if it had failed, was cancelled or is to be cut in another way.
        Raises RecordNotFound for a file or a vector store that isn't there, or has expired."""

    async def vector_store_file(
        self, user: UserId, id: VectorStoreId, file: FileId
    ) -> VectorStoreFile | None: ...

    async def vector_store_files(
        self,
        user: UserId,
        id: VectorStoreId,
        page: Page,
        *,
        status: StoreFileStatus | None = None,
        batch: FileBatchId | None = None,
    ) -> tuple[VectorStoreFile, ...] | None:
        """By when they were put in; None where there is no such vector store. Raises
        UnknownCursor."""

    async def set_file_attributes(
        self, user: UserId, id: VectorStoreId, file: FileId, attributes: Attributes
    ) -> VectorStoreFile | None: ...

    async def remove_vector_store_file(
        self, user: UserId, id: VectorStoreId, file: FileId, now_ms: int
    ) -> Receipt | None:
        """With its document, unless something else needs it. The file stays."""

    async def file_batch(
        self, user: UserId, id: VectorStoreId, batch: FileBatchId
    ) -> FileBatch | None: ...

    async def cancel_file_batch(
        self, user: UserId, id: VectorStoreId, batch: FileBatchId
    ) -> FileBatch | None:
        """Those of its files that are still in progress won't be read."""

    # ── documents ────────────────────────────────────────────────────────────────────────────────

    async def want_document(
        self, user: UserId, file: FileId, now_ms: int, *, chunking: Chunking = DEFAULT_CHUNKING
    ) -> Document | None:
        """The file's document, to be made if there is none yet; from then on it stays as long as
        the file. None when there is no such file."""

    async def documents(self, user: UserId, files: Sequence[FileId]) -> dict[FileId, Document]:
        """Of those that have one, in whichever way it is cut; a ready one before others."""

    async def document_text(self, user: UserId, file: FileId) -> DocumentText | None:
        """None unless one is ready."""

    # ── ingestion ────────────────────────────────────────────────────────────────────────────────

    async def take_documents(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 4
    ) -> tuple[DocumentWork, ...]:
        """Documents that are to be made and that nobody holds, oldest first, held until
        `lease_ms`; those that somebody waits for in a conversation before those of vector
        stores."""

    async def renew_document(
        self, id: DocumentId, owner: NodeId, *, lease_ms: int, progress: float
    ) -> bool:
        """Hold it until `lease_ms`, and note how far it has come; False when the owner has lost
        it, or nobody needs it any more."""

    async def finish_document(self, id: DocumentId, owner: NodeId, ready: ReadyDocument) -> bool:
        """It is ready, with all its text, chunks and vectors, which take the place of what was
        there. False when the owner has lost it; then nothing is written."""

    async def fail_document(self, id: DocumentId, owner: NodeId, failure: DocumentFailure) -> bool:
        """For good: it is only tried again by another extractor, or when its file is put into a
        vector store again. A document that was ready, and was to be made anew, stays as it was."""

    async def release_document(
        self, id: DocumentId, owner: NodeId, *, again_ms: int, counted: bool = True
    ) -> bool:
        """Let go of it, to be taken by anybody from then on; `attempts` grows if it is
        `counted`."""

    async def remake_documents(
        self, extractor: str, model: str | None, now_ms: int, *, limit: int = 500
    ) -> int:
        """Have those made anew that another reader or model has made, a part at a time; how many.
        Until then they are searched as they are."""

    # ── search ───────────────────────────────────────────────────────────────────────────────────

    async def search_files(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        files: Collection[FileId] | None = None,
    ) -> tuple[SearchFile, ...]:
        """Which files a search there looks into, a file in several of the stores once. Those of
        stores that have expired are none."""

    async def search_text(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        terms: Sequence[str],
        limit: int,
        *,
        files: Collection[FileId] | None = None,
    ) -> tuple[FoundChunk, ...]:
        """The chunks that have any of these words, the best first (BM25). Words are words: none
        of them is ever an operator. A file in several of the stores is found once."""

    async def chunks(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        wanted: Sequence[tuple[FileId, int]],
    ) -> tuple[FoundChunk, ...]:
        """Those with these numbers, as many as are still there, in this order."""

    async def file_chunks(
        self, user: UserId, id: VectorStoreId, file: FileId
    ) -> tuple[FoundChunk, ...] | None:
        """All of a file in a vector store; None unless it is completed."""

    async def vectors(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        files: Collection[FileId] | None,
        model: str,
    ) -> dict[FileId, bytes]:
        """Of the chunks of these files, one after the other in the order of their numbers, where
        that model has made them."""
