"""Fields of the API that this server knows and can't honour: refused by name, never ignored.

A value that asks for nothing (null, an empty list, the documented default) is let through.
"""

from collections.abc import Callable, Sequence
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.http.openai.schema import ChatCompletionRequest

_Harmless = Callable[[Any], bool]


def _is_empty(value: Any) -> bool:
    return not value


def _one_of(*values: Any) -> _Harmless:
    return lambda value: value in values


_PARAMETERS: dict[str, _Harmless] = {
    "functions": _is_empty,
    "audio": _one_of(),
    "prediction": _one_of(),
    "web_search_options": _one_of(),
    "logit_bias": _is_empty,
    "priority": _one_of(),
    "cache_salt": _one_of(),
}
"""Refused whole: nothing but emptiness is accepted."""

_VALUES: dict[str, tuple[_Harmless, str]] = {
    "function_call": (_one_of("none"), "'none'"),
    "modalities": (_one_of(["text"], []), "['text']"),
    "reasoning_effort": (_one_of("none"), "'none'"),
    "verbosity": (_one_of("medium"), "'medium'"),
}
"""Refused unless the value is the one that this server's answers have anyway."""


def refuse_unsupported(request: ChatCompletionRequest, *, can_store: bool) -> None:
    """Raises InvalidRequest for the first field that asks for what isn't there."""
    if request.store and not can_store:
        raise unsupported_value("store", True, "false")
    if request.metadata and not request.store:
        raise InvalidRequest(
            "The 'metadata' parameter is only allowed when 'store' is enabled.",
            "metadata",
            "unsupported_parameter",
        )
    for name, is_harmless in _PARAMETERS.items():
        value = getattr(request, name)
        if value is not None and not is_harmless(value):
            raise InvalidRequest(
                f"Unsupported parameter: '{name}' is not supported by this server.",
                name,
                "unsupported_parameter",
            )
    for name, (is_harmless, supported) in _VALUES.items():
        value = getattr(request, name)
        if value is not None and not is_harmless(value):
            raise unsupported_value(name, value, supported)
    if request.stream_options is not None:
        if not request.stream:
            raise InvalidRequest(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
                "stream_options",
            )
        if request.stream_options.continuous_usage_stats:
            raise unsupported_value("stream_options.continuous_usage_stats", True, "false")
    if request.top_logprobs is not None:
        if not request.logprobs:
            raise InvalidRequest(
                "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
                "top_logprobs",
            )
        if request.top_logprobs != 0:
            raise unsupported_value("top_logprobs", request.top_logprobs, "0")


def no_vision(param: str, model: str, seeing: Sequence[str]) -> InvalidRequest:
    """The error for an image that the model can't see; `seeing` are those that could."""
    if seeing:
        who = f"The model {model!r} can't see images; these can: {', '.join(seeing)}."
    else:
        who = "No model of this server can see images; leave them out, or say in words what is on "
        who += "them."
    return InvalidRequest(f"Invalid value for '{param}'. {who}", param, "unsupported_value")


def unsupported_value(param: str, value: Any, supported: str) -> InvalidRequest:
    """The error for a value that OpenAI has and this server hasn't."""
    shown = repr(value) if isinstance(value, str | int | float) else "the given value"
    return InvalidRequest(
        f"Unsupported value: '{param}' does not support {shown[:100]} with this server. "
        f"Supported values are: {supported}.",
        param,
        "unsupported_value",
    )
