"""What was said in a conversation, line by line, and in which turns: all that the workers read of
items. Pure. What the policy has withheld was never said."""

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.actors.workers.words import estimate_tokens
from antiphon.ids import ItemId
from antiphon.messages import withheld_of
from antiphon.records import Item

LONGEST = 20_000
"""Characters that are read of one item: more is a document, and no conversation."""
_TEXTS = {"input_text", "output_text", "text"}


class Speaker(enum.StrEnum):
    """Whose words they are."""

    USER = "User"
    ASSISTANT = "Assistant"
    OTHER = "Note"
    """An earlier summary's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The text of one item."""

    speaker: Speaker
    text: str
    item: ItemId | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """From what a user says to what is said to it; `is_whole` with an answer."""

    items: tuple[Item, ...]

    @property
    def tokens(self) -> int:
        return sum(map(tokens_of, self.items))

    @property
    def is_whole(self) -> bool:
        return any(_is(item, "assistant") for item in self.items)


def lines_of(items: Sequence[Item]) -> list[Line]:
    """What user and assistant have said in them; nothing of tools and of what was refused."""
    withheld = withheld_of(items)
    found = []
    for item in items:
        speaker = {"user": Speaker.USER, "assistant": Speaker.ASSISTANT}.get(_role(item) or "")
        if speaker is None or item.type != "message" or item.id in withheld:
            continue
        if text := text_of(item).strip():
            found.append(Line(speaker=speaker, text=text, item=item.id))
    return found


def text_of(item: Item) -> str:
    """Its text parts, a line each."""
    content: Any = item.body.get("content")
    if isinstance(content, str):
        return content[:LONGEST]
    if not isinstance(content, list):
        return ""
    parts = (part for part in content if isinstance(part, dict) and part.get("type") in _TEXTS)
    return "\n".join(str(part.get("text") or "") for part in parts)[:LONGEST]


def tokens_of(item: Item) -> int:
    """As they were counted, or about so many."""
    return estimate_tokens(text_of(item)) if item.tokens is None else item.tokens


def turns_of(items: Iterable[Item]) -> Iterator[Turn]:
    """All of them, in order. Several messages of a user in a row are one turn's."""
    turn: list[Item] = []
    for item in items:
        if turn and _is(item, "user") and not _is(turn[-1], "user"):
            yield Turn(tuple(turn))
            turn = []
        turn.append(item)
    if turn:
        yield Turn(tuple(turn))


def whole(items: Iterable[Item]) -> list[Item]:
    """Without a turn at the end that still runs, or has come to nothing."""
    turns = list(turns_of(items))
    while turns and not turns[-1].is_whole:
        turns.pop()
    return [item for turn in turns for item in turn.items]


def _is(item: Item, role: str) -> bool:
    return item.type == "message" and _role(item) == role


def _role(item: Item) -> str | None:
    return item.role or item.body.get("role")
