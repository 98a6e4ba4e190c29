"""The JSON schema of an answer that is nothing but calls: what an engine that knows structured
output is held to. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from antiphon.tools import Parameters, Tool

MOST_CALLS = 8
"""In one answer that is held to a schema. A small model that may go on does go on."""
_DATA_KEYWORDS = {"const", "enum", "default", "examples"}
"""What stands under these is a value, not a schema."""
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""What stands under these are schemas by any names."""


def calls_schema(tools: Sequence[Tool], *, most: int = 1) -> str:
    """Of one call, or of a list of up to `most`, of any of these functions. The name comes before
    the arguments, so that these can be passed on as they come."""
    definitions: dict[str, Any] = {}
    calls = [_call(tool, f"arguments{index}", definitions) for index, tool in enumerate(tools)]
    schema: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    if most > 1:
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": most}
    if definitions:
        schema = {**schema, "$defs": definitions}
    return json.dumps(schema, ensure_ascii=False)


def _call(tool: Tool, key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    arguments: Parameters = tool.parameters
    if _refers(arguments):
        definitions[key] = _moved(arguments, f"#/$defs/{key}")
        arguments = {"$ref": f"#/$defs/{key}"}
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _refers(schema: Any) -> bool:
    match schema:
        case dict():
            return "$ref" in schema or any(map(_refers, schema.values()))
        case list():
            return any(map(_refers, schema))
        case _:
            return False


def _moved(schema: Any, root: str) -> Any:
    """With references to its own root leading to where it stands now."""
    match schema:
        case dict():
            return {key: _moved_value(key, value, root) for key, value in schema.items()}
        case list():
            return [_moved(each, root) for each in schema]
        case _:
            return schema


def _moved_value(key: str, value: Any, root: str) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _moved(each, root) for name, each in value.items()}
    if key in _DATA_KEYWORDS:
        return value
    if key == "$ref" and isinstance(value, str) and value.startswith("#"):
        return root + value[1:]
    return _moved(value, root)
