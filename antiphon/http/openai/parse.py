"""A chat completion request, read and checked: what remains can be turned into a Turn.

Pure and synchronous. It knows no engine: what depends on one is checked in `turns`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, assert_never

import msgspec

from antiphon.errors import InvalidRequest
from antiphon.events import Image, Message, Role
from antiphon.http.openai.bounds import check_bounds, check_length, empty_array
from antiphon.http.openai.decode import convert_value, decode_body
from antiphon.http.openai.files.images import GivenImage, given_image
from antiphon.http.openai.files.inline import MAX_FILENAME, GivenFile, check_given
from antiphon.http.openai.refusals import refuse_unsupported, unsupported_value
from antiphon.http.openai.schema import (
    AssistantMessage,
    AudioPart,
    ChatCall,
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
from antiphon.http.openai.tools import MAX_CALL_ID, GivenTools, check_name, parse_chat_tools
from antiphon.messages import file_note
from antiphon.tools import ToolCall

_DECODER = msgspec.json.Decoder(ChatCompletionRequest)
_ALLOWED = {
    "role": "'system', 'developer', 'user', 'assistant', and 'tool'",
    "type": "'text' in content, and 'text', 'json_object', and 'json_schema' in response_format",
    "service_tier": "'auto', 'default', 'flex', 'scale', 'priority', and 'fast'",
    "prompt_cache_retention": "'in_memory' and '24h'",
    "truncation": "'auto' and 'disabled'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """A valid request and its messages as text."""

    body: ChatCompletionRequest
    messages: tuple[Message, ...]
    given: GivenTools = field(default_factory=GivenTools)
    files: tuple[GivenFile, ...] = ()
    images: tuple[GivenImage, ...] = ()

    @property
    def include_usage(self) -> bool:
        options = self.body.stream_options
        return options is not None and bool(options.include_usage)


def parse_chat(body: bytes, *, max_choices: int, can_store: bool = False) -> ParsedRequest:
    """Raises InvalidRequest for whatever this server would have to ignore or can't do."""
    request = decode_body(body, _DECODER, _ALLOWED)
    refuse_unsupported(request, can_store=can_store)
    check_bounds(request, max_choices=max_choices)
    return ParsedRequest(
        body=request,
        messages=tuple(_messages(request.messages)),
        files=tuple(_files(request.messages)),
        images=tuple(_images(request.messages)),
        given=parse_chat_tools(request.tools, request.tool_choice, request.parallel_tool_calls),
    )


def _messages(given: Sequence[ChatMessage]) -> Iterator[Message]:
    """Calls are messages of their own, after what was said before them."""
    calls: set[str] = set()
    for index, message in enumerate(given):
        path = f"messages[{index}]"
        if isinstance(message, AssistantMessage) and message.tool_calls:
            if message.content or message.refusal:
                yield _assistant_message(message, path)
            for place, value in enumerate(message.tool_calls):
                call = _call(value, f"{path}.tool_calls[{place}]")
                calls.add(call.id)
                yield Message(role="assistant", content="", call=call)
            continue
        if isinstance(message, ToolMessage) and message.tool_call_id not in calls:
            raise InvalidRequest(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                "message with 'tool_calls'.",
                f"{path}.role",
            )
        yield _message(message, path)


def _files(given: Sequence[ChatMessage]) -> Iterator[GivenFile]:
    for index, message in enumerate(given):
        content = message.content if isinstance(message, UserMessage) else None
        for place, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, FilePart):
                yield GivenFile(
                    path=f"messages[{index}].content[{place}].file",
                    file_id=part.file.file_id,
                    filename=part.file.filename,
                    data=part.file.file_data,
                )


def _images(given: Sequence[ChatMessage]) -> Iterator[GivenImage]:
    """Each with its place among the user's messages, and in its text."""
    said = [(index, each) for index, each in enumerate(given) if isinstance(each, UserMessage)]
    for place, (index, message) in enumerate(said):
        line = 0
        for number, part in enumerate(message.content if isinstance(message.content, list) else ()):
            path = f"messages[{index}].content[{number}]"
            if isinstance(part, ImagePart):
                image = given_image(
                    path,
                    url=part.image_url.url,
                    file_id=None,
                    url_path=f"{path}.image_url.url",
                    detail=part.image_url.detail,
                )
                yield replace(image, path=f"{path}.image_url.url", place=place, line=line)
            else:
                line += 1 + _part(part, path, "user").count("\n")


def with_images(
    messages: Sequence[Message], given: Sequence[GivenImage], found: Sequence[Image]
) -> tuple[Message, ...]:
    """The messages with the images that were found for those that were given."""
    by_place: dict[int, list[Image]] = {}
    for each, image in zip(given, found, strict=True):
        by_place.setdefault(each.place, []).append(image)
    places = count()
    return tuple(
        replace(message, images=tuple(by_place.get(next(places), ())))
        if message.role == "user"
        else message
        for message in messages
    )


def _call(value: dict[str, Any], path: str) -> ToolCall:
    kind = value.get("type")
    if isinstance(kind, str) and kind != "function":
        raise unsupported_value(f"{path}.type", kind, "'function'")
    call = convert_value(value, ChatCall, path, {})
    check_length(f"{path}.id", call.id, MAX_CALL_ID)
    check_name(call.function.name, f"{path}.function.name")
    return ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)


def _message(message: ChatMessage, path: str) -> Message:
    match message:
        case SystemMessage() | DeveloperMessage() | UserMessage():
            role = _role(message)
            content = _text(message.content, f"{path}.content", role)
            return Message(role=role, content=content, name=message.name)
        case AssistantMessage():
            return _assistant_message(message, path)
        case ToolMessage():
            text = _text(message.content, f"{path}.content", "tool")
            return Message(role="tool", content=text, call_id=message.tool_call_id)
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
    for name in ("audio", "function_call"):
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
    return "\n".join(
        _part(part, f"{path}[{index}]", role)
        for index, part in enumerate(content)
        if role != "user" or not isinstance(part, ImagePart)
    )


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
        case FilePart(file=file) if role == "user":
            check_given(file.file_id, file.file_data, f"{path}.file")
            check_length(f"{path}.file.filename", file.filename, MAX_FILENAME)
            return file_note({"file_id": file.file_id or "file", "filename": file.filename})
        case FilePart():
            raise unsupported_value(f"{path}.type", "file", "'text'")
        case _:
            assert_never(part)
