"""The files of a vector store: put in one by one or as a batch, listed, shown as they are searched
in, given attributes, taken out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.document_records import FileBatch, StoreFileStatus, VectorStoreFile
from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.files_settings import FilesSettings
from antiphon.http.openai.body import json_response, read_json_body, wall_ms
from antiphon.http.openai.conversations.retries import idempotency_key, keyed_id
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.lists import page_queries
from antiphon.http.openai.openapi import Operation, Query, mount
from antiphon.http.openai.vector_stores.pages import BEFORE, fetch_page, page_of
from antiphon.http.openai.vector_stores.parse import batch_id as batch_of
from antiphon.http.openai.vector_stores.parse import file_id as file_of
from antiphon.http.openai.vector_stores.parse import (
    parse_add,
    parse_attributes,
    parse_batch,
    store_id,
)
from antiphon.http.openai.vector_stores.routes import ONE, unknown_store
from antiphon.http.openai.vector_stores.schema import (
    CreateFileBatch,
    CreateStoreFile,
    UpdateStoreFile,
)
from antiphon.http.openai.vector_stores.wire import (
    DeletedStoreFile,
    FileBatchObject,
    FileContent,
    StoreFileList,
    StoreFileObject,
    TextContent,
    file_batch_object,
    store_file_object,
)
from antiphon.http.principal import current_principal
from antiphon.ids import FileBatchId, VectorStoreId, new_file_batch_id
from antiphon.records import Page
from antiphon.retrieval import FileSearching
from antiphon.settings import HttpSettings
from antiphon.storage import Store, StoreAccess

_ALL = f"{ONE}/files"
_FILE = f"{_ALL}/<file_id>"
_BATCHES = f"{ONE}/file_batches"
_BATCH = f"{_BATCHES}/<batch_id>"
_POLL_HEADERS = {"openai-poll-after-ms": "250"}
"""SDKs that wait for a file look once a second otherwise, and most files take less."""
_FILTER = Query(
    "filter",
    Literal["in_progress", "completed", "failed", "cancelled"],
    "Only those that stand there.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFileRoutes:
    """What the handlers work with."""

    store: StoreAccess
    searching: FileSearching
    http: Callable[[], HttpSettings]
    files: Callable[[], FilesSettings]
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(app, (*self._of_files(), *self._of_one(), *self._of_batches()))

    def _of_files(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                rule=_ALL,
                name="create_vector_store_file",
                handler=self.add,
                summary="Put a file into a vector store; it is read in the background",
                body=CreateStoreFile,
                answer=StoreFileObject,
                errors=(507,),
            ),
            Operation(
                method="GET",
                rule=_ALL,
                name="list_vector_store_files",
                handler=self.list_all,
                summary="List the files of a vector store by when they were put in",
                answer=StoreFileList,
                query=(*page_queries(), BEFORE, _FILTER),
            ),
        )

    def _of_one(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule=_FILE,
                name="retrieve_vector_store_file",
                handler=self.get,
                summary="Show a file of a vector store, and how far its reading has come",
                answer=StoreFileObject,
            ),
            Operation(
                method="POST",
                rule=_FILE,
                name="update_vector_store_file",
                handler=self.update,
                summary="Give it other attributes, for filters",
                body=UpdateStoreFile,
                answer=StoreFileObject,
                errors=(507,),
            ),
            Operation(
                method="DELETE",
                rule=_FILE,
                name="delete_vector_store_file",
                handler=self.remove,
                summary="Take a file out of a vector store; the file itself stays",
                answer=DeletedStoreFile,
            ),
            Operation(
                method="GET",
                rule=f"{_FILE}/content",
                name="retrieve_vector_store_file_content",
                handler=self.content,
                summary="The pieces of a file as they are searched in",
                answer=FileContent,
            ),
        )

    def _of_batches(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                rule=_BATCHES,
                name="create_vector_store_file_batch",
                handler=self.add_batch,
                summary="Put many files into a vector store together",
                body=CreateFileBatch,
                also=(CreateStoreFile,),
                answer=FileBatchObject,
                feeds={"batch_id": "$response.body#/id"},
                errors=(507,),
            ),
            Operation(
                method="GET",
                rule=_BATCH,
                name="retrieve_vector_store_file_batch",
                handler=self.batch,
                summary="Show how far a batch has come",
                answer=FileBatchObject,
            ),
            Operation(
                method="POST",
                rule=f"{_BATCH}/cancel",
                name="cancel_vector_store_file_batch",
                handler=self.cancel_batch,
                summary="Don't read what hasn't been read of a batch",
                answer=FileBatchObject,
            ),
            Operation(
                method="GET",
                rule=f"{_BATCH}/files",
                name="list_vector_store_file_batch_files",
                handler=self.batch_files,
                summary="List the files of a batch",
                answer=StoreFileList,
                query=(*page_queries(), BEFORE, _FILTER),
            ),
        )

    async def add(self, vector_store_id: str) -> TrioResponse:
        """Once more changes nothing but what it says."""
        id, user, now = store_id(vector_store_id), current_principal().user, self.now_ms()
        new = parse_add(await self._body(), self.files().chunking)
        added = await self.store.run(
            lambda store: store.add_vector_store_files(user, id, (new,), now)
        )
        self.searching.files_added()
        return json_response(store_file_object(added[0]))

    async def list_all(self, vector_store_id: str) -> TrioResponse:
        return await self._list(store_id(vector_store_id), None)

    async def get(self, vector_store_id: str, file_id: str) -> TrioResponse:
        found = await self._find(vector_store_id, file_id)
        return _polled(json_response(store_file_object(found)))

    async def update(self, vector_store_id: str, file_id: str) -> TrioResponse:
        attributes = parse_attributes(await self._body())
        user, old = current_principal().user, await self._find(vector_store_id, file_id)
        new = await self.store.run(
            lambda store: store.set_file_attributes(user, old.store, old.file, attributes)
        )
        if new is None:
            raise _unknown_file(file_id)
        return json_response(store_file_object(new))

    async def remove(self, vector_store_id: str, file_id: str) -> TrioResponse:
        user, now, old = (
            current_principal().user,
            self.now_ms(),
            await self._find(vector_store_id, file_id),
        )
        receipt = await self.store.run(
            lambda store: store.remove_vector_store_file(user, old.store, old.file, now)
        )
        if receipt is None:
            raise _unknown_file(file_id)
        return json_response(DeletedStoreFile(id=old.file, receipt=receipt_object(receipt, ())))

    async def content(self, vector_store_id: str, file_id: str) -> TrioResponse:
        user, file = current_principal().user, await self._find(vector_store_id, file_id)
        chunks = await self.store.run(lambda store: store.file_chunks(user, file.store, file.file))
        if chunks is None:
            raise InvalidRequest(
                f"File '{file.file}' has no content yet: its status is '{file.status}'.",
                "file_id",
                "file_not_ready",
            )
        return json_response(
            FileContent(data=[TextContent(text=each.chunk.text) for each in chunks])
        )

    async def add_batch(self, vector_store_id: str) -> TrioResponse:
        """With an `Idempotency-Key`, once."""
        id, user, now = store_id(vector_store_id), current_principal().user, self.now_ms()
        files = parse_batch(await self._body(), self.files().chunking)
        batch, key = new_file_batch_id(), idempotency_key()
        if key is not None:
            batch = FileBatchId(keyed_id("vsfb_", user, id, "file_batch", key))
            earlier = await self.store.run(lambda store: store.file_batch(user, id, batch))
            if earlier is not None:
                return json_response(file_batch_object(earlier))
        await self.store.run(
            lambda store: store.add_vector_store_files(user, id, files, now, batch=batch)
        )
        self.searching.files_added()
        return json_response(file_batch_object(await self._batch(id, batch)))

    async def batch(self, vector_store_id: str, batch_id: str) -> TrioResponse:
        found = await self._batch(store_id(vector_store_id), batch_of(batch_id))
        return _polled(json_response(file_batch_object(found)))

    async def cancel_batch(self, vector_store_id: str, batch_id: str) -> TrioResponse:
        id, batch, user = store_id(vector_store_id), batch_of(batch_id), current_principal().user
        found = await self.store.run(lambda store: store.cancel_file_batch(user, id, batch))
        return json_response(file_batch_object(_existing(found, batch)))

    async def batch_files(self, vector_store_id: str, batch_id: str) -> TrioResponse:
        id, batch = store_id(vector_store_id), batch_of(batch_id)
        await self._batch(id, batch)
        return await self._list(id, batch)

    async def _list(self, id: VectorStoreId, batch: FileBatchId | None) -> TrioResponse:
        page, user, status = page_of(request.args), current_principal().user, _status()

        async def read(store: Store, asked: Page) -> tuple[VectorStoreFile, ...]:
            found = await store.vector_store_files(user, id, asked, status=status, batch=batch)
            if found is None:
                raise unknown_store(id)
            return found

        return json_response(await fetch_page(self.store, page, read, store_file_object))

    async def _batch(self, id: VectorStoreId, batch: FileBatchId) -> FileBatch:
        user = current_principal().user
        return _existing(
            await self.store.run(lambda store: store.file_batch(user, id, batch)), batch
        )

    async def _find(self, store_text: str, file_text: str) -> VectorStoreFile:
        id, file, user = store_id(store_text), file_of(file_text), current_principal().user
        found = await self.store.run(lambda store: store.vector_store_file(user, id, file))
        if found is None:
            raise _unknown_file(file_text)
        return found

    async def _body(self) -> bytes:
        return await read_json_body(self.http().max_body_bytes)


def _polled(response: TrioResponse) -> TrioResponse:
    response.headers.update(_POLL_HEADERS)
    return response


def _status() -> StoreFileStatus | None:
    """Raises InvalidRequest."""
    given = request.args.get("filter") or None
    if given is None:
        return None
    try:
        return StoreFileStatus(given)
    except ValueError:
        raise InvalidRequest(
            f"Invalid value for 'filter': {given[:100]!r}. Supported values are: 'in_progress', "
            "'completed', 'failed', and 'cancelled'.",
            "filter",
            "invalid_value",
        ) from None


def _existing(found: FileBatch | None, id: FileBatchId) -> FileBatch:
    if found is None:
        raise RecordNotFound("file batch", id, "batch_id")
    return found


def _unknown_file(id: str) -> RecordNotFound:
    return RecordNotFound("file", id, "file_id")
