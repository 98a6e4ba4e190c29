"""Ranges of the request's fields, with OpenAI's words and codes for what lies outside."""

import math

from antiphon.errors import InvalidRequest
from antiphon.http.openai.schema import ChatCompletionRequest

_MAX_STOPS = 4
_MAX_STOP_CHARACTERS = 500
_MAX_IDENTIFIER_CHARACTERS = 512
"""OpenAI bounds `safety_identifier` only; a long `user` is common, a page of text is not."""
_SEED_BOUND = 2**63
_MAX_METADATA_PAIRS = 16
_MAX_METADATA_KEY = 64
_MAX_METADATA_VALUE = 512
_MAX_TOKENS_BOUND = 2**31


def check_bounds(request: ChatCompletionRequest, *, max_choices: int) -> None:
    """Raises InvalidRequest for the first field out of range."""
    if not request.model:
        raise InvalidRequest("you must provide a model parameter", "model")
    if not request.messages:
        raise empty_array("messages")
    check_integer("n", request.n, 1, max_choices)
    check_integer("max_tokens", request.max_tokens, 1, _MAX_TOKENS_BOUND)
    check_integer("max_completion_tokens", request.max_completion_tokens, 1, _MAX_TOKENS_BOUND)
    check_integer("seed", request.seed, -_SEED_BOUND, _SEED_BOUND - 1)
    check_integer("top_logprobs", request.top_logprobs, 0, 20)
    check_integer("top_k", request.top_k, -1, _MAX_TOKENS_BOUND)
    check_integer("min_tokens", request.min_tokens, 0, _MAX_TOKENS_BOUND)
    check_decimal("temperature", request.temperature, 0, 2)
    check_decimal("top_p", request.top_p, 0, 1)
    check_decimal("min_p", request.min_p, 0, 1)
    check_decimal("presence_penalty", request.presence_penalty, -2, 2)
    check_decimal("frequency_penalty", request.frequency_penalty, -2, 2)
    check_decimal("repetition_penalty", request.repetition_penalty, 0.01, 10)
    check_length("safety_identifier", request.safety_identifier, 64)
    check_length("user", request.user, _MAX_IDENTIFIER_CHARACTERS)
    check_length("prompt_cache_key", request.prompt_cache_key, _MAX_IDENTIFIER_CHARACTERS)
    check_metadata(request.metadata)
    _check_stop(request.stop)
    _check_answer_length(request)


def check_metadata(metadata: dict[str, str] | None) -> None:
    """Raises InvalidRequest."""
    if metadata is None:
        return
    if len(metadata) > _MAX_METADATA_PAIRS:
        raise InvalidRequest(
            "Invalid 'metadata': too many properties. Expected an object with at most "
            f"{_MAX_METADATA_PAIRS} properties, but got an object with {len(metadata)} properties "
            "instead.",
            "metadata",
            "object_above_max_properties",
        )
    for key, value in metadata.items():
        check_length("metadata", key, _MAX_METADATA_KEY)
        check_length(f"metadata.{key}", value, _MAX_METADATA_VALUE)


def empty_array(param: str) -> InvalidRequest:
    """The error for a list that must not be empty."""
    return InvalidRequest(
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param,
        "empty_array",
    )


def _check_stop(stop: str | list[str] | None) -> None:
    match stop:
        case None:
            return
        case str():
            _check_stop_string("stop", stop)
        case list():
            if len(stop) > _MAX_STOPS:
                raise InvalidRequest(
                    "Invalid 'stop': array too long. Expected an array with maximum length "
                    f"{_MAX_STOPS}, but got an array with length {len(stop)} instead.",
                    "stop",
                    "array_above_max_length",
                )
            for index, text in enumerate(stop):
                _check_stop_string(f"stop[{index}]", text)


def _check_stop_string(param: str, text: str) -> None:
    if not text:
        raise InvalidRequest(
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, but got "
            "an empty string instead.",
            param,
            "empty_string",
        )
    check_length(param, text, _MAX_STOP_CHARACTERS)


def _check_answer_length(request: ChatCompletionRequest) -> None:
    old, new = request.max_tokens, request.max_completion_tokens
    if old is not None and new is not None and old != new:
        raise InvalidRequest(
            "Setting 'max_tokens' and 'max_completion_tokens' to different values is not "
            "supported; 'max_tokens' is deprecated in favour of 'max_completion_tokens'.",
            "max_tokens",
            "invalid_value",
        )
    longest = new if new is not None else old
    if request.min_tokens and longest is not None and request.min_tokens > longest:
        raise InvalidRequest(
            f"Invalid 'min_tokens': must not exceed the maximum of {longest} tokens.",
            "min_tokens",
            "invalid_value",
        )


def check_integer(param: str, value: int | None, low: int, high: int) -> None:
    """Raises InvalidRequest."""
    if value is not None:
        _range(param, value, low, high, "integer")


def check_decimal(param: str, value: float | None, low: float, high: float) -> None:
    """Raises InvalidRequest."""
    if value is None:
        return
    if not math.isfinite(value):
        raise InvalidRequest(f"Invalid '{param}': must be finite.", param, "invalid_value")
    _range(param, value, low, high, "decimal")


def _range(param: str, value: float, low: float, high: float, kind: str) -> None:
    if value < low:
        problem, code, bound = "below minimum", "below_min", f">= {low}"
    elif value > high:
        problem, code, bound = "above maximum", "above_max", f"<= {high}"
    else:
        return
    raise InvalidRequest(
        f"Invalid '{param}': {kind} {problem} value. Expected a value {bound}, but got "
        f"{value!r:.40} instead.",
        param,
        f"{kind}_{code}_value",
    )


def check_length(param: str, value: str | None, longest: int) -> None:
    """Raises InvalidRequest."""
    if value is not None and len(value) > longest:
        raise InvalidRequest(
            f"Invalid '{param}': string too long. Expected a string with maximum length "
            f"{longest}, but got a string with length {len(value)} instead.",
            param,
            "string_above_max_length",
        )
