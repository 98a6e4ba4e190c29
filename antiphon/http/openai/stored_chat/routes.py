"""`/v1/chat/completions` once they are kept: list, show, change metadata, delete, and the messages
of the request."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.datastructures import MultiDict

from antiphon.errors import RecordNotFound
from antiphon.http.openai.body import json_response, read_json_body, wall_ms
from antiphon.http.openai.bounds import check_metadata
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.lists import (
    check_text,
    fetch,
    list_body,
    one_more,
    page_queries,
    parse_page,
)
from antiphon.http.openai.openapi import Operation, Query, mount
from antiphon.http.openai.schema import Strict
from antiphon.http.openai.stored_chat.wire import (
    CompletionList,
    DeletedCompletion,
    KeptCompletion,
    MessageList,
    completion_body,
    message_body,
)
from antiphon.http.principal import current_principal
from antiphon.ids import ModelName, ResponseId, UserId
from antiphon.records import Response, ResponseKind
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess

_ROOT = "/v1/chat/completions"
_ONE = f"{_ROOT}/<completion_id>"
_ID = re.compile(r"chatcmpl-[A-Za-z0-9_-]{1,128}")
_METADATA = re.compile(r"metadata\[(?P<key>[^\]]{1,64})\]")
_MAX_MODEL_CHARACTERS = 200
_MAX_METADATA_VALUE = 512


class UpdateCompletion(Strict, frozen=True):
    """Null takes all of it away."""

    metadata: dict[str, str] | None


_UPDATE = msgspec.json.Decoder(UpdateCompletion)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChatRoutes:
    """What the handlers work with."""

    store: StoreAccess
    http: Callable[[], HttpSettings]
    now_ms: Callable[[], int] = wall_ms

    def register(self, app: Quart) -> None:
        mount(app, self._operations())

    def _operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                rule=_ROOT,
                name="list_chat_completions",
                handler=self.list_all,
                summary="List the chat completions that are kept",
                answer=CompletionList,
                query=(
                    *page_queries(order="asc"),
                    Query("model", str, "Only those of this model."),
                    Query("metadata", dict[str, str], "As `metadata[key]=value`, all of them."),
                ),
            ),
            Operation(
                method="GET",
                rule=_ONE,
                name="retrieve_chat_completion",
                handler=self.get,
                summary="Show a chat completion",
                answer=KeptCompletion,
            ),
            Operation(
                method="POST",
                rule=_ONE,
                name="update_chat_completion",
                handler=self.update,
                summary="Replace the metadata of a chat completion",
                body=UpdateCompletion,
                answer=KeptCompletion,
                errors=(507,),
            ),
            Operation(
                method="DELETE",
                rule=_ONE,
                name="delete_chat_completion",
                handler=self.delete,
                summary="Delete a chat completion with its messages",
                answer=DeletedCompletion,
            ),
            Operation(
                method="GET",
                rule=f"{_ONE}/messages",
                name="list_chat_completion_messages",
                handler=self.messages,
                summary="List the messages of the request",
                answer=MessageList,
                query=page_queries(order="asc"),
            ),
        )

    async def list_all(self) -> TrioResponse:
        page = parse_page(request.args, newest_first=False)
        model, metadata = request.args.get("model"), _metadata(request.args)
        if model is not None:
            check_text("model", model, _MAX_MODEL_CHARACTERS)
        user = current_principal().user
        found = await fetch(
            self.store,
            page,
            lambda store: store.responses(
                user,
                one_more(page),
                kind=ResponseKind.CHAT,
                model=None if model is None else ModelName(model),
                metadata=metadata or None,
            ),
        )
        return json_response(list_body(found, page, completion_body, lambda each: each.id))

    async def get(self, completion_id: str) -> TrioResponse:
        found = await self._find(current_principal().user, completion_id)
        return json_response(completion_body(found))

    async def update(self, completion_id: str) -> TrioResponse:
        raw = await read_json_body(self.http().max_body_bytes)
        metadata = decode_body(raw, _UPDATE, {}).metadata
        check_metadata(metadata)
        user = current_principal().user
        id = (await self._find(user, completion_id)).id
        changed = await self.store.run(
            lambda store: store.update_response_metadata(user, id, metadata or {})
        )
        if changed is None:
            raise _unknown(id)
        return json_response(completion_body(changed))

    async def delete(self, completion_id: str) -> TrioResponse:
        id, user, now = _checked(completion_id), current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_response(user, id, now))
        if receipt is None:
            raise _unknown(id)
        return json_response(DeletedCompletion(id=id, receipt=receipt_object(receipt, ())))

    async def messages(self, completion_id: str) -> TrioResponse:
        id, user = _checked(completion_id), current_principal().user
        page = parse_page(request.args, newest_first=False)
        found = await fetch(
            self.store, page, lambda store: store.input_items(user, id, one_more(page))
        )
        if found is None:
            raise _unknown(id)
        return json_response(list_body(found, page, message_body, lambda each: each.id))

    async def _find(self, user: UserId, text: str) -> Response:
        id = _checked(text)
        found = await self.store.run(lambda store: store.response(user, id))
        if found is None:
            raise _unknown(id)
        return found


def _metadata(args: "MultiDict[str, str]") -> dict[str, str]:
    """Every `metadata[key]=value`."""
    wanted = {}
    for name, value in args.items():
        if (found := _METADATA.fullmatch(name)) is not None:
            check_text("metadata", found["key"] + value, _MAX_METADATA_VALUE)
            wanted[found["key"]] = value
    return wanted


def _checked(text: str) -> ResponseId:
    """Raises RecordNotFound for what can't be one: a store need not see it."""
    if _ID.fullmatch(text) is None:
        raise _unknown(text)
    return ResponseId(text)


def _unknown(id: str) -> RecordNotFound:
    return RecordNotFound("chat completion", id, "completion_id")
