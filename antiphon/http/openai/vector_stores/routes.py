"""`/v1/vector_stores`: create, list, show, change, delete and search."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from msgspec import UNSET
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.document_records import VectorStore
from antiphon.errors import RecordNotFound
from antiphon.files_settings import FilesSettings
from antiphon.http.openai.body import json_response, read_json_body, wall_ms
from antiphon.http.openai.conversations.retries import idempotency_key, keyed_id
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.lists import page_queries
from antiphon.http.openai.openapi import Operation, mount
from antiphon.http.openai.vector_stores.pages import BEFORE, fetch_page, page_of
from antiphon.http.openai.vector_stores.parse import (
    filter_of,
    new_files,
    parse_create,
    parse_search,
    parse_update,
    ranking_of,
    store_id,
)
from antiphon.http.openai.vector_stores.schema import (
    ComparisonFilter,
    CompoundFilter,
    CreateVectorStore,
    SearchVectorStore,
    UpdateVectorStore,
)
from antiphon.http.openai.vector_stores.wire import (
    DeletedVectorStore,
    SearchResults,
    VectorStoreList,
    VectorStoreObject,
    search_results,
    vector_store_object,
)
from antiphon.http.principal import current_principal
from antiphon.ids import UserId, VectorStoreId, new_vector_store_id
from antiphon.retrieval import FileSearching
from antiphon.settings import HttpSettings
from antiphon.sources import FileSearch
from antiphon.storage import StoreAccess

ROOT = "/v1/vector_stores"
ONE = f"{ROOT}/<vector_store_id>"
_RESULTS = 10
"""Of a search that doesn't say how many, as in the API it copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStoreRoutes:
    """What the handlers work with."""

    store: StoreAccess
    searching: FileSearching
    http: Callable[[], HttpSettings]
    files: Callable[[], FilesSettings]
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(app, (*self._of_all(), *self._of_one()))

    def _of_all(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                rule=ROOT,
                name="create_vector_store",
                handler=self.create,
                summary="Create a vector store, perhaps with files in it",
                body=CreateVectorStore,
                body_required=False,
                answer=VectorStoreObject,
                feeds={"vector_store_id": "$response.body#/id"},
                errors=(404, 507),
            ),
            Operation(
                method="GET",
                rule=ROOT,
                name="list_vector_stores",
                handler=self.list_all,
                summary="List vector stores by creation",
                answer=VectorStoreList,
                query=(*page_queries(), BEFORE),
            ),
        )

    def _of_one(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule=ONE,
                name="retrieve_vector_store",
                handler=self.get,
                summary="Show a vector store, and how many of its files are ready",
                answer=VectorStoreObject,
            ),
            Operation(
                method="POST",
                rule=ONE,
                name="update_vector_store",
                handler=self.update,
                summary="Change its name, its metadata, or when it expires",
                body=UpdateVectorStore,
                answer=VectorStoreObject,
                errors=(507,),
            ),
            Operation(
                method="DELETE",
                rule=ONE,
                name="delete_vector_store",
                handler=self.delete,
                summary="Delete a vector store; its files stay",
                answer=DeletedVectorStore,
            ),
            Operation(
                method="POST",
                rule=f"{ONE}/search",
                name="search_vector_store",
                handler=self.search,
                summary="Find the pieces of its files that answer a question",
                body=SearchVectorStore,
                also=(ComparisonFilter, CompoundFilter),
                answer=SearchResults,
            ),
        )

    async def create(self) -> TrioResponse:
        """With an `Idempotency-Key`, once."""
        body = parse_create(await self._body())
        user, now, key = current_principal().user, self.now_ms(), idempotency_key()
        files = new_files(body.file_ids or [], body.chunking_strategy, self.files().chunking)
        id = new_vector_store_id()
        if key is not None:
            id = VectorStoreId(keyed_id("vs_", user, "vector_store", key))
            earlier = await self.store.run(lambda store: store.vector_store(user, id))
            if earlier is not None:
                return json_response(vector_store_object(earlier, now))
        new = VectorStore(
            id=id,
            user=user,
            created_ms=now,
            last_active_ms=now,
            name=body.name or "",
            description=body.description or "",
            metadata=body.metadata or {},
            expires_after_days=None if body.expires_after is None else body.expires_after.days,
        )
        made = await self.store.run(lambda store: store.create_vector_store(new, files))
        if files:
            self.searching.files_added()
        return json_response(vector_store_object(made, now))

    async def list_all(self) -> TrioResponse:
        page, user, now = page_of(request.args), current_principal().user, self.now_ms()
        body = await fetch_page(
            self.store,
            page,
            lambda store, asked: store.vector_stores(user, asked),
            lambda each: vector_store_object(each, now),
        )
        return json_response(body)

    async def get(self, vector_store_id: str) -> TrioResponse:
        found = await self._find(current_principal().user, vector_store_id)
        return json_response(vector_store_object(found, self.now_ms()))

    async def update(self, vector_store_id: str) -> TrioResponse:
        body, now = parse_update(await self._body()), self.now_ms()
        new = await self._find(current_principal().user, vector_store_id)
        if body.name is not UNSET:
            new = replace(new, name=body.name or "")
        if body.metadata is not UNSET:
            new = replace(new, metadata=body.metadata or {})
        if body.expires_after is not UNSET:
            after = body.expires_after
            new = replace(new, expires_after_days=None if after is None else after.days)
        new = replace(new, last_active_ms=max(now, new.last_active_ms))
        written = await self.store.run(lambda store: store.update_vector_store(new))
        if written is None:
            raise unknown_store(vector_store_id)
        return json_response(vector_store_object(written, now))

    async def delete(self, vector_store_id: str) -> TrioResponse:
        id, user, now = store_id(vector_store_id), current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_vector_store(user, id, now))
        if receipt is None:
            raise unknown_store(id)
        return json_response(DeletedVectorStore(id=id, receipt=receipt_object(receipt, ())))

    async def search(self, vector_store_id: str) -> TrioResponse:
        queries, body = parse_search(await self._body())
        search = FileSearch(
            stores=(store_id(vector_store_id),),
            most=body.max_num_results or _RESULTS,
            filter=filter_of(body.filters),
            ranking=ranking_of(body.ranking_options),
        )
        found = await self.searching.search(current_principal().user, search, queries)
        return json_response(search_results(queries, found))

    async def _body(self) -> bytes:
        return await read_json_body(self.http().max_body_bytes)

    async def _find(self, user: UserId, text: str) -> VectorStore:
        id = store_id(text)
        found = await self.store.run(lambda store: store.vector_store(user, id))
        if found is None:
            raise unknown_store(text)
        return found


def unknown_store(id: str) -> RecordNotFound:
    return RecordNotFound("vector store", id, "vector_store_id")
