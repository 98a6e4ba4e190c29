"""From items, which the API shows and the store keeps, to messages, which models read.

Pure. Keeps the rule that nothing is left out silently: what no model here can read is refused, and
what no model may read has something in its place that says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.errors import InvalidRequest
from antiphon.events import Message, Role
from antiphon.ids import ItemId
from antiphon.records import Item

WITHHELD = "withheld"
"""Where the body of a refusal names the items for which it was refused."""
PLACEHOLDER = "[This message was removed by the content policy.]"
"""What a model reads instead of such an item."""

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


def messages_of(items: Sequence[Item]) -> tuple[Message, ...]:
    """Raises InvalidRequest, as `message_of`."""
    return tuple(message for _, message in shown(items))


def shown(items: Sequence[Item]) -> tuple[tuple[ItemId, Message], ...]:
    """What a model is shown of them, each with its item. Raises InvalidRequest, as `message_of`."""
    withheld = withheld_of(items)
    found = []
    for item in items:
        message = message_of(item)
        if message is not None and item.id in withheld:
            message = replace(message, content=PLACEHOLDER)
        if message is not None:
            found.append((item.id, message))
    return tuple(found)


def withheld_of(items: Iterable[Item]) -> frozenset[str]:
    """Items that were blocked, by what the refusals among these say."""
    return frozenset(id for item in items for id in item.body.get(WITHHELD, ()))


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
