"""Conversations as they go on the wire: the API's four keys, and ours."""

from typing import Any, Literal

import msgspec

from antiphon.finding import FoundConversation
from antiphon.http.openai.lists import ListBody
from antiphon.records import Conversation, Receipt


class ConversationObject(msgspec.Struct, kw_only=True):
    """From `title` on the keys are ours; SDKs keep those that they don't know."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str]
    title: str | None
    title_made: bool
    """Whether the server has made it of what was said; what a person writes stays."""
    updated_at: int
    archived: bool
    memory: bool | None
    """Whether it is shown what its user's memory has, and adds to it; null is as the server's
    settings say."""


class FoundMessageBody(msgspec.Struct, kw_only=True):
    """The newest message that has the words, and what stands around one of them."""

    item_id: str
    role: str
    excerpt: str


class FoundConversationObject(ConversationObject, kw_only=True):
    """A conversation that a search has found; by its title where it has no `message`."""

    message: FoundMessageBody | None


class ReceiptObject(msgspec.Struct, kw_only=True):
    """What a deletion removed: rows by table, and file contents by their SHA-256. What is
    `postponed` has no record any more and is removed by the next sweep."""

    id: str
    object: Literal["receipt"] = "receipt"
    subject: str
    deleted_at: int
    rows: dict[str, int]
    contents: list[str]
    postponed: list[str]


class DeletedConversation(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: Literal[True] = True
    receipt: ReceiptObject


ConversationList = ListBody[ConversationObject]
FoundConversationList = ListBody[FoundConversationObject]
ItemObject = dict[str, Any]
ItemList = ListBody[ItemObject]


def conversation_object(conversation: Conversation) -> ConversationObject:
    """The conversation, its times in seconds."""
    return ConversationObject(**_fields(conversation))


def found_object(found: FoundConversation) -> FoundConversationObject:
    """The same, with where it was found."""
    message = found.message
    body = None
    if message is not None:
        body = FoundMessageBody(item_id=message.item, role=message.role, excerpt=message.excerpt)
    return FoundConversationObject(**_fields(found.conversation), message=body)


def _fields(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "created_at": conversation.created_ms // 1000,
        "metadata": conversation.metadata,
        "title": conversation.title,
        "title_made": conversation.title_made,
        "updated_at": conversation.updated_ms // 1000,
        "archived": conversation.archived_ms is not None,
        "memory": conversation.memory,
    }


def receipt_object(receipt: Receipt, removed: tuple[str, ...]) -> ReceiptObject:
    """`removed` are the contents that are gone from the folder."""
    return ReceiptObject(
        id=receipt.id,
        subject=receipt.subject,
        deleted_at=receipt.deleted_ms // 1000,
        rows=receipt.rows,
        contents=list(removed),
        postponed=[sha256 for sha256 in receipt.contents if sha256 not in removed],
    )
