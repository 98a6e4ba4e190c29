"""What is remembered of a user, as it goes on the wire. All of it is ours: OpenAI's API has no
memory."""

from typing import Literal

import msgspec

from antiphon.context_records import Memory, MemoryOrigin
from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.lists import ListBody


class MemoryObject(msgspec.Struct, kw_only=True):
    """One thing. `conversation_id` and `item_id` are where it was said, null where it was written
    down by hand."""

    id: str
    object: Literal["memory"] = "memory"
    text: str
    origin: MemoryOrigin
    conversation_id: str | None
    item_id: str | None
    created_at: int
    updated_at: int


class DeletedMemory(msgspec.Struct, kw_only=True):
    """`id` is the user's where everything was deleted."""

    id: str
    object: Literal["memory.deleted"] = "memory.deleted"
    deleted: Literal[True] = True
    receipt: ReceiptObject


MemoryList = ListBody[MemoryObject]


def memory_object(memory: Memory) -> MemoryObject:
    """Its times in seconds."""
    return MemoryObject(
        id=memory.id,
        text=memory.text,
        origin=memory.origin,
        conversation_id=memory.conversation,
        item_id=memory.item,
        created_at=memory.created_ms // 1000,
        updated_at=memory.updated_ms // 1000,
    )
