"""Conversations as they go on the wire: the API's four keys, and ours."""

from typing import Any, Literal

import msgspec

from antiphon.http.openai.lists import ListBody
from antiphon.records import Conversation, Receipt


class ConversationObject(msgspec.Struct, kw_only=True):
    """`title`, `updated_at`, `archived` and `memory` are ours; SDKs keep keys that they don't
    know."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str]
    title: str | None
    updated_at: int
    archived: bool
    memory: bool | None
    """Whether it is shown what its user's memory has, and adds to it; null is as the server's
    settings say."""


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
ItemObject = dict[str, Any]
ItemList = ListBody[ItemObject]


def conversation_object(conversation: Conversation) -> ConversationObject:
    """The conversation, its times in seconds."""
    return ConversationObject(
        id=conversation.id,
        created_at=conversation.created_ms // 1000,
        metadata=conversation.metadata,
        title=conversation.title,
        updated_at=conversation.updated_ms // 1000,
        archived=conversation.archived_ms is not None,
        memory=conversation.memory,
    )


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
