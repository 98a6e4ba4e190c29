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
"""One answer on the wire, `chatcmpl-…`."""

EngineRequest = NewType("EngineRequest", int)
"""One admitted generation, unique for the life of an engine driver's process; never reused."""

SlotIndex = NewType("SlotIndex", int)
"""A decode slot, 0 ≤ slot < Capabilities.slots."""

ModelName = NewType("ModelName", str)
"""The name a client asks for and `/v1/models` lists."""


def new_request_id() -> RequestId:
    return RequestId(f"req_{secrets.token_hex(16)}")


def new_response_id() -> ResponseId:
    return ResponseId(f"chatcmpl-{secrets.token_hex(16)}")
