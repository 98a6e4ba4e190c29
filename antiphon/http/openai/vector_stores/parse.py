"""Requests about vector stores, read and checked: what remains can be written or searched for.
Pure."""

import math
from typing import Any

import msgspec
from msgspec import UNSET

from antiphon.document_records import Attributes, NewStoreFile
from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.http.openai.body import checked_id
from antiphon.http.openai.bounds import (
    check_decimal,
    check_integer,
    check_length,
    check_metadata,
    empty_array,
)
from antiphon.http.openai.conversations.schema import Metadata
from antiphon.http.openai.decode import convert_value, decode_body
from antiphon.http.openai.vector_stores.schema import (
    MAX_ATTRIBUTES,
    MAX_BATCH,
    MAX_DESCRIPTION,
    MAX_FILES,
    MAX_KEY,
    MAX_NAME,
    MAX_QUERIES,
    MAX_QUERY,
    MAX_RESULTS,
    MAX_VALUE,
    ComparisonFilter,
    CompoundFilter,
    CreateFileBatch,
    CreateStoreFile,
    CreateVectorStore,
    ExpiresAfter,
    RankingOptions,
    SearchVectorStore,
    StaticStrategy,
    Strategy,
    UpdateStoreFile,
    UpdateVectorStore,
)
from antiphon.ids import FileBatchId, FileId, VectorStoreId
from antiphon.reading_files import Chunking
from antiphon.sources import Comparison, Compound, Filter, Ranking

_ALLOWED = {
    "anchor": "'last_active_at'",
    "type": "'auto' and 'static' in chunking_strategy, comparisons, and 'and' and 'or' in filters",
    "ranker": "'none', 'auto', and 'default-2024-11-15'",
}
_DEEPEST = 8
_MAX_COMPARISONS = 64
_MAX_FILTER_VALUES = 256

_CREATE = msgspec.json.Decoder(CreateVectorStore)
_UPDATE = msgspec.json.Decoder(UpdateVectorStore)
_ADD = msgspec.json.Decoder(CreateStoreFile)
_BATCH = msgspec.json.Decoder(CreateFileBatch)
_ATTRIBUTES = msgspec.json.Decoder(UpdateStoreFile)
_SEARCH = msgspec.json.Decoder(SearchVectorStore)


def store_id(text: str, param: str = "vector_store_id") -> VectorStoreId:
    """Raises RecordNotFound for what can't be one."""
    if not text.startswith("vs_"):
        raise RecordNotFound("vector store", text, param)
    return VectorStoreId(checked_id("vector store", text, param))


def file_id(text: str, param: str = "file_id") -> FileId:
    """Raises RecordNotFound for what can't be one."""
    return FileId(checked_id("file", text, param))


def batch_id(text: str) -> FileBatchId:
    """Raises RecordNotFound for what can't be one."""
    return FileBatchId(checked_id("file batch", text, "batch_id"))


def parse_create(body: bytes) -> CreateVectorStore:
    """Raises InvalidRequest."""
    given = decode_body(body or b"{}", _CREATE, _ALLOWED)
    _check_fields(given.name, given.expires_after, given.metadata)
    check_length("description", given.description, MAX_DESCRIPTION)
    _check_number("file_ids", given.file_ids or (), MAX_FILES)
    return given


def parse_update(body: bytes) -> UpdateVectorStore:
    """Raises InvalidRequest."""
    given = decode_body(body or b"{}", _UPDATE, _ALLOWED)
    _check_fields(
        None if given.name is UNSET else given.name,
        None if given.expires_after is UNSET else given.expires_after,
        None if given.metadata is UNSET else given.metadata,
    )
    return given


def parse_add(body: bytes, default: Chunking) -> NewStoreFile:
    """Raises InvalidRequest, RecordNotFound."""
    return _new_file(decode_body(body, _ADD, _ALLOWED), "", default)


def parse_batch(body: bytes, default: Chunking) -> tuple[NewStoreFile, ...]:
    """Raises InvalidRequest, RecordNotFound."""
    given = decode_body(body, _BATCH, _ALLOWED)
    if (given.file_ids is None) == (given.files is None):
        raise InvalidRequest(
            "Exactly one of 'file_ids' and 'files' must be provided.",
            "file_ids",
            "missing_required_parameter",
        )
    if given.files is not None:
        _check_number("files", given.files, MAX_BATCH, least=1)
        return tuple(
            _new_file(each, f"files[{index}].", default) for index, each in enumerate(given.files)
        )
    ids = given.file_ids or []
    _check_number("file_ids", ids, MAX_BATCH, least=1)
    return new_files(ids, given.chunking_strategy, default, given.attributes)


def new_files(
    ids: list[str],
    strategy: Strategy | None,
    default: Chunking,
    attributes: Attributes | None = None,
) -> tuple[NewStoreFile, ...]:
    """All cut in one way. Raises InvalidRequest, RecordNotFound."""
    chunking = chunking_of(strategy, "chunking_strategy", default)
    known = checked_attributes(attributes, "attributes")
    return tuple(
        NewStoreFile(file=file_id(id, f"file_ids[{index}]"), chunking=chunking, attributes=known)
        for index, id in enumerate(dict.fromkeys(ids))
    )


def parse_attributes(body: bytes) -> Attributes:
    """Raises InvalidRequest."""
    return checked_attributes(decode_body(body, _ATTRIBUTES, _ALLOWED).attributes, "attributes")


def parse_search(body: bytes) -> tuple[tuple[str, ...], SearchVectorStore]:
    """The questions, and all else. Raises InvalidRequest."""
    given = decode_body(body, _SEARCH, _ALLOWED)
    queries = (given.query,) if isinstance(given.query, str) else tuple(given.query)
    _check_number("query", queries, MAX_QUERIES, least=1)
    for index, query in enumerate(queries):
        param = "query" if isinstance(given.query, str) else f"query[{index}]"
        check_length(param, query, MAX_QUERY)
        if not query.strip():
            raise InvalidRequest(
                f"Invalid '{param}': empty string. Expected a string with minimum length 1, but "
                "got an empty string instead.",
                param,
                "empty_string",
            )
    check_integer("max_num_results", given.max_num_results, 1, MAX_RESULTS)
    return queries, given


def chunking_of(strategy: Strategy | None, param: str, default: Chunking) -> Chunking:
    """Raises InvalidRequest."""
    if not isinstance(strategy, StaticStrategy):
        return default
    chunking = Chunking(
        max_tokens=strategy.static.max_chunk_size_tokens,
        overlap_tokens=strategy.static.chunk_overlap_tokens,
    )
    if (problem := chunking.problem()) is not None:
        raise InvalidRequest(f"Invalid '{param}.static': {problem}.", f"{param}.static")
    return chunking


def checked_attributes(attributes: Attributes | None, param: str) -> Attributes:
    """Raises InvalidRequest."""
    given = attributes or {}
    if len(given) > MAX_ATTRIBUTES:
        raise InvalidRequest(
            f"Invalid '{param}': too many properties. Expected an object with at most "
            f"{MAX_ATTRIBUTES} properties, but got an object with {len(given)} properties "
            "instead.",
            param,
            "object_above_max_properties",
        )
    for key, value in given.items():
        check_length(param, key, MAX_KEY)
        if isinstance(value, str):
            check_length(f"{param}.{key}", value, MAX_VALUE)
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidRequest(f"Invalid '{param}.{key}': must be finite.", f"{param}.{key}")
    return given


def ranking_of(options: RankingOptions | None, param: str = "ranking_options") -> Ranking:
    """Raises InvalidRequest."""
    if options is None:
        return Ranking()
    threshold = options.score_threshold or 0.0
    check_decimal(f"{param}.score_threshold", threshold, 0, 1)
    if (hybrid := options.hybrid_search) is None:
        return Ranking(threshold=threshold)
    for name in ("embedding_weight", "text_weight"):
        check_decimal(f"{param}.hybrid_search.{name}", getattr(hybrid, name), 0, 1_000_000)
    total = hybrid.embedding_weight + hybrid.text_weight
    if total <= 0:
        raise InvalidRequest(
            f"Invalid '{param}.hybrid_search': one of the weights must be more than 0.",
            f"{param}.hybrid_search",
            "invalid_value",
        )
    return Ranking(threshold=threshold, text_share=hybrid.text_weight / total)


def filter_of(value: dict[str, Any] | None, param: str = "filters") -> Filter | None:
    """Raises InvalidRequest."""
    if value is None:
        return None
    left = [_MAX_COMPARISONS]
    return _filter(value, param, 1, left)


def _filter(value: Any, path: str, depth: int, left: list[int]) -> Filter:
    left[0] -= 1
    if depth > _DEEPEST or left[0] < 0:
        raise InvalidRequest(
            f"Invalid '{path}': filters may have at most {_MAX_COMPARISONS} parts, in at most "
            f"{_DEEPEST} levels.",
            path,
            "invalid_value",
        )
    if not isinstance(value, dict) or value.get("type") not in {"and", "or"}:
        return _comparison(convert_value(value, ComparisonFilter, path, _ALLOWED), path)
    given = convert_value(value, CompoundFilter, path, _ALLOWED)
    if not given.filters:
        raise empty_array(f"{path}.filters")
    return Compound(
        operator=given.type,
        filters=tuple(
            _filter(each, f"{path}.filters[{index}]", depth + 1, left)
            for index, each in enumerate(given.filters)
        ),
    )


def _comparison(given: ComparisonFilter, path: str) -> Comparison:
    check_length(f"{path}.key", given.key, MAX_KEY)
    takes_many = given.type in {"in", "nin"}
    if isinstance(given.value, list) != takes_many:
        what = "an array" if takes_many else "a string, a number or a boolean"
        raise InvalidRequest(
            f"Invalid type for '{path}.value': '{given.type}' takes {what}.",
            f"{path}.value",
            "invalid_type",
        )
    if not isinstance(given.value, list):
        return Comparison(operator=given.type, key=given.key, value=given.value)
    _check_number(f"{path}.value", given.value, _MAX_FILTER_VALUES)
    return Comparison(operator=given.type, key=given.key, value=tuple(given.value))


def _new_file(given: CreateStoreFile, path: str, default: Chunking) -> NewStoreFile:
    return NewStoreFile(
        file=file_id(given.file_id, f"{path}file_id"),
        chunking=chunking_of(given.chunking_strategy, f"{path}chunking_strategy", default),
        attributes=checked_attributes(given.attributes, f"{path}attributes"),
    )


def _check_fields(
    name: str | None, expires_after: ExpiresAfter | None, metadata: Metadata | None
) -> None:
    check_length("name", name, MAX_NAME)
    check_metadata(metadata)
    if expires_after is not None:
        check_integer("expires_after.days", expires_after.days, 1, 365)


def _check_number(param: str, values: Any, most: int, *, least: int = 0) -> None:
    if len(values) < least:
        raise empty_array(param)
    if len(values) > most:
        raise InvalidRequest(
            f"Invalid '{param}': array too long. Expected an array with maximum length {most}, "
            f"but got an array with length {len(values)} instead.",
            param,
            "array_above_max_length",
        )
