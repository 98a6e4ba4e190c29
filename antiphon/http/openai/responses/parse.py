"""A request for a response, read and checked: what remains can be turned into a NewAnswer.

Pure and synchronous. It knows no engine and no store: what depends on one is checked later.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.http.openai.bounds import (
    check_decimal,
    check_integer,
    check_length,
    check_metadata,
    empty_array,
)
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.responses.items import GivenItem, parse_items, text_item
from antiphon.http.openai.responses.refusals import refuse_unsupported, refuse_unsupported_input
from antiphon.http.openai.responses.schema import (
    CountInputTokens,
    CreateResponse,
    GiveFeedback,
    InputFields,
    NamedSchemaFormat,
)
from antiphon.http.openai.schemas import check_named_schema
from antiphon.http.openai.tools import GivenTools, check_tools, parse_tools
from antiphon.ids import ConversationId, ResponseId

B = TypeVar("B", bound=InputFields)

_CREATE = msgspec.json.Decoder(CreateResponse)
_COUNT = msgspec.json.Decoder(CountInputTokens)
_FEEDBACK = msgspec.json.Decoder(GiveFeedback)
_ALLOWED = {
    "type": "'text', 'json_object', and 'json_schema' in text.format",
    "truncation": "'auto' and 'disabled'",
    "verbosity": "'low', 'medium', and 'high'",
    "service_tier": "'auto', 'default', 'flex', 'scale', 'priority', 'fast', and 'ultrafast'",
    "prompt_cache_retention": "'in_memory' and '24h'",
    "rating": "'up' and 'down'",
}
_RESPONSE_ID = re.compile(r"resp_[A-Za-z0-9_-]{1,128}")
_CONVERSATION_ID = re.compile(r"conv_[A-Za-z0-9_-]{1,128}")
_MAX_TOKENS_BOUND = 2**31
_LEAST_OUTPUT_TOKENS = 16
_MAX_IDENTIFIER_CHARACTERS = 512
_MAX_REASON_CHARACTERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedInput:
    """What goes before the answer, as far as the request tells it."""

    items: tuple[GivenItem, ...]
    conversation: ConversationId | None
    previous: ResponseId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCreate:
    """A valid request."""

    body: CreateResponse
    input: ParsedInput
    given: GivenTools
    digest: str
    """The same for the same request, however its JSON is spaced and ordered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCount:
    """A valid request to count tokens."""

    body: CountInputTokens
    input: ParsedInput
    given: GivenTools


def parse_create(body: bytes, now_ms: int) -> ParsedCreate:
    """Raises InvalidRequest for whatever this server would have to ignore or can't do,
    RecordNotFound for an id that can't be one."""
    request = decode_body(body, _CREATE, _ALLOWED)
    refuse_unsupported(request)
    _check_bounds(request)
    _check_state(request)
    return ParsedCreate(
        body=request,
        input=_parse_input(request, now_ms),
        given=_given_tools(request),
        digest=digest_of(body),
    )


def parse_count(body: bytes, now_ms: int) -> ParsedCount:
    """Raises as `parse_create`."""
    request = decode_body(body or b"{}", _COUNT, _ALLOWED)
    refuse_unsupported_input(request)
    given = _parse_input(request, now_ms, may_be_empty=True)
    return ParsedCount(body=request, input=given, given=_given_tools(request))


def parse_feedback(body: bytes) -> GiveFeedback:
    """Raises InvalidRequest."""
    feedback = decode_body(body, _FEEDBACK, _ALLOWED)
    check_length("reason", feedback.reason, _MAX_REASON_CHARACTERS)
    return feedback


def response_id(text: str, param: str = "response_id") -> ResponseId:
    """Raises RecordNotFound for what can't be one: a store need not see it."""
    if _RESPONSE_ID.fullmatch(text) is None:
        raise RecordNotFound("response", text, param)
    return ResponseId(text)


def conversation_id(text: str) -> ConversationId:
    """Raises RecordNotFound for what can't be one."""
    if _CONVERSATION_ID.fullmatch(text) is None:
        raise RecordNotFound("conversation", text, "conversation")
    return ConversationId(text)


def digest_of(body: bytes) -> str:
    """SHA-256 of a JSON body that is known to be valid."""
    canonical = msgspec.json.encode(msgspec.json.decode(body), order="deterministic")
    return hashlib.sha256(canonical).hexdigest()


def check_schemas(parsed: ParsedCreate | ParsedCount) -> None:
    """Raises InvalidRequest unless the JSON schemas are some; leave the event loop for it when
    there are any."""
    check_tools(parsed.given)
    body = parsed.body
    if body.text is not None and isinstance(body.text.format, NamedSchemaFormat):
        named = body.text.format
        check_named_schema(named.name, named.schema, place="text.format", what="text.format")


def has_schemas(parsed: ParsedCreate | ParsedCount) -> bool:
    """Whether `check_schemas` has work to do."""
    text = parsed.body.text
    has_format = text is not None and isinstance(text.format, NamedSchemaFormat)
    return has_format or bool(parsed.given.tools)


def _given_tools(body: InputFields) -> GivenTools:
    return parse_tools(body.tools, body.tool_choice, body.parallel_tool_calls)


def _check_bounds(body: CreateResponse) -> None:
    if body.model == "":
        raise InvalidRequest("you must provide a model parameter", "model")
    check_integer(
        "max_output_tokens", body.max_output_tokens, _LEAST_OUTPUT_TOKENS, _MAX_TOKENS_BOUND
    )
    check_integer("max_tool_calls", body.max_tool_calls, 0, _MAX_TOKENS_BOUND)
    check_integer("top_logprobs", body.top_logprobs, 0, 20)
    for index, entry in enumerate(body.context_management or ()):
        check_integer(
            f"context_management[{index}].compact_threshold",
            entry.compact_threshold,
            1,
            _MAX_TOKENS_BOUND,
        )
    check_decimal("temperature", body.temperature, 0, 2)
    check_decimal("top_p", body.top_p, 0, 1)
    check_decimal("presence_penalty", body.presence_penalty, -2, 2)
    check_decimal("frequency_penalty", body.frequency_penalty, -2, 2)
    check_length("safety_identifier", body.safety_identifier, 64)
    check_length("user", body.user, _MAX_IDENTIFIER_CHARACTERS)
    check_length("prompt_cache_key", body.prompt_cache_key, _MAX_IDENTIFIER_CHARACTERS)
    check_metadata(body.metadata)


def _check_state(body: CreateResponse) -> None:
    if body.is_stored:
        return
    for name in ("conversation", "background"):
        if getattr(body, name):
            raise InvalidRequest(
                f"The '{name}' parameter is only allowed when 'store' is enabled.",
                name,
                "invalid_value",
            )


def _parse_input(body: InputFields, now_ms: int, *, may_be_empty: bool = False) -> ParsedInput:
    conversation = body.conversation_id
    previous = body.previous_response_id
    match body.input:
        case str() as text:
            items: tuple[GivenItem, ...] = (text_item("user", text, now_ms),)
        case list() as values if values:
            items = parse_items(values, "input", now_ms)
        case given:
            # A turn without words of its own goes on from what is there already.
            is_nothing = conversation is None and previous is None and not may_be_empty
            if is_nothing and given is None:
                raise InvalidRequest(
                    "One of 'input', 'previous_response_id' or 'conversation' must be provided.",
                    "input",
                    "missing_required_parameter",
                )
            if is_nothing:
                raise empty_array("input")
            items = ()
    return ParsedInput(
        items=items,
        conversation=None if conversation is None else conversation_id(conversation),
        previous=None if previous is None else response_id(previous, "previous_response_id"),
    )
