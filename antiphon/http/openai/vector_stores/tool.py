"""The tool `file_search` of a response, read and checked. Pure."""

from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.http.openai.bounds import check_integer, empty_array
from antiphon.http.openai.decode import convert_value
from antiphon.http.openai.vector_stores.parse import filter_of, ranking_of, store_id
from antiphon.http.openai.vector_stores.schema import MAX_RESULTS, FileSearchTool
from antiphon.sources import FileSearch

FILE_SEARCH = "file_search"
_MAX_STORES = 16


def parse_file_search(value: dict[str, Any], path: str) -> FileSearch:
    """Raises InvalidRequest, RecordNotFound."""
    given = convert_value(value, FileSearchTool, path, {})
    ids = tuple(dict.fromkeys(given.vector_store_ids))
    if not ids:
        raise empty_array(f"{path}.vector_store_ids")
    if len(ids) > _MAX_STORES:
        raise InvalidRequest(
            f"Invalid '{path}.vector_store_ids': array too long. Expected an array with maximum "
            f"length {_MAX_STORES}, but got an array with length {len(ids)} instead.",
            f"{path}.vector_store_ids",
            "array_above_max_length",
        )
    check_integer(f"{path}.max_num_results", given.max_num_results, 1, MAX_RESULTS)
    return FileSearch(
        stores=tuple(store_id(id, f"{path}.vector_store_ids") for id in ids),
        most=given.max_num_results,
        filter=filter_of(given.filters, f"{path}.filters"),
        ranking=ranking_of(given.ranking_options, f"{path}.ranking_options"),
    )
