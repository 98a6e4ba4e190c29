"""What the store keeps to make the views of conversations from, as values: summaries, memories,
system prompts. They are records as those in `records`."""

import enum
from dataclasses import dataclass

from antiphon.ids import ConversationId, ItemId, MemoryId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What stands for the first items of a conversation. The one that covers most counts."""

    conversation: ConversationId
    until: ItemId
    """The last item that it covers; it covers all before it, too."""
    items: int
    """How many those are, of every type. Where that isn't how many there are, some have gone or
    come since they were read, and it isn't kept."""
    tokens: int
    """Of all these items, as they were counted when it was made."""
    text: str
    made_by: str
    """The model's name, or `extract`: sentences taken out of the items as they stand."""
    created_ms: int


class MemoryOrigin(enum.StrEnum):
    """How something came to be remembered."""

    STATED = "stated"
    """The user said so in a conversation."""
    ADDED = "added"
    """The user wrote it down, or has changed it since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Something that a user has said of themselves, a sentence or two."""

    id: MemoryId
    user: UserId
    text: str
    origin: MemoryOrigin
    created_ms: int
    updated_ms: int
    conversation: ConversationId | None = None
    """Where it was said. It goes when that goes."""
    item: ItemId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVersion:
    """A system prompt. It never changes: a change is the next version."""

    name: str
    version: int
    """From 1."""
    text: str
    """With `{{name}}` for its variables."""
    note: str
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptActivation:
    """Which versions of a prompt are in force, from this moment to the next activation."""

    name: str
    number: int
    """From 1, for each name."""
    arms: dict[int, float]
    """Share of conversations by version; together 1."""
    created_ms: int
