"""`GET /v1/conversations/search`: find conversations by what was said in them."""

from dataclasses import dataclass, field

import trio
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon.finding import FoundPage
from antiphon.http.openai.body import json_response
from antiphon.http.openai.conversations.wire import (
    FoundConversationList,
    FoundConversationObject,
    found_object,
)
from antiphon.http.openai.lists import ListBody, check_text, parse_integer
from antiphon.http.openai.openapi import Operation, Query, mount
from antiphon.http.principal import current_principal
from antiphon.ids import ConversationId
from antiphon.storage import StoreAccess

MAX_QUERY = 200
_DEFAULT, _LONGEST = 20, 100
_AT_ONCE = 2
"""Searches that read at the same time. More of them wait here, and not in front of turns at the
store, whose readers are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRoutes:
    """What the handler works with."""

    store: StoreAccess
    _room: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(_AT_ONCE))

    def register(self, app: Quart) -> None:
        operation = Operation(
            method="GET",
            rule="/v1/conversations/search",
            name="search_conversations",
            handler=self.search,
            summary="Find conversations by their titles and by what was said in them",
            answer=FoundConversationList,
            query=(
                Query("query", str, "Words; all have to be there, in any case.", longest=MAX_QUERY),
                Query(
                    "limit",
                    int,
                    f"At most {_LONGEST}.",
                    minimum=1,
                    maximum=_LONGEST,
                    default=_DEFAULT,
                ),
                Query("after", str, "The `last_id` of the part before."),
            ),
        )
        mount(app, (operation,))

    async def search(self) -> TrioResponse:
        query = request.args.get("query", "")
        check_text("query", query, MAX_QUERY)
        limit = parse_integer(request.args, "limit", _DEFAULT, 1, _LONGEST)
        after = request.args.get("after") or None
        if after is not None:
            check_text("after", after, MAX_QUERY)
        user = current_principal().user

        async with self._room:
            page = await self.store.run(
                lambda store: store.find_said(
                    user, query, after=None if after is None else ConversationId(after), limit=limit
                )
            )
        return json_response(_body(page))


def _body(page: FoundPage) -> ListBody[FoundConversationObject]:
    """Its `last_id` may be of a conversation in which nothing was found."""
    data = list(map(found_object, page.found))
    return ListBody(
        data=data,
        first_id=data[0].id if data else "",
        last_id=page.last or "",
        has_more=page.has_more,
    )
