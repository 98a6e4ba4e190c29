"""`/v1/conversations/{id}/items`: put items into a conversation, list, show and delete them."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.actors.workers.disposal import discard
from antiphon.errors import RecordNotFound
from antiphon.http.openai.body import checked_id, json_response, read_json_body, wall_ms
from antiphon.http.openai.bounds import empty_array
from antiphon.http.openai.conversations.access import (
    check_files,
    find_conversation,
    find_item,
    with_images,
)
from antiphon.http.openai.conversations.items import parse_items
from antiphon.http.openai.conversations.retries import (
    added_before,
    idempotency_key,
    keyed_items,
)
from antiphon.http.openai.conversations.schema import ITEM_KINDS, MAX_ITEMS, CreateItems
from antiphon.http.openai.conversations.wire import (
    ConversationObject,
    ItemList,
    ItemObject,
    conversation_object,
)
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.lists import (
    INCLUDE_QUERY,
    check_include,
    fetch,
    list_body,
    one_more,
    page_queries,
    parse_page,
)
from antiphon.http.openai.openapi import Operation, mount
from antiphon.http.openai.responses.wire import item_body
from antiphon.http.principal import current_principal
from antiphon.ids import ConversationId, ItemId
from antiphon.ports import Contents
from antiphon.records import Page
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

_CREATE = msgspec.json.Decoder(CreateItems)
_ALL = "/v1/conversations/<conversation_id>/items"
_ONE = f"{_ALL}/<item_id>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRoutes:
    """What the handlers work with."""

    store: StoreAccess
    contents: Contents
    http: Callable[[], HttpSettings]
    files: MessageFiles | None = None
    """Where images in items are kept; without it there may be none."""
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(
            app,
            (
                Operation(
                    method="POST",
                    rule=_ALL,
                    name="create_conversation_items",
                    handler=self.create,
                    summary="Append items",
                    body=CreateItems,
                    also=ITEM_KINDS,
                    answer=ItemList,
                    feeds={
                        "conversation_id": "$request.path.conversation_id",
                        "item_id": "$response.body#/first_id",
                    },
                    query=(INCLUDE_QUERY,),
                    errors=(422, 507),
                ),
                Operation(
                    method="GET",
                    rule=_ALL,
                    name="list_conversation_items",
                    handler=self.list_all,
                    summary="List the items",
                    answer=ItemList,
                    query=(*page_queries(), INCLUDE_QUERY),
                ),
                Operation(
                    method="GET",
                    rule=_ONE,
                    name="retrieve_conversation_item",
                    handler=self.get,
                    summary="Show an item",
                    answer=ItemObject,
                    query=(INCLUDE_QUERY,),
                ),
                Operation(
                    method="DELETE",
                    rule=_ONE,
                    name="delete_conversation_item",
                    handler=self.delete,
                    summary="Delete an item; the answer is the conversation",
                    answer=ConversationObject,
                ),
            ),
        )

    async def create(self, conversation_id: str) -> TrioResponse:
        check_include(request.args)
        raw = await read_json_body(self.http().max_body_bytes)
        body = decode_body(raw, _CREATE, {})
        if not body.items:
            raise empty_array("items")
        id_ = ConversationId(checked_id("conversation", conversation_id, "conversation_id"))
        user, now = current_principal().user, self.now_ms()
        key = idempotency_key()
        given = await with_images(self.files, user, parse_items(body.items, now))
        items = keyed_items(given, user, id_, key)
        whole = Page(limit=MAX_ITEMS)
        if (earlier := await added_before(self.store, user, id_, items, key)) is not None:
            return json_response(list_body(earlier, whole, item_body, _id_of))
        await check_files(self.store, user, items)
        if not await self.store.run(lambda store: store.add_items(user, id_, items, now)):
            raise RecordNotFound("conversation", conversation_id, "conversation_id")
        return json_response(list_body(items, whole, item_body, _id_of))

    async def list_all(self, conversation_id: str) -> TrioResponse:
        check_include(request.args)
        page = parse_page(request.args)
        id_ = ConversationId(checked_id("conversation", conversation_id, "conversation_id"))
        user = current_principal().user
        found = await fetch(self.store, page, lambda store: store.items(user, id_, one_more(page)))
        if found is None:
            raise RecordNotFound("conversation", conversation_id, "conversation_id")
        return json_response(list_body(found, page, item_body, _id_of))

    async def get(self, conversation_id: str, item_id: str) -> TrioResponse:
        check_include(request.args)
        id_ = ConversationId(checked_id("conversation", conversation_id, "conversation_id"))
        item = await find_item(self.store, current_principal().user, id_, item_id, "item_id")
        return json_response(item_body(item))

    async def delete(self, conversation_id: str, item_id: str) -> TrioResponse:
        user, now = current_principal().user, self.now_ms()
        conversation = await find_conversation(self.store, user, conversation_id)
        item = ItemId(checked_id("item", item_id, "item_id"))
        receipt = await self.store.run(
            lambda store: store.delete_item(user, conversation.id, item, now)
        )
        if receipt is None:
            raise RecordNotFound("item", item_id, "item_id")
        await discard(self.store, self.contents, receipt.contents)
        changed = await find_conversation(self.store, user, conversation_id)
        return json_response(conversation_object(changed))


def _id_of(body: ItemObject) -> str:
    return str(body["id"])
