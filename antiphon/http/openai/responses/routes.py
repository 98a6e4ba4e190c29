"""The operations of `/v1/responses`, declared: each names its handler and what goes in and out."""

from collections.abc import Callable
from dataclasses import dataclass

from quart import Quart
from werkzeug.routing import BaseConverter

from antiphon.context_settings import ContextSettings
from antiphon.http.openai.conversations.schema import (
    FileSearchItem,
    FunctionCallItem,
    FunctionOutputItem,
)
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.lists import INCLUDE_QUERY, page_queries
from antiphon.http.openai.openapi import ANY_TEXT, Operation, Query, mount
from antiphon.http.openai.prompting import Prompting
from antiphon.http.openai.responses.create import CreateRoutes
from antiphon.http.openai.responses.schema import (
    CountInputTokens,
    CreateResponse,
    FunctionTool,
    GiveFeedback,
    InputMessage,
    ReferenceItem,
)
from antiphon.http.openai.responses.stored import HIGHEST_NUMBER, StoredRoutes
from antiphon.http.openai.responses.wire import (
    DeletedBody,
    FeedbackBody,
    InputTokensBody,
    ItemList,
    ResponseBody,
    ResponseList,
)
from antiphon.http.openai.vector_stores.schema import (
    ComparisonFilter,
    CompoundFilter,
    FileSearchTool,
)
from antiphon.moderating import Moderation
from antiphon.ports import Chat, Responses
from antiphon.retrieval import FileSearching
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess
from antiphon.telemetry import Telemetry

_ROOT = "/v1/responses"
_KINDS = (
    *(InputMessage, ReferenceItem, FunctionCallItem, FunctionOutputItem, FileSearchItem),
    *(FunctionTool, FileSearchTool, ComparisonFilter, CompoundFilter),
)
_KIND = "response"
_ONE = f"{_ROOT}/<{_KIND}:response_id>"
_STREAM = {"text/event-stream": ANY_TEXT}


class _ResponseId(BaseConverter):
    """Whatever could be an id, but not the operation whose URL looks like one: its `Allow` header
    would claim the methods of both."""

    regex = r"(?!input_tokens(?:/|$))[^/]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRoutes:
    """What the handlers work with."""

    responses: Responses
    store: StoreAccess
    chat: Chat
    http: Callable[[], HttpSettings]
    telemetry: Telemetry
    moderation: Moderation | None = None
    prompting: Prompting | None = None
    context: Callable[[], ContextSettings] = ContextSettings
    files: MessageFiles | None = None
    searching: FileSearching | None = None

    def register(self, app: Quart) -> None:
        app.url_map.converters.setdefault(_KIND, _ResponseId)
        create = CreateRoutes(
            responses=self.responses,
            store=self.store,
            chat=self.chat,
            http=self.http,
            telemetry=self.telemetry,
            moderation=self.moderation,
            prompting=self.prompting,
            context=self.context,
            files=self.files,
            searching=self.searching,
        )
        stored = StoredRoutes(
            responses=self.responses, store=self.store, http=self.http, telemetry=self.telemetry
        )
        mount(app, (*_creating(create), *_showing(stored), *_changing(stored)))


def _creating(routes: CreateRoutes) -> tuple[Operation, ...]:
    return (
        Operation(
            method="POST",
            rule=_ROOT,
            name="create_response",
            handler=routes.create,
            summary="Answer, whole, as a stream, or in the background",
            body=CreateResponse,
            also=_KINDS,
            answer=ResponseBody,
            media=_STREAM,
            errors=(404, 422, 507),
        ),
        Operation(
            method="POST",
            rule=f"{_ROOT}/input_tokens",
            name="count_input_tokens",
            handler=routes.count,
            summary="Count the tokens of a request, with what came before it",
            body=CountInputTokens,
            also=_KINDS,
            body_required=False,
            answer=InputTokensBody,
            errors=(404,),
        ),
    )


def _showing(routes: StoredRoutes) -> tuple[Operation, ...]:
    return (
        Operation(
            method="GET",
            rule=_ROOT,
            name="list_responses",
            handler=routes.list_all,
            summary="List responses by creation",
            answer=ResponseList,
            query=(
                *page_queries(),
                Query("conversation", str, "Only those of this conversation."),
                Query("model", str, "Only those of this model."),
            ),
            errors=(404,),
        ),
        Operation(
            method="GET",
            rule=_ONE,
            name="retrieve_response",
            handler=routes.get,
            summary="Show a response, or all its events as a stream",
            answer=ResponseBody,
            media=_STREAM,
            query=(
                INCLUDE_QUERY,
                Query("stream", bool, "Its events, from the first one on."),
                Query(
                    "starting_after",
                    int,
                    "Only events with a higher sequence number.",
                    minimum=-1,
                    maximum=HIGHEST_NUMBER,
                ),
                Query("include_obfuscation", bool, "Accepted; nothing is obfuscated."),
            ),
        ),
        Operation(
            method="GET",
            rule=f"{_ONE}/input_items",
            name="list_input_items",
            handler=routes.input_items,
            summary="List the items that the request brought",
            answer=ItemList,
            query=(*page_queries(), INCLUDE_QUERY),
        ),
    )


def _changing(routes: StoredRoutes) -> tuple[Operation, ...]:
    return (
        Operation(
            method="DELETE",
            rule=_ONE,
            name="delete_response",
            handler=routes.delete,
            summary="Delete a response; its items leave its conversation",
            answer=DeletedBody,
        ),
        Operation(
            method="POST",
            rule=f"{_ONE}/cancel",
            name="cancel_response",
            handler=routes.cancel,
            summary="End a response, wherever it runs",
            answer=ResponseBody,
        ),
        Operation(
            method="POST",
            rule=f"{_ONE}/feedback",
            name="rate_response",
            handler=routes.rate,
            summary="Say what a person thought of a response",
            body=GiveFeedback,
            answer=FeedbackBody,
        ),
    )
