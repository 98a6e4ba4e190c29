"""The request bodies of `/v1/conversations`, and the kinds of items that may be put into one. Types
only: ranges and refusals are in `items` and `changes`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.http.openai.responses.schema import (
    AudioPart,
    FilePart,
    ImagePart,
    OutputTextPart,
    RefusalPart,
    TextPart,
)
from antiphon.http.openai.schema import Strict

Status = Literal["in_progress", "completed", "incomplete"]


Part = TextPart | OutputTextPart | RefusalPart | FilePart | ImagePart | AudioPart


class MessageItem(Strict, frozen=True):
    """A message; the one kind that may leave out what it is."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[Part]
    type: Literal["message"] | None = None
    id: str | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class ResultText(Strict, frozen=True):
    """Not tagged as other parts are: alone in its list, its tag could be left out."""

    type: Literal["input_text"]
    text: str


class FunctionCallItem(Strict, frozen=True, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: Status | None = None
    namespace: str | None = None
    caller: dict[str, Any] | None = None


class FunctionOutputItem(Strict, frozen=True, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str | list[ResultText]
    id: str | None = None
    status: Status | None = None
    name: str | None = None
    namespace: str | None = None
    caller: dict[str, Any] | None = None


class CustomCallItem(Strict, frozen=True, tag_field="type", tag="custom_tool_call"):
    call_id: str
    name: str
    input: str
    id: str | None = None
    status: Status | None = None
    namespace: str | None = None


class CustomOutputItem(Strict, frozen=True, tag_field="type", tag="custom_tool_call_output"):
    call_id: str
    output: str | list[ResultText]
    id: str | None = None
    status: Status | None = None


class FileSearchItem(Strict, frozen=True, tag_field="type", tag="file_search_call"):
    """As an answer has it; results only where they were asked for."""

    queries: list[str]
    results: list[dict[str, Any]] | None = None
    id: str | None = None
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"] | None = None


class SummaryPart(Strict, frozen=True):
    type: Literal["summary_text"]
    text: str


class ReasoningPart(Strict, frozen=True):
    type: Literal["reasoning_text"]
    text: str


class ReasoningItem(Strict, frozen=True, tag_field="type", tag="reasoning"):
    summary: list[SummaryPart]
    content: list[ReasoningPart] | None = None
    encrypted_content: str | None = None
    id: str | None = None
    status: Status | None = None


ToolItem = (
    FunctionCallItem
    | FunctionOutputItem
    | CustomCallItem
    | CustomOutputItem
    | FileSearchItem
    | ReasoningItem
)
"""What is kept as it came, so that a client can keep its whole history here."""

ITEM_KINDS = (
    MessageItem,
    FunctionCallItem,
    FunctionOutputItem,
    CustomCallItem,
    CustomOutputItem,
    FileSearchItem,
    ReasoningItem,
)

MAX_ITEMS = 20
_NewItem = Annotated[
    Any,
    msgspec.Meta(
        extra_json_schema={
            "anyOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in ITEM_KINDS]
        }
    ),
]
NewItems = Annotated[list[_NewItem], msgspec.Meta(extra_json_schema={"maxItems": MAX_ITEMS})]
"""Decoded one by one, since a message need not say that it is one."""

MAX_TITLE = 200
Title = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": MAX_TITLE})]

Metadata = Annotated[
    dict[
        Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 64})],
        Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": 512})],
    ],
    msgspec.Meta(extra_json_schema={"maxProperties": 16}),
]


class CreateConversation(Strict, frozen=True):
    """Null means the same as absent."""

    metadata: Metadata | None = None
    items: NewItems | None = None
    title: Title | None = None
    memory: bool | None = None


class UpdateConversation(Strict, frozen=True):
    """Absent leaves as it is; a null title or null metadata removes it, and null memory is as the
    server's settings say."""

    metadata: Metadata | UnsetType | None = UNSET
    title: Title | UnsetType | None = UNSET
    archived: bool | UnsetType | None = UNSET
    memory: bool | UnsetType | None = UNSET


class CreateItems(Strict, frozen=True):
    items: Annotated[NewItems, msgspec.Meta(extra_json_schema={"minItems": 1})]


class BranchConversation(Strict, frozen=True):
    """The copy ends with `after_item`; without one it is whole. It has the metadata of the whole
    unless it is given its own."""

    after_item: str | None = None
    title: Title | None = None
    metadata: Metadata | None = None
