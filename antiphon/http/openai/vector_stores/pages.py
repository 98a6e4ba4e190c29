"""Pages of vector stores and their files: lists that can be read backwards, too."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from werkzeug.datastructures import MultiDict

from antiphon.errors import InvalidRequest
from antiphon.http.openai.lists import ListBody, fetch, list_body, one_more, parse_page
from antiphon.http.openai.openapi import Query
from antiphon.records import Page
from antiphon.storage import Store, StoreAccess

R = TypeVar("R")

BEFORE = Query("before", str, "The id of the first element of the page after.")


class Identified(Protocol):
    """What a list shows."""

    id: str


T = TypeVar("T", bound=Identified)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsked:
    """`page` is what the store is asked for: with `is_backwards` in the order that is shown, turned
    round."""

    page: Page
    is_backwards: bool


def page_of(args: "MultiDict[str, str]") -> PageAsked:
    """What the query string asks for. Raises InvalidRequest."""
    page = parse_page(args)
    before = args.get("before") or None
    if before is None:
        return PageAsked(page=page, is_backwards=False)
    if page.after is not None:
        raise InvalidRequest(
            "Mutually exclusive parameters: 'after' and 'before'.",
            "before",
            "mutually_exclusive_parameters",
        )
    turned = {"after": before, "order": "asc" if page.newest_first else "desc"}
    checked = parse_page(MultiDict({**args.to_dict(), **turned}))
    return PageAsked(page=checked, is_backwards=True)


async def fetch_page(
    store: StoreAccess,
    asked: PageAsked,
    work: Callable[[Store, Page], Awaitable[Sequence[R]]],
    render: Callable[[R], T],
) -> ListBody[T]:
    """Raises as `work`."""
    page = asked.page
    found = await fetch(store, page, lambda store: work(store, one_more(page)))
    if not asked.is_backwards:
        return list_body(found, page, render, lambda each: each.id)
    body = list_body(found, page, render, lambda each: each.id)
    body.data.reverse()
    body.first_id, body.last_id = body.last_id, body.first_id
    return body
