"""Input items: from what a request holds to records that the store keeps and models read.

A message is kept in one form whatever form it came in, under an id of its own: what a client sends
back, or names by its id, is a new item of a new turn.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, assert_never

from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.events import Message
from antiphon.http.openai.bounds import check_length, empty_array
from antiphon.http.openai.conversations.schema import (
    FileSearchItem,
    FunctionCallItem,
    FunctionOutputItem,
)
from antiphon.http.openai.decode import convert_value
from antiphon.http.openai.files.images import INLINE, image_draft
from antiphon.http.openai.files.inline import MAX_FILENAME, check_given
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.schema import (
    AudioPart,
    FilePart,
    ImagePart,
    InputMessage,
    Logprob,
    OutputTextPart,
    Part,
    ReferenceItem,
    RefusalPart,
    TextPart,
)
from antiphon.http.openai.tools import MAX_CALL_ID, check_name
from antiphon.ids import ItemId, new_item_id
from antiphon.messages import FILE, SEARCH, image_part, text_and_images
from antiphon.records import Item, JsonObject

_ALLOWED = {
    "role": "'assistant', 'system', 'developer', and 'user'",
    "type": (
        "'input_text', 'input_image', and 'input_file' in content, and 'output_text' and 'refusal' "
        "in the assistant's"
    ),
    "status": "'in_progress', 'completed', and 'incomplete'",
    "phase": "'commentary' and 'final_answer'",
}
_ITEM_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_REFERENCE = "item_reference"
_KNOWN = (
    "'message', 'function_call', 'function_call_output', 'file_search_call', and 'item_reference'"
)
_UNSUPPORTED = {
    "reasoning",
    "custom_tool_call",
    "custom_tool_call_output",
    "web_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction",
    "compaction_trigger",
    "program",
    "program_output",
}
"""Kinds of items that the API has and this server hasn't."""


@dataclass(frozen=True, slots=True)
class ItemReference:
    """An item that the store has, named at `path` instead of being sent again."""

    id: ItemId
    path: str


GivenItem = Item | ItemReference


def text_item(role: str, text: str, now_ms: int) -> Item:
    """A message of one text."""
    return _item(role, [_text_part(role, text)], now_ms)


def chat_item(message: Message, now_ms: int) -> Item:
    """A message of a chat, as a chat is kept."""
    extras = {"name": message.name, "tool_call_id": message.call_id}
    given = {name: value for name, value in extras.items() if value is not None}
    parts = [
        _text_part(message.role, each) if isinstance(each, str) else image_part(each)
        for each in text_and_images(message)
    ]
    return _item(message.role, parts or [_text_part(message.role, "")], now_ms, extras=given)


def parse_items(values: list[dict[str, Any]], path: str, now_ms: int) -> tuple[GivenItem, ...]:
    """Items at `path` of a decoded body. Raises InvalidRequest, RecordNotFound."""
    return tuple(
        parse_item(value, f"{path}[{index}]", now_ms) for index, value in enumerate(values)
    )


def parse_item(value: dict[str, Any], path: str, now_ms: int) -> GivenItem:
    """One item, which stands at `path`. Raises InvalidRequest, RecordNotFound."""
    kind = value.get("type")
    if kind == _REFERENCE or (kind is None and "id" in value and "role" not in value):
        return _reference(convert_value(value, ReferenceItem, path, {}), path)
    if isinstance(kind, str) and kind in _UNSUPPORTED:
        raise unsupported_value(f"{path}.type", kind, _KNOWN)
    if kind == "function_call":
        return _call(convert_value(value, FunctionCallItem, path, _ALLOWED), path, now_ms)
    if kind == "function_call_output":
        return _result(convert_value(value, FunctionOutputItem, path, _ALLOWED), path, now_ms)
    if kind == SEARCH:
        return _search(convert_value(value, FileSearchItem, path, _ALLOWED), now_ms)
    if isinstance(kind, str) and kind != "message":
        raise InvalidRequest(
            f"Invalid value for '{path}.type': {kind[:100]!r}. Supported values are: {_KNOWN}.",
            f"{path}.type",
            "invalid_value",
        )
    message = convert_value(value, InputMessage, path, _ALLOWED)
    return _message(message, path, now_ms)


def references_in(items: Iterable[GivenItem]) -> tuple[ItemId, ...]:
    """The items that the store has to be asked for, each once."""
    return tuple(dict.fromkeys(item.id for item in items if isinstance(item, ItemReference)))


def with_found(items: Iterable[GivenItem], found: Iterable[Item], now_ms: int) -> tuple[Item, ...]:
    """`items` with what their references name. Raises RecordNotFound."""
    by_id = {item.id: item for item in found}
    whole: list[Item] = []
    for item in items:
        if isinstance(item, ItemReference):
            named = by_id.get(item.id)
            if named is None:
                raise RecordNotFound("item", item.id, item.path)
            item = replace(named, id=_fresh_id(named.id), created_ms=now_ms)
        whole.append(item)
    return tuple(whole)


def _call(call: FunctionCallItem, path: str, now_ms: int) -> Item:
    check_name(call.name, f"{path}.name")
    check_length(f"{path}.call_id", call.call_id, MAX_CALL_ID)
    body = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
    return Item(
        id=new_item_id("fc_"),
        type="function_call",
        body={"type": "function_call", **body},
        created_ms=now_ms,
        status=call.status or "completed",
    )


def _result(result: FunctionOutputItem, path: str, now_ms: int) -> Item:
    check_length(f"{path}.call_id", result.call_id, MAX_CALL_ID)
    output: str | list[JsonObject]
    if isinstance(result.output, str):
        output = result.output
    else:
        output = [{"type": part.type, "text": part.text} for part in result.output]
    return Item(
        id=new_item_id("fco_"),
        type="function_call_output",
        body={"type": "function_call_output", "call_id": result.call_id, "output": output},
        created_ms=now_ms,
        status=result.status or "completed",
    )


def _search(search: FileSearchItem, now_ms: int) -> Item:
    """Sent back with the answer that it was for. What it has found isn't shown again."""
    found = {"queries": search.queries, "results": search.results or []}
    return Item(
        id=new_item_id("fs_"),
        type=SEARCH,
        body={"type": SEARCH, **found},
        created_ms=now_ms,
        status=search.status or "completed",
    )


def _reference(reference: ReferenceItem, path: str) -> ItemReference:
    if _ITEM_ID.fullmatch(reference.id) is None:
        raise RecordNotFound("item", reference.id, f"{path}.id")
    return ItemReference(ItemId(reference.id), f"{path}.id")


def _fresh_id(id: ItemId) -> ItemId:
    return new_item_id(f"{id.partition('_')[0]}_")


def _message(message: InputMessage, path: str, now_ms: int) -> Item:
    role = message.role
    if isinstance(message.content, str):
        parts = [_text_part(role, message.content)]
    elif not message.content:
        raise empty_array(f"{path}.content")
    else:
        parts = [
            _part(part, f"{path}.content[{index}].type", role)
            for index, part in enumerate(message.content)
        ]
    extras = {} if message.phase is None else {"phase": message.phase}
    return _item(role, parts, now_ms, status=message.status or "completed", extras=extras)


def _item(
    role: str,
    parts: list[JsonObject],
    now_ms: int,
    *,
    status: str = "completed",
    extras: JsonObject | None = None,
) -> Item:
    body = {"type": "message", "role": role, "content": parts, **(extras or {})}
    return Item(
        id=new_item_id(), type="message", role=role, body=body, created_ms=now_ms, status=status
    )


def _part(part: Part, path: str, role: str) -> JsonObject:
    """The part as it is kept."""
    match part:
        case TextPart(text=text):
            return _text_part(role, text)
        case OutputTextPart() if role == "assistant":
            return _output_text(part.text, part.annotations or [], part.logprobs or [])
        case RefusalPart(refusal=refusal) if role == "assistant":
            return {"type": "refusal", "refusal": refusal}
        case OutputTextPart():
            raise unsupported_value(path, "output_text", "'input_text'")
        case RefusalPart():
            raise unsupported_value(path, "refusal", "'input_text'")
        case ImagePart() if role == "user":
            return image_draft(part, path.removesuffix(".type"))
        case ImagePart():
            raise unsupported_value(path, "input_image", "'input_text'")
        case FilePart() if role != "assistant":
            return _file(part, path.removesuffix(".type"))
        case FilePart():
            raise unsupported_value(path, "input_file", "'output_text' and 'refusal'")
        case AudioPart():
            raise unsupported_value(path, "input_audio", "'input_text'")
        case _:
            assert_never(part)


def _file(part: FilePart, path: str) -> JsonObject:
    """What is inside of the request is still to be put where files are kept."""
    if part.file_url is not None:
        raise InvalidRequest(
            "This server doesn't fetch files: upload it and give its 'file_id', or send it as "
            f"'file_data'. '{path}.file_url' is not supported.",
            f"{path}.file_url",
            "unsupported_parameter",
        )
    check_given(part.file_id, part.file_data, path)
    check_length(f"{path}.filename", part.filename, MAX_FILENAME)
    given = {
        "type": FILE,
        "file_id": part.file_id,
        "filename": part.filename,
        INLINE: part.file_data,
    }
    return {name: value for name, value in given.items() if value is not None}


def _text_part(role: str, text: str) -> JsonObject:
    if role == "assistant":
        return _output_text(text, [], [])
    return {"type": "input_text", "text": text}


def _output_text(text: str, annotations: list[JsonObject], logprobs: list[Logprob]) -> JsonObject:
    return {
        "type": "output_text",
        "text": text,
        "annotations": annotations,
        "logprobs": [
            {
                "token": entry.token,
                "logprob": entry.logprob,
                "bytes": entry.bytes or [],
                "top_logprobs": entry.top_logprobs or [],
            }
            for entry in logprobs
        ],
    }
