"""Items that a client puts into a conversation: from the wire to records.

A message is kept in one form whatever form it came in; calls, results and reasoning are kept as
they came. Each gets an id of its own: the same item may be in many conversations.
"""

from collections.abc import Iterator
from typing import Any, assert_never

import msgspec

from antiphon.errors import InvalidRequest
from antiphon.http.openai.bounds import empty_array
from antiphon.http.openai.conversations.schema import (
    MAX_ITEMS,
    CustomCallItem,
    CustomOutputItem,
    FileSearchItem,
    FunctionCallItem,
    FunctionOutputItem,
    MessageItem,
    Part,
    ReasoningItem,
    ToolItem,
)
from antiphon.http.openai.decode import convert_value
from antiphon.http.openai.files.images import image_draft
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.schema import (
    AudioPart,
    FilePart,
    ImagePart,
    OutputTextPart,
    RefusalPart,
    TextPart,
)
from antiphon.ids import FileId, new_item_id
from antiphon.records import Item, JsonObject

_KINDS: dict[str, tuple[type[ToolItem], str]] = {
    "function_call": (FunctionCallItem, "fc_"),
    "function_call_output": (FunctionOutputItem, "fco_"),
    "custom_tool_call": (CustomCallItem, "ctc_"),
    "custom_tool_call_output": (CustomOutputItem, "ctco_"),
    "file_search_call": (FileSearchItem, "fs_"),
    "reasoning": (ReasoningItem, "rs_"),
}
_KNOWN = ", ".join(f"'{kind}'" for kind in ("message", *_KINDS))
_ALLOWED = {
    "role": "'assistant', 'system', 'developer', and 'user'",
    "type": "'input_text', 'input_image', 'input_file', 'output_text', and 'refusal'",
    "status": "'in_progress', 'completed', and 'incomplete'",
    "phase": "'commentary' and 'final_answer'",
}
_INPUT_PARTS = "'input_text' and 'input_file'"


def parse_items(values: list[Any], now_ms: int) -> tuple[Item, ...]:
    """The `items` of a decoded body. Raises InvalidRequest."""
    if len(values) > MAX_ITEMS:
        raise InvalidRequest(
            "Invalid 'items': array too long. Expected an array with maximum length "
            f"{MAX_ITEMS}, but got an array with length {len(values)} instead.",
            "items",
            "array_above_max_length",
        )
    return tuple(_item(value, f"items[{index}]", now_ms) for index, value in enumerate(values))


def file_references(items: tuple[Item, ...]) -> Iterator[tuple[FileId, str]]:
    """The files that items name, each with the place where."""
    for index, item in enumerate(items):
        content = item.body.get("content")
        for place, part in enumerate(content if item.type == "message" and content else ()):
            if part["type"] == "input_file":
                yield FileId(part["file_id"]), f"items[{index}].content[{place}].file_id"


def _item(value: Any, path: str, now_ms: int) -> Item:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind is None or kind == "message":
        return _message(convert_value(value, MessageItem, path, _ALLOWED), path, now_ms)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidRequest(
            f"Invalid value for '{path}.type': {str(kind)[:100]!r}. Supported values are: "
            f"{_KNOWN}.",
            f"{path}.type",
            "invalid_value",
        )
    struct, prefix = _KINDS[kind]
    checked = convert_value(value, struct, path, _ALLOWED)
    body = {
        name: content
        for name, content in msgspec.to_builtins(checked).items()
        if content is not None and name not in {"id", "status"}
    }
    return Item(
        id=new_item_id(prefix),
        type=kind,
        body=body,
        created_ms=now_ms,
        status=checked.status or "completed",
    )


def _message(message: MessageItem, path: str, now_ms: int) -> Item:
    if not message.content and not isinstance(message.content, str):
        raise empty_array(f"{path}.content")
    parts = (
        [_text(message.role, message.content)]
        if isinstance(message.content, str)
        else [
            _part(part, f"{path}.content[{index}]", message.role)
            for index, part in enumerate(message.content)
        ]
    )
    body: JsonObject = {"type": "message", "role": message.role, "content": parts}
    if message.phase is not None:
        body["phase"] = message.phase
    return Item(
        id=new_item_id(),
        type="message",
        role=message.role,
        body=body,
        created_ms=now_ms,
        status=message.status or "completed",
    )


def _part(part: Part, path: str, role: str) -> JsonObject:
    match part:
        case TextPart(text=text):
            return _text(role, text)
        case OutputTextPart() if role == "assistant":
            given: JsonObject = msgspec.to_builtins(part)
            return given | {"annotations": part.annotations or [], "logprobs": _logprobs(given)}
        case RefusalPart(refusal=refusal) if role == "assistant":
            return {"type": "refusal", "refusal": refusal}
        case FilePart() if role != "assistant":
            return _file(part, path)
        case OutputTextPart():
            raise unsupported_value(f"{path}.type", "output_text", _INPUT_PARTS)
        case RefusalPart():
            raise unsupported_value(f"{path}.type", "refusal", _INPUT_PARTS)
        case FilePart():
            raise unsupported_value(f"{path}.type", "input_file", "'output_text' and 'refusal'")
        case ImagePart() if role == "user":
            return image_draft(part, path)
        case ImagePart():
            raise unsupported_value(f"{path}.type", "input_image", _INPUT_PARTS)
        case AudioPart():
            raise unsupported_value(f"{path}.type", "input_audio", _INPUT_PARTS)
        case _:
            assert_never(part)


def _text(role: str, text: str) -> JsonObject:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


def _logprobs(part: JsonObject) -> list[JsonObject]:
    return [
        entry | {"bytes": entry["bytes"] or [], "top_logprobs": entry["top_logprobs"] or []}
        for entry in part["logprobs"] or ()
    ]


def _file(part: FilePart, path: str) -> JsonObject:
    """Only files that are here: one inside the message would escape the bound on files, and one
    elsewhere would have the server fetch what it is told to."""
    for name in ("file_data", "file_url"):
        if getattr(part, name) is not None:
            raise InvalidRequest(
                f"Unsupported parameter: '{path}.{name}' is not supported by this server; upload "
                "the file and give its 'file_id'.",
                f"{path}.{name}",
                "unsupported_parameter",
            )
    if part.file_id is None:
        raise InvalidRequest(
            f"Missing required parameter: '{path}.file_id'.",
            f"{path}.file_id",
            "missing_required_parameter",
        )
    given = {"type": "input_file", "file_id": part.file_id, "filename": part.filename}
    return {name: value for name, value in given.items() if value is not None}
