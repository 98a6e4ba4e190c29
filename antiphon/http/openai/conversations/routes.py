"""`/v1/conversations`: create, list, show, change, branch and delete conversations."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.routing import BaseConverter

from antiphon.actors.workers.disposal import discard
from antiphon.errors import RecordNotFound
from antiphon.http.openai.body import checked_id, json_response, read_json_body, wall_ms
from antiphon.http.openai.conversations.access import (
    check_files,
    copied_items,
    find_conversation,
    with_images,
)
from antiphon.http.openai.conversations.changes import branch_of, new_conversation, updated
from antiphon.http.openai.conversations.items import parse_items
from antiphon.http.openai.conversations.retries import idempotency_key, keyed
from antiphon.http.openai.conversations.schema import (
    ITEM_KINDS,
    BranchConversation,
    CreateConversation,
    UpdateConversation,
)
from antiphon.http.openai.conversations.wire import (
    ConversationList,
    ConversationObject,
    DeletedConversation,
    conversation_object,
    receipt_object,
)
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.lists import (
    check_text,
    fetch,
    list_body,
    one_more,
    page_queries,
    parse_flag,
    parse_page,
)
from antiphon.http.openai.openapi import Operation, Query, mount
from antiphon.http.principal import current_principal
from antiphon.ids import ConversationId
from antiphon.ports import Contents
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

_MAX_SEARCH = 200
_CREATE = msgspec.json.Decoder(CreateConversation)
_UPDATE = msgspec.json.Decoder(UpdateConversation)
_BRANCH = msgspec.json.Decoder(BranchConversation)
_ROOT = "/v1/conversations"
_KIND = "conversation"
_ONE = f"{_ROOT}/<{_KIND}:conversation_id>"


class _ConversationId(BaseConverter):
    """Whatever could be an id, but not the operation whose URL looks like one: its `Allow` header
    would claim the methods of both."""

    regex = r"(?!search(?:/|$))[^/]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRoutes:
    """What the handlers work with."""

    store: StoreAccess
    contents: Contents
    http: Callable[[], HttpSettings]
    files: MessageFiles | None = None
    """Where images in items are kept; without it there may be none."""
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        app.url_map.converters.setdefault(_KIND, _ConversationId)
        mount(app, self._operations())

    def _operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                rule=_ROOT,
                name="create_conversation",
                handler=self.create,
                summary="Create a conversation, perhaps with its first items",
                body=CreateConversation,
                body_required=False,
                also=ITEM_KINDS,
                answer=ConversationObject,
                feeds={"conversation_id": "$response.body#/id"},
                errors=(404, 507),
            ),
            Operation(
                method="GET",
                rule=_ROOT,
                name="list_conversations",
                handler=self.list_all,
                summary="List conversations by their last change",
                answer=ConversationList,
                query=(
                    *page_queries(),
                    Query("search", str, "Part of the title, in any case.", longest=_MAX_SEARCH),
                    Query("archived", bool, "Those in the archive instead.", default=False),
                ),
            ),
            Operation(
                method="GET",
                rule=_ONE,
                name="retrieve_conversation",
                handler=self.get,
                summary="Show a conversation",
                answer=ConversationObject,
            ),
            Operation(
                method="POST",
                rule=_ONE,
                name="update_conversation",
                handler=self.update,
                summary="Change title, metadata, memory, or whether it is in the archive",
                body=UpdateConversation,
                answer=ConversationObject,
                errors=(507,),
            ),
            Operation(
                method="DELETE",
                rule=_ONE,
                name="delete_conversation",
                handler=self.delete,
                summary="Delete a conversation with everything that is only in it",
                answer=DeletedConversation,
            ),
            Operation(
                method="POST",
                rule=f"{_ONE}/branch",
                name="branch_conversation",
                handler=self.branch,
                summary="Copy a conversation up to one of its items",
                body=BranchConversation,
                body_required=False,
                answer=ConversationObject,
                errors=(507,),
            ),
        )

    async def create(self) -> TrioResponse:
        body = decode_body(await self._body() or b"{}", _CREATE, {})
        user, now = current_principal().user, self.now_ms()
        key = idempotency_key()
        conversation = keyed(new_conversation(body, user, now), key)
        if key is not None:
            earlier = await self.store.run(lambda store: store.conversation(user, conversation.id))
            if earlier is not None:
                return json_response(conversation_object(earlier))
        items = parse_items(body.items or [], now)
        items = await with_images(self.files, user, items)
        await check_files(self.store, user, items)
        await self.store.run(lambda store: store.create_conversation(conversation, items))
        return json_response(conversation_object(conversation))

    async def list_all(self) -> TrioResponse:
        page, search = parse_page(request.args), request.args.get("search") or None
        archived = parse_flag(request.args, "archived")
        if search is not None:
            check_text("search", search, _MAX_SEARCH)
        user = current_principal().user
        found = await fetch(
            self.store,
            page,
            lambda store: store.conversations(
                user, one_more(page), search=search, archived=archived
            ),
        )
        return json_response(list_body(found, page, conversation_object, lambda each: each.id))

    async def get(self, conversation_id: str) -> TrioResponse:
        conversation = await find_conversation(
            self.store, current_principal().user, conversation_id
        )
        return json_response(conversation_object(conversation))

    async def update(self, conversation_id: str) -> TrioResponse:
        body = decode_body(await self._body(), _UPDATE, {})
        user = current_principal().user
        old = await find_conversation(self.store, user, conversation_id)
        new = updated(old, body, self.now_ms())
        written = await self.store.run(lambda store: store.update_conversation(new))
        if written is None:
            raise RecordNotFound("conversation", conversation_id, "conversation_id")
        return json_response(conversation_object(written))

    async def delete(self, conversation_id: str) -> TrioResponse:
        id_ = ConversationId(checked_id("conversation", conversation_id, "conversation_id"))
        user, now = current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_conversation(user, id_, now))
        if receipt is None:
            raise RecordNotFound("conversation", id_, "conversation_id")
        removed = await discard(self.store, self.contents, receipt.contents)
        return json_response(DeletedConversation(id=id_, receipt=receipt_object(receipt, removed)))

    async def branch(self, conversation_id: str) -> TrioResponse:
        body = decode_body(await self._body() or b"{}", _BRANCH, {})
        user, now = current_principal().user, self.now_ms()
        old = await find_conversation(self.store, user, conversation_id)
        key = idempotency_key()
        new = keyed(branch_of(old, body, user, now), key)
        if key is not None:
            earlier = await self.store.run(lambda store: store.conversation(user, new.id))
            if earlier is not None:
                return json_response(conversation_object(earlier))
        copies = await copied_items(self.store, user, old.id, body.after_item)
        await self.store.run(lambda store: store.create_conversation(new, copies))
        return json_response(conversation_object(new))

    async def _body(self) -> bytes:
        return await read_json_body(self.http().max_body_bytes)
