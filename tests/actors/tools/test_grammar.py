"""The schema of an answer that is nothing but calls."""

import json

import jsonschema
import pytest

from antiphon.actors.tools.grammar import calls_schema
from antiphon.tools import Tool

PLAIN = Tool(name="plain", parameters={"type": "object", "properties": {"a": {"type": "string"}}})
TREE = Tool(
    name="tree",
    parameters={
        "type": "object",
        "properties": {
            "root": {"$ref": "#/$defs/node"},
            "enum": {"$ref": "#/$defs/leaf"},
            "fixed": {"const": {"$ref": "#/$defs/leaf"}},
        },
        "required": ["root"],
        "$defs": {
            "node": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            "leaf": {"type": "integer"},
        },
    },
)


def fits(schema: str, value: object) -> bool:
    return jsonschema.Draft202012Validator(json.loads(schema)).is_valid(value)


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def test_one_function_is_one_call_with_the_name_first():
    schema = calls_schema([PLAIN])

    assert list(json.loads(schema)["properties"]) == ["name", "arguments"]
    assert fits(schema, call("plain", a="x"))
    assert not fits(schema, call("other", a="x"))
    assert not fits(schema, call("plain", a=1))
    assert not fits(schema, {"name": "plain"})
    assert not fits(schema, call("plain") | {"more": 1})


@pytest.mark.parametrize("tools", [[TREE], [PLAIN, TREE], [TREE, PLAIN]])
def test_references_of_a_schema_lead_to_the_same_places_in_the_whole(tools):
    schema = calls_schema(tools)

    assert fits(schema, call("tree", root=[[], [[]]], enum=1))
    assert not fits(schema, call("tree", root=[1]))
    assert not fits(schema, call("tree", root=[], enum="x"))
    assert fits(schema, call("tree", root=[], fixed={"$ref": "#/$defs/leaf"}))


def test_several_calls_are_a_list_of_one_to_as_many():
    schema = calls_schema([PLAIN, TREE], most=2)
    one = call("plain", a="x")

    assert fits(schema, [one])
    assert fits(schema, [one, call("tree", root=[])])
    assert not fits(schema, [])
    assert not fits(schema, [one] * 3)
    assert not fits(schema, one)
