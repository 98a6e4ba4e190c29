"""From items, which the API shows and the store keeps, to messages, which models read.

Pure. Keeps the rule that nothing is left out silently: what no model here can read is refused.
"""

from collections.abc import Iterable
from typing import Any, cast

from antiphon.errors import InvalidRequest
from antiphon.events import Message, Role
from antiphon.records import Item

_ROLES = {"system", "developer", "user", "assistant"}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Kinds of parts that are text, and where they have it."""


def message_of(item: Item) -> Message | None:
    """What a model reads of the item; None for a model's own reasoning, which isn't shown again.

    Raises InvalidRequest for an item that no model here can read.
    """
    if item.type == "reasoning":
        return None
    role = item.role or item.body.get("role")
    if item.type != "message" or role not in _ROLES:
        raise _unreadable(item, item.type)
    name = item.body.get("name")
    return Message(role=cast("Role", role), content=_content(item), name=name)


def messages_of(items: Iterable[Item]) -> tuple[Message, ...]:
    """Raises InvalidRequest, as `message_of`."""
    messages = (message_of(item) for item in items)
    return tuple(message for message in messages if message is not None)


def _content(item: Item) -> str:
    content = item.body.get("content") or ""
    if isinstance(content, str):
        return content
    # A line each, as vLLM joins them: chat templates take one string.
    return "\n".join(_text(item, part) for part in content)


def _text(item: Item, part: dict[str, Any]) -> str:
    kind = part.get("type")
    if kind not in _TEXTS:
        raise _unreadable(item, kind)
    return str(part.get(_TEXTS[kind]) or "")


def _unreadable(item: Item, kind: Any) -> InvalidRequest:
    return InvalidRequest(
        f"This model can't read '{str(kind)[:100]}', which item '{item.id}' is or holds.",
        "input",
        "unsupported_value",
    )
