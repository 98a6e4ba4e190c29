"""What a search in what was said finds, as values. They are records, as those in `records`."""

from dataclasses import dataclass

from antiphon.ids import ConversationId, ItemId
from antiphon.records import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """The newest message of a conversation that has all the words, and what stands around the
    longest of them."""

    item: ItemId
    role: str
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConversation:
    """A conversation with the words in its title, or else in a `message`."""

    conversation: Conversation
    message: FoundMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """Part of what a search finds, by the conversations' last change."""

    found: tuple[FoundConversation, ...] = ()
    last: ConversationId | None = None
    """The last conversation that was looked at, found or not: the next part begins after it."""
    has_more: bool = False
    """Whether there are conversations that were not looked at."""
