"""Filters of files by their attributes."""

import pytest

from antiphon.sources import Comparison, Compound, matches

HAS = {"year": 2024, "name": "b", "final": True}


@pytest.mark.parametrize(
    ("operator", "key", "value", "expected"),
    [
        ("eq", "year", 2024, True),
        ("eq", "year", 2024.0, True),
        ("eq", "year", "2024", False),
        ("eq", "final", 1, False),
        ("eq", "final", True, True),
        ("eq", "nothing", 1, False),
        ("ne", "nothing", 1, True),
        ("ne", "year", 2024, False),
        ("gt", "year", 2023, True),
        ("gte", "year", 2024, True),
        ("lt", "year", 2024, False),
        ("lte", "year", 2024, True),
        ("gt", "name", "a", True),
        ("gt", "name", 1, False),
        ("gt", "final", 0, False),
        ("lt", "nothing", 1, False),
        ("in", "name", ("a", "b"), True),
        ("in", "year", ("2024",), False),
        ("nin", "name", ("a",), True),
        ("nin", "nothing", ("a",), True),
    ],
)
def test_comparisons(operator, key, value, expected):
    assert matches(Comparison(operator=operator, key=key, value=value), HAS) is expected


def test_compounds():
    is_new = Comparison(operator="gt", key="year", value=2000)
    is_odd = Comparison(operator="eq", key="name", value="x")

    assert matches(Compound(operator="or", filters=(is_odd, is_new)), HAS)
    assert not matches(Compound(operator="and", filters=(is_odd, is_new)), HAS)
    assert matches(None, {})
