"""Whether arguments fit, for schemas that mean well and for those that don't."""

from time import perf_counter

import pytest

from antiphon.actors.tools.fitting import problem_of

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"$ref": "#/$defs/days"},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"days": {"type": "integer", "maximum": 7}},
}


@pytest.mark.parametrize(
    "arguments", [{"city": "Paris"}, {"city": "Paris", "days": 7, "kind": "a"}]
)
def test_what_fits_has_no_problem(arguments):
    assert problem_of(arguments, SCHEMA) is None


@pytest.mark.parametrize(
    "arguments",
    [
        *({}, [], "x", {"city": 1}, {"city": "P"}, {"city": "Paris", "days": 8}),
        *(
            {"city": "Paris", "days": "7"},
            {"city": "Paris", "kind": "c"},
            {"city": "Paris", "x": 1},
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_has_one(arguments):
    assert problem_of(arguments, SCHEMA) is not None


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 64 + "!"}),
        (
            {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
            {"a" * 64 + "!": 1},
        ),
        (
            {
                "$ref": "#/$defs/0",
                "$defs": {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 3} for n in range(40)}
                | {"40": {"type": "null"}},
            },
            {},
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {
                    "a": {
                        "$schema": "http://json-schema.org/draft-07/schema#",
                        "pattern": "^(a+)+$",
                    }
                },
            },
            {"a": "a" * 64 + "!"},
        ),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [[n] for n in range(20_000)]}),
        ({"$ref": "#/$defs/none"}, {}),
        ({"$ref": "#"}, {}),
    ],
)
def test_a_schema_that_would_take_forever_is_taken_to_fit_at_once(schema, arguments):
    began = perf_counter()

    assert problem_of(arguments, schema) is None
    assert perf_counter() - began < 2
