"""What handlers share: a JSON request body, bounded in size and time, uncompressed and of the right
type; ids from URLs; a JSON answer."""

import re
import time
from typing import Any

import msgspec
from quart import request
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from antiphon.errors import PayloadTooLarge, RecordNotFound

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


async def read_json_body(max_bytes: int) -> bytes:
    """The body, bounded by the application's configuration. Raises PayloadTooLarge,
    RequestTimeout, UnsupportedMediaType."""
    if request.content_length is not None and request.content_length > max_bytes:
        raise PayloadTooLarge(max_bytes)
    refuse_compressed()
    if request.mimetype and request.mimetype != "application/json":
        raise UnsupportedMediaType(
            f"Unsupported content type: '{request.mimetype[:100]}'. This API method only accepts "
            "'application/json' requests, but you specified a different Content-Type header."
        )
    try:
        return await request.get_data(cache=False, as_text=False, parse_form_data=False)
    except RequestEntityTooLarge:  # a chunked body, whose length nobody announced
        raise PayloadTooLarge(max_bytes) from None


def refuse_compressed() -> None:
    """Raises UnsupportedMediaType."""
    if request.content_encoding not in {None, "identity"}:
        raise UnsupportedMediaType("Compressed request bodies are not supported.")


def json_response(body: Any) -> TrioResponse:
    """A successful answer."""
    return TrioResponse(msgspec.json.encode(body), content_type="application/json")


def checked_id(kind: str, text: str, param: str) -> str:
    """An id that a store may see: whatever else stands in a URL names nothing. Raises
    RecordNotFound."""
    if _ID.fullmatch(text) is None:
        raise RecordNotFound(kind, text, param)
    return text


def wall_ms() -> int:
    """The time as records have it."""
    return time.time_ns() // 1_000_000
