"""One event of an upstream's stream, read: text, end, tokens so far, log-probabilities.

Pure. Reads chat completion chunks and text completion chunks, and all shapes of usage: a chunk of
its own without choices, with empty ones, beside the last choice, or in every chunk.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.engine.upstream.refusals import in_band, refusal_in_stream
from antiphon.engine.upstream.sse import Event
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.events import EndReason, TokenLogprob

DONE = "[DONE]"

_ENDS = {
    "stop": EndReason.STOP,
    "eos": EndReason.STOP,
    "eos_token": EndReason.STOP,
    "end_turn": EndReason.STOP,
    "stop_sequence": EndReason.STOP,
    "length": EndReason.LENGTH,
    "max_tokens": EndReason.LENGTH,
    "content_filter": EndReason.CONTENT_FILTER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """`is_token` where the model has said something, be it thought that isn't shown. Counts are
    None where nothing is said of them."""

    text: str = ""
    is_token: bool = False
    end: EndReason | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


def read_chunk(event: Event) -> Chunk:
    """Raises Trouble for an error in the stream, and for what is no chunk."""
    try:
        value = json.loads(event.data)
    except (ValueError, RecursionError) as error:
        if event.is_error:
            raise in_band(event.data) from error
        raise Trouble(Kind.BROKEN, "an event that is not JSON") from error
    if event.is_error:
        raise in_band(value)
    if (trouble := refusal_in_stream(value)) is not None:
        raise trouble
    if not isinstance(value, dict):
        raise Trouble(Kind.BROKEN, "an event that is no object")
    prompt_tokens, completion_tokens, cached_tokens = _usage(value)
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(choice, dict):
        raise Trouble(Kind.BROKEN, "a choice that is no object")
    delta = choice.get("delta") or choice.get("message") or {}
    if not isinstance(delta, dict):
        raise Trouble(Kind.BROKEN, "a delta that is no object")
    text = _text(choice.get("text")) or _text(delta.get("content"))
    thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
    return Chunk(
        text=text,
        is_token=bool(text or thought),
        end=_end(choice.get("finish_reason")),
        logprobs=_logprobs(choice.get("logprobs")),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=cached_tokens,
    )


def _end(reason: object) -> EndReason | None:
    if reason is None or reason == "":
        return None
    end = _ENDS.get(reason) if isinstance(reason, str) else None
    if end is None:  # "abort", "error", "tool_calls": nothing that we asked for
        raise Trouble(Kind.BROKEN, f"it ended for the reason {str(reason)[:40]!r}")
    return end


def _text(value: object) -> str:
    """A string, or the text parts of a list; a lone surrogate is no text."""
    if isinstance(value, list):
        value = "".join(
            part["text"]
            for part in value
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _usage(value: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    usage = value.get("usage")
    if not isinstance(usage, dict):
        return None, None, None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return (
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(cached),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _logprobs(value: object) -> tuple[TokenLogprob, ...]:
    match value:
        case {"content": list(entries)}:
            return tuple(_entry(entry) for entry in entries if isinstance(entry, dict))
        case {"tokens": list(tokens), "token_logprobs": list(numbers)}:
            pairs = zip(tokens, numbers, strict=False)
            return tuple(_entry({"token": token, "logprob": number}) for token, number in pairs)
        case _:
            return ()


def _entry(entry: Mapping[str, Any]) -> TokenLogprob:
    text = _text(entry.get("token"))
    number = entry.get("logprob")
    try:
        data = bytes(entry["bytes"])
    except (KeyError, TypeError, ValueError):
        data = text.encode()
    return TokenLogprob(
        text=text, data=data, logprob=float(number) if isinstance(number, int | float) else 0.0
    )
