"""The part of the store that finds things in files: the contract's methods for documents, vector
stores, their ingestion and full-text search."""

from collections.abc import Collection, Mapping, Sequence

import trio

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
from antiphon.persistence import (
    deletion,
    document_deletion,
    documents,
    ingestion,
    search,
    vector_stores,
)
from antiphon.persistence.context_store import SqlContextStore
from antiphon.reading_files import Chunking
from antiphon.records import Page, Receipt


class SqlDocumentStore(SqlContextStore):
    """A `document_storage.DocumentStore`."""

    async def create_vector_store(
        self, store: VectorStore, files: Sequence[NewStoreFile] = ()
    ) -> VectorStore:
        return await self._write(vector_stores.create, store, files)

    async def vector_store(self, user: UserId, id: VectorStoreId) -> VectorStore | None:
        return await self._read(vector_stores.get, user, id)

    async def vector_stores(self, user: UserId, page: Page) -> tuple[VectorStore, ...]:
        return await self._read(vector_stores.listed, user, page)

    async def update_vector_store(self, store: VectorStore) -> VectorStore | None:
        return await self._write(vector_stores.update, store)

    async def delete_vector_store(
        self, user: UserId, id: VectorStoreId, now_ms: int
    ) -> Receipt | None:
        """In several transactions; one that was cut short goes on when asked again, or by itself
        with the next clean-up."""
        removed = deletion.Removed()
        while True:
            rows = await self._write(document_deletion.some_of_store, user, id)
            if rows is None:
                return None
            removed.rows += rows
            if not rows:
                break
        return await self._tidied(await self._write(deletion.vector_store, id, now_ms, removed))

    async def touch_vector_stores(self, used: Mapping[VectorStoreId, int]) -> None:
        if used:
            await self._write(vector_stores.touch, used)

    async def add_vector_store_files(
        self,
        user: UserId,
        id: VectorStoreId,
        files: Sequence[NewStoreFile],
        now_ms: int,
        *,
        batch: FileBatchId | None = None,
    ) -> tuple[VectorStoreFile, ...]:
        return await self._write(vector_stores.add_files, user, id, files, now_ms, batch)

    async def vector_store_file(
        self, user: UserId, id: VectorStoreId, file: FileId
    ) -> VectorStoreFile | None:
        return await self._read(vector_stores.file, user, id, file)

    async def vector_store_files(
        self,
        user: UserId,
        id: VectorStoreId,
        page: Page,
        *,
        status: StoreFileStatus | None = None,
        batch: FileBatchId | None = None,
    ) -> tuple[VectorStoreFile, ...] | None:
        return await self._read(vector_stores.files, user, id, page, status, batch)

    async def set_file_attributes(
        self, user: UserId, id: VectorStoreId, file: FileId, attributes: Attributes
    ) -> VectorStoreFile | None:
        return await self._write(vector_stores.set_attributes, user, id, file, attributes)

    async def remove_vector_store_file(
        self, user: UserId, id: VectorStoreId, file: FileId, now_ms: int
    ) -> Receipt | None:
        return await self._tidied(
            await self._write(deletion.vector_store_file, user, id, file, now_ms)
        )

    async def file_batch(
        self, user: UserId, id: VectorStoreId, batch: FileBatchId
    ) -> FileBatch | None:
        return await self._read(vector_stores.batch, user, id, batch)

    async def cancel_file_batch(
        self, user: UserId, id: VectorStoreId, batch: FileBatchId
    ) -> FileBatch | None:
        return await self._write(vector_stores.cancel_batch, user, id, batch)

    async def want_document(
        self,
        user: UserId,
        file: FileId,
        now_ms: int,
        *,
        chunking: Chunking = DEFAULT_CHUNKING,
    ) -> Document | None:
        return await self._write(documents.want, user, file, now_ms, chunking)

    async def documents(self, user: UserId, files: Sequence[FileId]) -> dict[FileId, Document]:
        return await self._read(documents.of_files, user, files)

    async def document_text(self, user: UserId, file: FileId) -> DocumentText | None:
        return await self._read(documents.text, user, file)

    async def take_documents(
        self, owner: NodeId, now_ms: int, *, lease_ms: int, limit: int = 4
    ) -> tuple[DocumentWork, ...]:
        return await self._write(ingestion.take, owner, now_ms, lease_ms=lease_ms, limit=limit)

    async def renew_document(
        self, id: DocumentId, owner: NodeId, *, lease_ms: int, progress: float
    ) -> bool:
        return await self._write(ingestion.renew, id, owner, lease_ms, progress)

    async def finish_document(self, id: DocumentId, owner: NodeId, ready: ReadyDocument) -> bool:
        prepared = await trio.to_thread.run_sync(ingestion.prepared, ready)
        return await self._write(ingestion.finish, id, owner, ready, prepared)

    async def fail_document(self, id: DocumentId, owner: NodeId, failure: DocumentFailure) -> bool:
        return await self._write(ingestion.fail, id, owner, failure)

    async def release_document(
        self, id: DocumentId, owner: NodeId, *, again_ms: int, counted: bool = True
    ) -> bool:
        return await self._write(ingestion.release, id, owner, again_ms, counted=counted)

    async def remake_documents(
        self, extractor: str, model: str | None, now_ms: int, *, limit: int = 500
    ) -> int:
        return await self._write(ingestion.remake, extractor, model, now_ms, limit)

    async def search_files(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        files: Collection[FileId] | None = None,
    ) -> tuple[SearchFile, ...]:
        return await self._read(search.files, user, stores, files)

    async def search_text(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        terms: Sequence[str],
        limit: int,
        *,
        files: Collection[FileId] | None = None,
    ) -> tuple[FoundChunk, ...]:
        return await self._read(search.text, user, stores, terms, limit, files)

    async def chunks(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        wanted: Sequence[tuple[FileId, int]],
    ) -> tuple[FoundChunk, ...]:
        return await self._read(search.chunks, user, stores, wanted)

    async def file_chunks(
        self, user: UserId, id: VectorStoreId, file: FileId
    ) -> tuple[FoundChunk, ...] | None:
        return await self._read(search.file_chunks, user, id, file)

    async def vectors(
        self,
        user: UserId,
        stores: Sequence[VectorStoreId],
        files: Collection[FileId] | None,
        model: str,
    ) -> dict[FileId, bytes]:
        return await self._read(search.vectors, user, stores, files, model)
