"""A chat completion request, read and checked: what remains can be turned into a Turn.

Pure and synchronous. It knows no engine: what depends on one is checked in `turns`.
"""

from dataclasses import dataclass
from typing import assert_never

import msgspec

from antiphon.errors import InvalidRequest
from antiphon.events import Message, Role
from antiphon.http.openai.bounds import check_bounds, empty_array
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.refusals import refuse_unsupported, unsupported_value
from antiphon.http.openai.schema import (
    AssistantMessage,
    AudioPart,
    ChatCompletionRequest,
    ChatMessage,
    DeveloperMessage,
    FilePart,
    FunctionMessage,
    ImagePart,
    Part,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)

_DECODER = msgspec.json.Decoder(ChatCompletionRequest)
_ALLOWED = {
    "role": "'system', 'developer', 'user', and 'assistant'",
    "type": "'text' in content, and 'text', 'json_object', and 'json_schema' in response_format",
    "service_tier": "'auto', 'default', 'flex', 'scale', 'priority', and 'fast'",
    "prompt_cache_retention": "'in_memory' and '24h'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """A valid request and its messages as text."""

    body: ChatCompletionRequest
    messages: tuple[Message, ...]

    @property
    def include_usage(self) -> bool:
        options = self.body.stream_options
        return options is not None and bool(options.include_usage)


def parse_chat(body: bytes, *, max_choices: int, can_store: bool = False) -> ParsedRequest:
    """Raises InvalidRequest for whatever this server would have to ignore or can't do."""
    request = decode_body(body, _DECODER, _ALLOWED)
    refuse_unsupported(request, can_store=can_store)
    check_bounds(request, max_choices=max_choices)
    messages = tuple(
        _message(message, f"messages[{index}]") for index, message in enumerate(request.messages)
    )
    return ParsedRequest(body=request, messages=messages)


def _message(message: ChatMessage, path: str) -> Message:
    match message:
        case SystemMessage() | DeveloperMessage() | UserMessage():
            role = _role(message)
            content = _text(message.content, f"{path}.content", role)
            return Message(role=role, content=content, name=message.name)
        case AssistantMessage():
            return _assistant_message(message, path)
        case ToolMessage():
            raise unsupported_value(f"{path}.role", "tool", _ALLOWED["role"])
        case FunctionMessage():
            raise unsupported_value(f"{path}.role", "function", _ALLOWED["role"])
        case _:
            assert_never(message)


def _role(message: SystemMessage | DeveloperMessage | UserMessage) -> Role:
    match message:
        case SystemMessage():
            return "system"
        case DeveloperMessage():
            return "developer"
        case UserMessage():
            return "user"
        case _:
            assert_never(message)


def _assistant_message(message: AssistantMessage, path: str) -> Message:
    for name in ("audio", "tool_calls", "function_call"):
        if getattr(message, name):
            raise InvalidRequest(
                f"Unsupported parameter: '{path}.{name}' is not supported by this server.",
                f"{path}.{name}",
                "unsupported_parameter",
            )
    content = message.content
    if content is None and message.refusal is None:
        raise InvalidRequest(
            f"Missing required parameter: '{path}.content'.",
            f"{path}.content",
            "missing_required_parameter",
        )
    text = "" if content is None else _text(content, f"{path}.content", "assistant")
    return Message(role="assistant", content=text or message.refusal or "", name=message.name)


def _text(content: str | list[Part], path: str, role: Role) -> str:
    if isinstance(content, str):
        return content
    if not content:
        raise empty_array(path)
    # A line each, as vLLM joins them: chat templates take one string.
    return "\n".join(_part(part, f"{path}[{index}]", role) for index, part in enumerate(content))


def _part(part: Part, path: str, role: Role) -> str:
    match part:
        case TextPart(text=text):
            return text
        case RefusalPart(refusal=refusal):
            if role != "assistant":
                raise unsupported_value(f"{path}.type", "refusal", "'text'")
            return refusal
        case ImagePart():
            raise unsupported_value(f"{path}.type", "image_url", "'text'")
        case AudioPart():
            raise unsupported_value(f"{path}.type", "input_audio", "'text'")
        case FilePart():
            raise unsupported_value(f"{path}.type", "file", "'text'")
        case _:
            assert_never(part)
