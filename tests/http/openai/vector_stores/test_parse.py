"""Requests about vector stores: what is taken, and what is refused, with the place of it."""

import json
from typing import Any

import pytest

from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.http.openai.tools import parse_tools
from antiphon.http.openai.vector_stores.parse import (
    filter_of,
    parse_add,
    parse_attributes,
    parse_batch,
    parse_create,
    parse_search,
    ranking_of,
)
from antiphon.http.openai.vector_stores.schema import HybridSearch, RankingOptions
from antiphon.reading_files import Chunking
from antiphon.sources import Comparison, Compound

DEFAULT = Chunking(max_tokens=400, overlap_tokens=100)
STATIC = {
    "type": "static",
    "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50},
}


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_file_is_cut_as_is_said_or_as_the_settings_say():
    plain = parse_add(body({"file_id": "file-a"}), DEFAULT)
    static = parse_add(body({"file_id": "file-a", "chunking_strategy": STATIC}), DEFAULT)
    auto = parse_add(body({"file_id": "f", "chunking_strategy": {"type": "auto"}}), DEFAULT)

    assert plain.chunking == auto.chunking == DEFAULT
    assert static.chunking == Chunking(max_tokens=200, overlap_tokens=50)


def test_a_batch_has_ids_that_share_what_is_said_or_files_with_their_own():
    shared = parse_batch(body({"file_ids": ["a", "b", "a"], "attributes": {"k": 1}}), DEFAULT)
    own = parse_batch(
        body({"files": [{"file_id": "a", "attributes": {"k": True}}, {"file_id": "b"}]}), DEFAULT
    )

    assert [(each.file, each.attributes) for each in shared] == [("a", {"k": 1}), ("b", {"k": 1})]
    assert [(each.file, each.attributes) for each in own] == [("a", {"k": True}), ("b", {})]


@pytest.mark.parametrize(
    ("parse", "given", "param"),
    [
        (parse_create, {"file_ids": ["f"] * 501}, "file_ids"),
        (parse_create, {"name": "x" * 257}, "name"),
        (
            parse_create,
            {"expires_after": {"anchor": "last_active_at", "days": 0}},
            "expires_after.days",
        ),
        (
            parse_create,
            {"expires_after": {"anchor": "created_at", "days": 1}},
            "expires_after.anchor",
        ),
        (parse_create, {"colour": "red"}, "colour"),
        (parse_attributes, {"attributes": {str(n): n for n in range(17)}}, "attributes"),
        (parse_attributes, {"attributes": {"k": "x" * 513}}, "attributes.k"),
        (parse_attributes, {"attributes": {"k" * 65: 1}}, "attributes"),
        (parse_attributes, {"attributes": {"k": [1]}}, "attributes[...]"),
        (parse_search, {"query": " "}, "query"),
        (parse_search, {"query": []}, "query"),
        (parse_search, {"query": "x" * 5000}, "query"),
        (parse_search, {"query": ["a", ""]}, "query[1]"),
        (parse_search, {"query": "x", "max_num_results": 51}, "max_num_results"),
        (parse_search, {"query": "x", "max_num_results": 0}, "max_num_results"),
        (
            parse_search,
            {"query": "x", "ranking_options": {"ranker": "best"}},
            "ranking_options.ranker",
        ),
    ],
)
def test_what_is_out_of_range_is_refused_by_its_place(parse: Any, given: Any, param: str):
    with pytest.raises(InvalidRequest) as refused:
        parse(body(given))

    assert refused.value.param == param


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({}, "file_ids"),
        ({"file_ids": ["a"], "files": [{"file_id": "a"}]}, "file_ids"),
        ({"file_ids": []}, "file_ids"),
        (
            {"files": [{"file_id": "a", "attributes": {"k": "x" * 513}}]},
            "files[0].attributes.k",
        ),
        (
            {
                "file_ids": ["a"],
                "chunking_strategy": {
                    "type": "static",
                    "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 150},
                },
            },
            "chunking_strategy.static",
        ),
    ],
)
def test_a_batch_that_makes_no_sense_is_refused(given: Any, param: str):
    with pytest.raises(InvalidRequest) as refused:
        parse_batch(body(given), DEFAULT)

    assert refused.value.param == param


def test_an_id_that_can_not_be_one_is_not_found():
    with pytest.raises(RecordNotFound):
        parse_add(body({"file_id": "../etc/passwd"}), DEFAULT)


def test_filters_nest():
    found = filter_of(
        {
            "type": "or",
            "filters": [
                {"type": "eq", "key": "a", "value": 1},
                {"type": "and", "filters": [{"type": "in", "key": "b", "value": ["x", 2]}]},
            ],
        }
    )

    assert found == Compound(
        operator="or",
        filters=(
            Comparison(operator="eq", key="a", value=1),
            Compound(
                operator="and",
                filters=(Comparison(operator="in", key="b", value=("x", 2)),),
            ),
        ),
    )


def deep(levels: int) -> dict[str, Any]:
    filter: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(levels):
        filter = {"type": "and", "filters": [filter]}
    return filter


@pytest.mark.parametrize(
    "given",
    [
        {"type": "like", "key": "a", "value": 1},
        {"type": "eq", "key": "a"},
        {"type": "eq", "key": "a", "value": [1]},
        {"type": "in", "key": "a", "value": 1},
        {"type": "and", "filters": []},
        {"type": "and", "filters": ["a"]},
        deep(9),
        {"type": "and", "filters": [{"type": "eq", "key": "a", "value": 1}] * 65},
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(given: Any):
    with pytest.raises(InvalidRequest) as refused:
        filter_of(given)

    assert str(refused.value.param).startswith("filters")


def test_weights_become_a_share():
    options = RankingOptions(
        hybrid_search=HybridSearch(embedding_weight=1.0, text_weight=3.0), score_threshold=0.2
    )

    ranking = ranking_of(options)

    assert (ranking.text_share, ranking.threshold) == (0.75, 0.2)
    for wrong in (
        RankingOptions(score_threshold=1.5),
        RankingOptions(hybrid_search=HybridSearch(embedding_weight=0, text_weight=0)),
    ):
        with pytest.raises(InvalidRequest):
            ranking_of(wrong)


SEARCH = {"type": "file_search", "vector_store_ids": ["vs_a"]}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("choice", "searches", "is_called"),
    [
        (None, True, True),
        ("auto", True, True),
        ("none", False, False),
        ("required", True, True),
        ({"type": "file_search"}, True, True),
        ({"type": "function", "name": "f"}, True, True),
        ({"type": "allowed_tools", "mode": "auto", "tools": [SEARCH]}, True, False),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}],
            },
            False,
            True,
        ),
    ],
)
def test_a_choice_of_tools_says_what_may_be_done(choice: Any, searches: bool, is_called: bool):
    given = parse_tools([SEARCH, FUNCTION], choice, None)

    assert (given.search is not None) is searches
    callable_ = () if given.toolbox is None else given.toolbox.callable
    assert bool(callable_) is is_called


def test_a_required_search_is_no_reason_to_call_a_function():
    alone = parse_tools([SEARCH], "required", None)
    beside = parse_tools([SEARCH, FUNCTION], {"type": "file_search"}, None)

    assert alone.toolbox is None
    assert alone.search is not None
    assert beside.toolbox is not None
    assert not beside.toolbox.required


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([SEARCH, SEARCH], None),
        ([{"type": "file_search", "vector_store_ids": []}], None),
        ([{"type": "file_search", "vector_store_ids": ["vs_a"], "max_num_results": 51}], None),
        ([{"type": "file_search", "vector_store_ids": ["vs_a"], "colour": 1}], None),
        ([FUNCTION], {"type": "file_search"}),
        ([FUNCTION], {"type": "allowed_tools", "mode": "auto", "tools": [SEARCH]}),
        ([{"type": "web_search"}], None),
    ],
)
def test_tools_that_are_none_are_refused(tools: Any, choice: Any):
    with pytest.raises(InvalidRequest):
        parse_tools(tools, choice, None)
