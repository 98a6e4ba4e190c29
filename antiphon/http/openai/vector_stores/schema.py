"""The request bodies of `/v1/vector_stores` as OpenAI documents them. Types only: ranges and
refusals are in `parse`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.http.openai.conversations.schema import Metadata
from antiphon.http.openai.schema import Strict

MAX_FILES = 500
MAX_BATCH = 2000
MAX_ATTRIBUTES = 16
MAX_KEY = 64
MAX_VALUE = 512
MAX_RESULTS = 50
MAX_NAME = 256
MAX_DESCRIPTION = 1024
MAX_QUERY = 4096
MAX_QUERIES = 8

AttributeText = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": MAX_VALUE})]
AttributeKey = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": MAX_KEY})]
AttributesBody = Annotated[
    dict[AttributeKey, AttributeText | float | bool],
    msgspec.Meta(extra_json_schema={"maxProperties": MAX_ATTRIBUTES}),
]


class ExpiresAfter(Strict, frozen=True):
    anchor: Literal["last_active_at"]
    days: Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": 365})]


class StaticChunking(Strict, frozen=True):
    max_chunk_size_tokens: int
    chunk_overlap_tokens: int


class AutoStrategy(Strict, frozen=True, tag_field="type", tag="auto"):
    """As this server's settings say."""


class StaticStrategy(Strict, frozen=True, tag_field="type", tag="static"):
    static: StaticChunking


Strategy = AutoStrategy | StaticStrategy


class CreateVectorStore(Strict, frozen=True):
    """Null means the same as absent."""

    name: str | None = None
    description: str | None = None
    file_ids: (
        Annotated[list[str], msgspec.Meta(extra_json_schema={"maxItems": MAX_FILES})] | None
    ) = None
    expires_after: ExpiresAfter | None = None
    chunking_strategy: Strategy | None = None
    metadata: Metadata | None = None


class UpdateVectorStore(Strict, frozen=True):
    """Absent leaves as it is; null removes it."""

    name: str | UnsetType | None = UNSET
    expires_after: ExpiresAfter | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET


class CreateStoreFile(Strict, frozen=True):
    file_id: str
    chunking_strategy: Strategy | None = None
    attributes: AttributesBody | None = None


class CreateFileBatch(Strict, frozen=True):
    """Either ids, which have the strategy and the attributes that are given beside them, or files
    with their own."""

    file_ids: list[str] | None = None
    files: list[CreateStoreFile] | None = None
    chunking_strategy: Strategy | None = None
    attributes: AttributesBody | None = None


class UpdateStoreFile(Strict, frozen=True):
    """Null removes all."""

    attributes: AttributesBody | None


class ComparisonFilter(Strict, frozen=True):
    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str
    value: str | float | bool | list[str | float | bool]


class CompoundFilter(Strict, frozen=True):
    type: Literal["and", "or"]
    filters: list[Any]


FilterBody = Annotated[
    dict[str, Any],
    msgspec.Meta(
        extra_json_schema={
            "anyOf": [
                {"$ref": "#/components/schemas/ComparisonFilter"},
                {"$ref": "#/components/schemas/CompoundFilter"},
            ]
        }
    ),
]
"""Decoded one by one: a filter is in a filter."""


class HybridSearch(Strict, frozen=True):
    embedding_weight: float
    text_weight: float


class RankingOptions(Strict, frozen=True):
    ranker: Literal["none", "auto", "default-2024-11-15"] | None = None
    score_threshold: float | None = None
    hybrid_search: HybridSearch | None = None


class SearchVectorStore(Strict, frozen=True):
    query: str | list[str]
    rewrite_query: bool | None = None
    """Accepted; questions are asked as they are, and the answer shows them."""
    max_num_results: (
        Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": MAX_RESULTS})]
        | None
    ) = None
    filters: FilterBody | None = None
    ranking_options: RankingOptions | None = None


class FileSearchTool(Strict, frozen=True):
    """Of a response."""

    type: Literal["file_search"]
    vector_store_ids: list[str]
    max_num_results: (
        Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": MAX_RESULTS})]
        | None
    ) = None
    filters: FilterBody | None = None
    ranking_options: RankingOptions | None = None
