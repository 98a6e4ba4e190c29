"""Cursor pages as the API has them: `limit`, `order`, `after` in, and the list envelope out.

A page asks the store for one record more than it shows: that is how `has_more` is known.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Literal, TypeVar, get_args

import msgspec
from werkzeug.datastructures import MultiDict

from antiphon.errors import InvalidRequest, UnknownCursor
from antiphon.http.openai.openapi import Query
from antiphon.records import Page
from antiphon.storage import Store, StoreAccess

T = TypeVar("T")
R = TypeVar("R")

_MAX_CURSOR_CHARACTERS = 256
_LIKE_AN_ID = re.compile(r"[a-z]+[-_]")
Includable = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]
"""What `include` may name. Items are kept and shown whole, so it never changes an answer."""


class ListBody(msgspec.Struct, Generic[T], kw_only=True):
    """The envelope of every list. The ids are empty when the list is: the specification has no
    null there."""

    object: Literal["list"] = "list"
    data: list[T]
    first_id: str
    last_id: str
    has_more: bool


def page_queries(
    *, default: int = 20, longest: int = 100, order: str = "desc"
) -> tuple[Query, ...]:
    """The documented parameters of a list."""
    return (
        Query("limit", int, f"At most {longest}.", minimum=0, maximum=longest, default=default),
        Query("order", Literal["asc", "desc"], "By time; `desc` is newest first.", default=order),
        Query("after", str, "The id of the last element of the page before."),
    )


INCLUDE_QUERY = Query("include", list[Includable], "Accepted; items are always whole.")
_INCLUDABLE = get_args(Includable)


def parse_page(
    args: "MultiDict[str, str]",
    *,
    default: int = 20,
    longest: int = 100,
    newest_first: bool = True,
) -> Page:
    """What the query string asks for. Raises InvalidRequest."""
    order = args.get("order", "desc" if newest_first else "asc")
    if order not in {"asc", "desc"}:
        raise InvalidRequest(
            f"Invalid value for 'order': {order[:100]!r}. Supported values are: 'asc' and 'desc'.",
            "order",
            "invalid_value",
        )
    after = args.get("after") or None
    if after is not None:
        check_text("after", after, _MAX_CURSOR_CHARACTERS)
    limit = parse_integer(args, "limit", default, 0, longest)
    return Page(limit=limit, after=after, newest_first=order == "desc")


def parse_integer(args: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """Raises InvalidRequest."""
    text = args.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 20:
        raise InvalidRequest(
            f"Invalid type for '{name}': expected an integer, but got {text[:40]!r} instead.",
            name,
            "invalid_type",
        )
    value = int(text)
    if not low <= value <= high:
        which, bound = ("minimum", f">= {low}") if value < low else ("maximum", f"<= {high}")
        side = "below_min" if value < low else "above_max"
        raise InvalidRequest(
            f"Invalid '{name}': integer {side.split('_')[0]} {which} value. Expected a value "
            f"{bound}, but got {value} instead.",
            name,
            f"integer_{side}_value",
        )
    return value


def parse_flag(args: "MultiDict[str, str]", name: str) -> bool:
    """`true` or `false`; absent is false. Raises InvalidRequest."""
    match args.get(name):
        case "true" | "1":
            return True
        case None | "false" | "0":
            return False
        case text:
            raise InvalidRequest(
                f"Invalid value for '{name}': {text[:100]!r}. Supported values are: 'true' and "
                "'false'.",
                name,
                "invalid_value",
            )


def check_include(args: "MultiDict[str, str]") -> None:
    """SDKs write `include[]`, the specification `include`. Raises InvalidRequest."""
    for value in (*args.getlist("include"), *args.getlist("include[]")):
        if value not in _INCLUDABLE:
            raise InvalidRequest(
                f"Invalid value for 'include': {value[:100]!r}. Supported values are: "
                f"{', '.join(map(repr, _INCLUDABLE))}.",
                "include",
                "invalid_value",
            )


def check_text(name: str, text: str, longest: int) -> None:
    """A query parameter that a database may see. Raises InvalidRequest."""
    if len(text) > longest:
        raise InvalidRequest(
            f"Invalid '{name}': string too long. Expected a string with maximum length {longest}, "
            f"but got a string with length {len(text)} instead.",
            name,
            "string_above_max_length",
        )
    if "\x00" in text:
        raise InvalidRequest(
            f"Invalid '{name}': the string contains a NUL character, which is not allowed.",
            name,
            "invalid_string",
        )


def one_more(page: Page) -> Page:
    """The page to ask the store for."""
    return replace(page, limit=page.limit + 1)


async def fetch(
    store: StoreAccess, page: Page, work: Callable[[Store], Awaitable[T]]
) -> T | tuple[()]:
    """What a page holds. After a word that can't be an id of ours there is nothing, which OpenAI's
    own client tests rely on; after an id that is not in the list, perhaps since it was deleted, the
    rest of the list is unknown, and nothing would look like its end. Raises as `work`."""
    try:
        return await store.run(work)
    except UnknownCursor:
        if page.after is not None and _LIKE_AN_ID.match(page.after):
            raise
        return ()


def list_body(
    records: Sequence[R], page: Page, render: Callable[[R], T], id_of: Callable[[T], str]
) -> ListBody[T]:
    """The envelope, from what the store gave for `one_more(page)`."""
    data = [render(record) for record in records[: page.limit]]
    return ListBody(
        data=data,
        first_id=id_of(data[0]) if data else "",
        last_id=id_of(data[-1]) if data else "",
        has_more=len(records) > page.limit,
    )
