"""What an upstream's error means, in whichever envelope it comes. Pure and total: any JSON, any
text is read without an error of our own.

Seen in the wild: OpenAI's `{"error": {…}}`; vLLM's with an integer `code`; SGLang's flat
`{"object": "error", …}`, also as an event of a 200 stream; TGI's `{"error": "…", "error_type"}`;
FastAPI's `{"detail": …}`; llama-server's `exceed_context_size_error`; a proxy's HTML.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from antiphon.engine.upstream.trouble import Kind, Trouble

_LONGEST_MESSAGE = 500
_BUSY = frozenset({408, 425, 429, 503, 529})
_CONTEXT = re.compile(
    r"context.?(length|size|window)|maximum (context|input|model)|max_model_len|exceed\w* context"
    r"|(prompt|input) (is )?too long|longer than the (model|maximum)|max_(seq_len|num_tokens)"
)
_LOAD = re.compile(
    r"queue.{0,10}(is )?full|overload|too many (requests|tokens)|rate.?limit|capacity"
)


def refusal(status: int, body: bytes, retry_after: str | None = None) -> Trouble:
    """The trouble behind an answer that isn't 200."""
    text = body.decode("utf-8", "replace")
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = {}
    _, kind, message = _read(value)
    return Trouble(
        _meaning(status, kind, message),
        f"status {status}",
        message[:_LONGEST_MESSAGE],
        _seconds(retry_after),
    )


def refusal_in_stream(value: Any) -> Trouble | None:
    """The trouble in an event's data, or None when it is no error."""
    if not isinstance(value, dict):
        return None
    has_error = value.get("error") not in (None, "", {}, False)
    if not has_error and value.get("object") != "error":
        return None
    return in_band(value)


def in_band(value: Any) -> Trouble:
    """The trouble in what is known to be an error."""
    status, kind, message = _read(value)
    meaning = Kind.BROKEN if status is None else _meaning(status, kind, message)
    if status is None and _LOAD.search(f"{kind} {message}".lower()):
        meaning = Kind.BUSY
    fact = "an error in its stream" if status is None else f"an error in its stream, {status}"
    return Trouble(meaning, fact, message[:_LONGEST_MESSAGE])


def _meaning(status: int, kind: str, message: str) -> Kind:
    words = f"{kind} {message}".lower()
    match status:
        case 400 | 413 | 422 if _CONTEXT.search(words):
            return Kind.CONTEXT
        case 400 | 413 | 415 | 422:
            return Kind.INVALID
        case 401 | 403 | 404 | 405:
            return Kind.UNUSABLE
        case _ if status in _BUSY:
            return Kind.BUSY
        case 502:  # a proxy that found nobody behind it, or lost it on the way
            return Kind.LOST
        case 504:
            return Kind.SILENT
        case _:
            return Kind.BROKEN


def _read(value: Any) -> tuple[int | None, str, str]:
    """Status, type and message, as far as there are any."""
    match value:
        case {"error": dict(error)}:
            return _fields(error)
        case {"error": str(message)}:
            return _status(value), str(value.get("error_type", "")), message
        case {"detail": str(message)}:
            return _status(value), "", message
        case {"detail": detail}:
            return _status(value), "", json.dumps(detail)
        case dict():
            return _fields(value)
        case str():
            return None, "", value
        case _:
            return None, "", ""


def _fields(error: Mapping[str, Any]) -> tuple[int | None, str, str]:
    kind = f"{error.get('type') or ''} {error.get('code') or ''}"
    message = error.get("message")
    return _status(error), kind, message if isinstance(message, str) else ""


def _status(error: Mapping[str, Any]) -> int | None:
    """An HTTP status where one is meant: `code` is a number in vLLM, a word in OpenAI."""
    for name in ("status", "status_code", "code"):
        code = error.get(name)
        if isinstance(code, str) and code.isascii() and code.isdecimal():
            code = int(code[:4])
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
            return code
    return None


def _seconds(text: str | None) -> float | None:
    """`Retry-After` in seconds; its form as a date is not worth a parser here."""
    if text is None or not text.strip().isdecimal():
        return None
    return min(float(text), 60.0)
