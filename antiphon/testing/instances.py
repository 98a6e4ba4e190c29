"""The simplest value that is of a JSON schema, for engines without a model that are held to one."""

from typing import Any


def instance_of(schema: dict[str, Any]) -> Any:
    """For schemas as simple as those of the checks."""
    match schema:
        case {"const": value}:
            return value
        case {"enum": [value, *_]}:
            return value
        case {"properties": properties}:
            return {name: instance_of(inner) for name, inner in properties.items()}
        case _:
            return {}
