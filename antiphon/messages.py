"""From items, which the API shows and the store keeps, to messages, which models read. A call is a
message of its own, and so is its result.

Pure. Keeps the rule that nothing is left out silently: what no model here can read is refused, and
what no model may read has something in its place that says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.errors import InvalidRequest
from antiphon.events import Image, Message, Role
from antiphon.ids import FileId, ItemId
from antiphon.records import Item
from antiphon.tools import ToolCall

WITHHELD = "withheld"
"""Where the body of a refusal names the items for which it was refused."""
CALLS = "tool_calls"
"""Where the body of a kept chat's message has the calls that were made in it."""
FILE = "input_file"
IMAGE = "input_image"
SEARCH = "file_search_call"
"""A search in files that a turn began with. What was found is found anew for each turn, so it isn't
shown again."""
PLACEHOLDER = "[This message was removed by the content policy.]"
"""What a model reads instead of such an item."""

_ROLES = {"system", "developer", "user", "assistant", "tool"}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Kinds of parts that are text, and where they have it."""


def message_of(item: Item) -> Message | None:
    """What a model reads of the item; None for a model's own reasoning and for searches, which
    aren't shown again.

    Raises InvalidRequest for an item that no model here can read.
    """
    match item.type:
        case "reasoning" | "file_search_call":
            return None
        case "function_call":
            return Message(role="assistant", content="", call=_call(item.body))
        case "function_call_output":
            call_id = str(item.body.get("call_id", ""))
            return Message(role="tool", content=_content(item, "output"), call_id=call_id)
    role = item.role or item.body.get("role")
    if item.type != "message" or role not in _ROLES:
        raise _unreadable(item, item.type)
    name = item.body.get("name")
    return Message(
        role=cast("Role", role),
        content=_content(item, "content"),
        name=name,
        call_id=item.body.get("tool_call_id"),
        images=tuple(_images(item)),
    )


def messages_of(items: Sequence[Item]) -> tuple[Message, ...]:
    """Raises InvalidRequest, as `message_of`."""
    return tuple(message for _, message in shown(items))


def shown(items: Sequence[Item]) -> tuple[tuple[ItemId, Message], ...]:
    """What a model is shown of them, each with its item. Raises InvalidRequest, as `message_of`."""
    withheld = withheld_of(items)
    return tuple(
        (item.id, _hidden(message) if item.id in withheld else message)
        for item in items
        for message in _messages_in(item)
    )


def check_results(context: Iterable[Item], input: Sequence[Item]) -> None:
    """Raises InvalidRequest for a result in the input that is of no call before it."""
    known: set[str] = set()
    for is_new, items in ((False, context), (True, input)):
        for item in items:
            call = str(item.body.get("call_id", ""))
            if item.type == "function_call":
                known.add(call)
            elif item.type == "function_call_output" and is_new and call not in known:
                raise InvalidRequest(
                    f"No tool call found for function call output with call_id {call[:100]}.",
                    "input",
                )


def withheld_of(items: Iterable[Item]) -> frozenset[str]:
    """Items that were blocked, by what the refusals among these say."""
    return frozenset(id for item in items for id in item.body.get(WITHHELD, ()))


def _messages_in(item: Item) -> Iterator[Message]:
    """What it says first, and then its calls."""
    message, calls = message_of(item), item.body.get(CALLS, ())
    if message is not None and (message.content or message.images or not calls):
        yield message
    for call in calls:
        yield Message(role="assistant", content="", call=_call(call))


def _call(body: dict[str, Any]) -> ToolCall:
    return ToolCall(
        id=str(body.get("call_id", "")),
        name=str(body.get("name", "")),
        arguments=str(body.get("arguments", "")),
    )


def _hidden(message: Message) -> Message:
    """A call is still one, since its result may follow."""
    if message.call is None:
        return replace(message, content=PLACEHOLDER, images=())
    return replace(message, call=replace(message.call, arguments="{}"))


def _content(item: Item, name: str) -> str:
    content = item.body.get(name) or ""
    if isinstance(content, str):
        return content
    # A line each, as vLLM joins them: chat templates take one string.
    return "\n".join(
        _text(item, part) for part in content if item.type != "message" or part.get("type") != IMAGE
    )


def _images(item: Item) -> Iterator[Image]:
    """Each before the line that follows it."""
    line, content = 0, item.body.get("content")
    for part in content if isinstance(content, list) else ():
        if part.get("type") == IMAGE:
            if not part.get("file_id"):
                raise _unreadable(item, IMAGE)
            yield image_of(part, line)
        else:
            line += 1 + _text(item, part).count("\n")


def image_of(part: dict[str, Any], line: int = 0) -> Image:
    """An image as a message keeps it."""
    return Image(
        file=FileId(str(part.get("file_id", ""))),
        media_type=str(part.get("media_type", "")),
        width=int(part.get("width", 0)),
        height=int(part.get("height", 0)),
        line=line,
        detail=part.get("detail") or "auto",
        name=part.get("filename"),
    )


def image_part(image: Image) -> dict[str, Any]:
    """The other way round."""
    named = {} if image.name is None else {"filename": image.name}
    return {
        "type": IMAGE,
        "detail": image.detail,
        "file_id": image.file,
        **named,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
    }


def text_and_images(message: Message) -> Iterator[str | Image]:
    """What a message says, in order: stretches of text with its images between them."""
    lines, at = (message.content.split("\n") if message.content else []), 0
    for image in message.images:
        until = min(max(image.line, at), len(lines))
        if text := "\n".join(lines[at:until]):
            yield text
        at = until
        yield image
    if text := "\n".join(lines[at:]):
        yield text


def _text(item: Item, part: dict[str, Any]) -> str:
    kind = part.get("type")
    if kind == FILE:
        return file_note(part)
    if kind not in _TEXTS:
        raise _unreadable(item, kind)
    return str(part.get(_TEXTS[kind]) or "")


def file_note(part: dict[str, Any]) -> str:
    """Where a message has a file. What is in it stands elsewhere: a turn finds out what of it there
    is to be shown."""
    return f'[Attached file: "{part.get("filename") or part.get("file_id")}"]'


def files_in(items: Iterable[Item]) -> dict[FileId, str]:
    """The files that messages bring along, in order, each with its name."""
    return {
        FileId(part["file_id"]): str(part.get("filename") or part["file_id"])
        for item in items
        if item.type == "message" and isinstance(content := item.body.get("content"), list)
        for part in content
        if part.get("type") == FILE and part.get("file_id")
    }


def _unreadable(item: Item, kind: Any) -> InvalidRequest:
    return InvalidRequest(
        f"This model can't read '{str(kind)[:100]}', which item '{item.id}' is or holds.",
        "input",
        "unsupported_value",
    )
