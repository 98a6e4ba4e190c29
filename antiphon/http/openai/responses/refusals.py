"""Fields of the Responses API that this server knows and can't honour: refused by name, never
ignored. A value that asks for nothing, or for what happens anyway, is let through."""

from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.schema import (
    CountInputTokens,
    CreateResponse,
    InputFields,
    ReasoningOptions,
)

_PARAMETERS = (
    "access_programs",
    "background_options",
    "image",
)
"""Refused whole."""

_REASONING = {
    "effort": "none",
    "summary": "auto",
    "generate_summary": "auto",
    "mode": "standard",
    "context": "auto",
}
"""Where an answer without any reasoning is what was asked for."""


def refuse_unsupported(body: CreateResponse) -> None:
    """Raises InvalidRequest for the first field that asks for what isn't there."""
    for name in _PARAMETERS:
        if getattr(body, name):
            raise _unsupported_parameter(name)
    refuse_unsupported_input(body)
    for index, entry in enumerate(body.context_management or ()):
        if entry.type != "compaction":
            place = f"context_management[{index}].type"
            raise unsupported_value(place, entry.type, "'compaction'")
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
        )
    if body.top_logprobs:
        raise unsupported_value("top_logprobs", body.top_logprobs, "0")


def refuse_unsupported_input(body: InputFields) -> None:
    """The same, for the fields that bear on the input."""
    if isinstance(body, CountInputTokens) and body.personality is not None:
        raise _unsupported_parameter("personality")
    if body.text is not None:
        _refuse_unless("text.verbosity", body.text.verbosity, {"medium"}, "'medium'")
    if body.reasoning is not None:
        _refuse_reasoning(body.reasoning)
    if body.conversation_id is not None and body.previous_response_id is not None:
        raise InvalidRequest(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you "
            "are only providing one of them.",
            "previous_response_id",
            "mutually_exclusive_parameters",
        )


def _refuse_reasoning(reasoning: ReasoningOptions) -> None:
    """No model here reasons; so nothing is summarised, and nothing could be carried over."""
    for name, harmless in _REASONING.items():
        value = getattr(reasoning, name)
        _refuse_unless(f"reasoning.{name}", value, {harmless}, repr(harmless))


def _refuse_unless(param: str, value: Any, harmless: set[str], supported: str) -> None:
    if value is not None and not (isinstance(value, str) and value in harmless):
        raise unsupported_value(param, value, supported)


def _unsupported_parameter(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"Unsupported parameter: '{name}' is not supported by this server.",
        name,
        "unsupported_parameter",
    )
