"""Identifiers: one NewType per noun, and the factories of those that the server makes up itself."""

import secrets
from typing import NewType

ActorPath = NewType("ActorPath", str)
"""Where an actor stands in the tree, as `root/pools/pool:smollm2/driver`; it outlives
incarnations."""

RequestId = NewType("RequestId", str)
"""One HTTP request, `req_…` or what the client sent in `x-request-id`; unique names never depend
on it."""

ResponseId = NewType("ResponseId", str)
"""One answer on the wire, `resp_…` or `chatcmpl-…`."""

ConversationId = NewType("ConversationId", str)
"""`conv_…`."""

ItemId = NewType("ItemId", str)
"""One message, call or result in a conversation, `msg_…` and the like."""

FileId = NewType("FileId", str)
"""`file-…`."""

DocumentId = NewType("DocumentId", str)
"""`doc_…`: what was made of a file's content."""

VectorStoreId = NewType("VectorStoreId", str)
"""`vs_…`."""

FileBatchId = NewType("FileBatchId", str)
"""`vsfb_…`: files that were put into a vector store together."""

UserId = NewType("UserId", str)
"""`user_…`."""

TenantId = NewType("TenantId", str)
"""Users of different tenants share nothing, not even timing; an operator names it."""

KeyId = NewType("KeyId", str)
"""`key_…`: names a key without giving it away."""

MemoryId = NewType("MemoryId", str)
"""`mem_…`: one thing that is remembered of a user."""

NodeId = NewType("NodeId", str)
"""One run of a server process, `node_…`; another run of the same program is another node."""

LOCAL_USER = UserId("user_local")
"""Whoever calls from this machine while there are no keys."""

LOCAL_TENANT = TenantId("local")

EngineRequest = NewType("EngineRequest", int)
"""One admitted generation, unique for the life of an engine driver's process; never reused."""

SlotIndex = NewType("SlotIndex", int)
"""A decode slot, 0 ≤ slot < Capabilities.slots."""

ModelName = NewType("ModelName", str)
"""The name a client asks for and `/v1/models` lists."""


def new_request_id() -> RequestId:
    return RequestId(f"req_{secrets.token_hex(16)}")


def new_response_id(prefix: str = "chatcmpl-") -> ResponseId:
    return ResponseId(f"{prefix}{secrets.token_hex(16)}")


def new_conversation_id() -> ConversationId:
    return ConversationId(f"conv_{secrets.token_hex(16)}")


def new_item_id(prefix: str = "msg_") -> ItemId:
    return ItemId(f"{prefix}{secrets.token_hex(16)}")


def new_file_id() -> FileId:
    return FileId(f"file-{secrets.token_hex(12)}")


def new_document_id() -> DocumentId:
    return DocumentId(f"doc_{secrets.token_hex(12)}")


def new_vector_store_id() -> VectorStoreId:
    return VectorStoreId(f"vs_{secrets.token_hex(12)}")


def new_file_batch_id() -> FileBatchId:
    return FileBatchId(f"vsfb_{secrets.token_hex(12)}")


def new_user_id() -> UserId:
    return UserId(f"user_{secrets.token_hex(8)}")


def new_key_id() -> KeyId:
    return KeyId(f"key_{secrets.token_hex(8)}")


def new_memory_id() -> MemoryId:
    return MemoryId(f"mem_{secrets.token_hex(12)}")


def new_node_id() -> NodeId:
    return NodeId(f"node_{secrets.token_hex(8)}")


def new_policy_event_id() -> str:
    return f"pol_{secrets.token_hex(12)}"
