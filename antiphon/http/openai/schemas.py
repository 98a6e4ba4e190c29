"""Whether JSON schemas of clients are some: checked before they come near an engine. Pure."""

from typing import Any

import jsonschema
import msgspec
from jsonschema.validators import validator_for

from antiphon.errors import InvalidRequest

_MAX_SCHEMA_BYTES = 65_536
"""The check and the grammar compiler take time in proportion; OpenAI's own bound is near this."""
_DATA_KEYWORDS = {"const", "enum", "default", "examples"}
"""What stands under these is a value, not a schema."""
_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""What stands under these are schemas by any names."""


def check_named_schema(name: str, schema: dict[str, Any] | None, *, place: str, what: str) -> None:
    """Raises InvalidRequest. `place` is the path of what holds both, `what` is how errors call
    it."""
    if not name or len(name) > 64:
        raise InvalidRequest(
            f"Invalid '{place}.name': expected 1 to 64 characters.",
            f"{place}.name",
            "invalid_value",
        )
    param = f"{place}.schema"
    if schema is None:
        raise InvalidRequest(
            f"Missing required parameter: '{param}'.", param, "missing_required_parameter"
        )
    if (problem := schema_problem(schema)) is not None:
        raise InvalidRequest(f"Invalid schema for {what}: {problem}.", param, "invalid_schema")


def schema_problem(schema: dict[str, Any]) -> str | None:
    """What is wrong with it, in a few words; None when it is one."""
    if len(msgspec.json.encode(schema)) > _MAX_SCHEMA_BYTES:
        return f"it is larger than {_MAX_SCHEMA_BYTES} bytes"
    try:
        validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
        remote = _remote_reference(schema)
    except jsonschema.SchemaError as error:
        place = "/".join(str(step) for step in error.absolute_path)
        return f"{error.message[:200]} (at {place or 'its root'})"
    except RecursionError:
        return "it is nested too deeply"
    if remote is not None:
        return f"the reference {remote[:100]!r} leads out of the schema"
    return None


def _remote_reference(schema: Any) -> str | None:
    """A `$ref` to another document: nothing is fetched, so the engine would take it for "anything".
    The schema has passed the metaschema, which bounds its depth."""
    match schema:
        case dict():
            if isinstance(target := schema.get("$ref"), str) and not target.startswith("#"):
                return target
            inner = [part for key, value in schema.items() for part in _schemas(key, value)]
        case list():
            inner = schema
        case _:
            return None
    return next((found for value in inner if (found := _remote_reference(value))), None)


def _schemas(key: str, value: Any) -> list[Any]:
    """What there is of schemas under a keyword."""
    if key in _NAMED and isinstance(value, dict):
        return list(value.values())
    return [] if key in _DATA_KEYWORDS else [value]
