"""`GET /v1/conversations/{id}/export`: a whole conversation as a file, JSON or Markdown, written
page by page, so that a long one needs no more memory than a short one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec
from quart import Quart, request

from antiphon.errors import InvalidRequest
from antiphon.http.asgi import PumpedResponse, Write
from antiphon.http.openai.conversations.access import find_conversation, items_after
from antiphon.http.openai.conversations.markdown import heading_of, section_of
from antiphon.http.openai.conversations.wire import (
    ConversationObject,
    ItemObject,
    conversation_object,
)
from antiphon.http.openai.files.names import attachment_headers
from antiphon.http.openai.openapi import ANY_TEXT, Operation, Query, mount
from antiphon.http.openai.responses.wire import item_body
from antiphon.http.principal import current_principal
from antiphon.ids import ItemId
from antiphon.records import Conversation, Item
from antiphon.storage import StoreAccess

_encode = msgspec.json.Encoder().encode


class ExportedConversation(msgspec.Struct, kw_only=True):
    """What the JSON form holds: the API's own objects, items oldest first."""

    conversation: ConversationObject
    items: list[ItemObject]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRoutes:
    """What the handler works with."""

    store: StoreAccess

    def register(self, app: Quart) -> None:
        export = Operation(
            method="GET",
            rule="/v1/conversations/<conversation_id>/export",
            name="export_conversation",
            handler=self.export,
            summary="The whole conversation as a file",
            answer=ExportedConversation,
            media={"text/markdown": ANY_TEXT},
            query=(Query("format", Literal["json", "markdown"], "Its form.", default="json"),),
        )
        mount(app, (export,))

    async def export(self, conversation_id: str) -> PumpedResponse:
        form = request.args.get("format", "json")
        if form not in {"json", "markdown"}:
            raise InvalidRequest(
                f"Invalid value for 'format': {form[:100]!r}. Supported values are: 'json' and "
                "'markdown'.",
                "format",
                "invalid_value",
            )
        user = current_principal().user
        conversation = await find_conversation(self.store, user, conversation_id)
        # The first page before the headers, so that what fails then has a real status.
        first = await items_after(self.store, user, conversation.id, None)
        write_all = self._markdown if form == "markdown" else self._json

        async def pump(write: Write) -> None:
            await write_all(conversation, first, write)

        media, ending = (
            ("text/markdown; charset=utf-8", "md")
            if form == "markdown"
            else ("application/json", "json")
        )
        name = f"{conversation.title or conversation.id}.{ending}"
        return PumpedResponse(pump, attachment_headers(name, media))

    async def _markdown(
        self, conversation: Conversation, first: tuple[Item, ...], write: Write
    ) -> None:
        await write(heading_of(conversation).encode())
        await self._each_page(
            conversation, first, lambda page: write("".join(map(section_of, page)).encode())
        )

    async def _json(
        self, conversation: Conversation, first: tuple[Item, ...], write: Write
    ) -> None:
        shown = _encode(conversation_object(conversation))
        await write(b'{"conversation":' + shown + b',"items":[')
        separator = b""

        async def write_page(page: tuple[Item, ...]) -> None:
            nonlocal separator
            await write(separator + b",".join(_encode(item_body(item)) for item in page))
            separator = b","

        await self._each_page(conversation, first, write_page)
        await write(b"]}")

    async def _each_page(
        self,
        conversation: Conversation,
        page: tuple[Item, ...],
        write_page: Callable[[tuple[Item, ...]], Awaitable[None]],
    ) -> None:
        """A conversation that is deleted meanwhile ends the answer without its last chunk: half an
        export must not look like a whole one."""
        while page:
            await write_page(page)
            last: ItemId = page[-1].id
            page = await items_after(self.store, conversation.user, conversation.id, last)
