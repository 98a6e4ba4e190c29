"""The request bodies of `/v1/memory`, and what a text that is remembered may be."""

import re
from typing import Annotated

import msgspec

from antiphon.errors import InvalidRequest
from antiphon.http.openai.bounds import check_length
from antiphon.http.openai.schema import Strict

LONGEST_TEXT = 500
_BREAKS = "\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029"
_BREAK = re.compile(f"[{_BREAKS}]")


class WriteMemory(Strict, frozen=True):
    """One line."""

    text: Annotated[
        str,
        msgspec.Meta(
            extra_json_schema={
                "minLength": 1,
                "maxLength": LONGEST_TEXT,
                "pattern": f"^[^{_BREAKS}]*$",
            }
        ),
    ]


def checked_text(text: str) -> str:
    """Without the space around it. Raises InvalidRequest."""
    text = text.strip()
    if not text:
        raise InvalidRequest(
            "Invalid 'text': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead.",
            "text",
            "empty_string",
        )
    check_length("text", text, LONGEST_TEXT)
    if _BREAK.search(text) is not None:
        raise InvalidRequest(
            "Invalid 'text': expected one line, without line breaks or control characters.",
            "text",
            "invalid_string",
        )
    return text


def says_the_same(one: str, other: str) -> bool:
    """In whatever case and spacing."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
