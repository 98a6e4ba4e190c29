"""From what a model wrote where a call is to the call that a client gets: checked, and its
arguments as JSON. Pure."""

from dataclasses import dataclass
from typing import Any

import msgspec

from antiphon.actors.tools.fitting import problem_of
from antiphon.tools import Tool, Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A good one."""

    name: str
    arguments: str


class MalformedCall(Exception):
    """It is no call of any of these functions; says why, without a word of what was written."""


def read_calls(content: str, toolbox: Toolbox) -> tuple[Call, ...]:
    """One call, or a list of them. Raises MalformedCall."""
    value = decoded(content)
    return tuple(_read(each, toolbox) for each in (value if isinstance(value, list) else [value]))


def decoded(content: str) -> Any:
    """Raises MalformedCall for what is no JSON."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise MalformedCall("it is no JSON") from error


def _read(value: Any, toolbox: Toolbox) -> Call:
    if not isinstance(value, dict):
        raise MalformedCall("it names no function")
    tool = next((each for each in toolbox.callable if each.name == value.get("name")), None)
    if tool is None:
        raise MalformedCall("there is no such function")
    given = value.get("arguments", value.get("parameters", {}))
    arguments = decoded(given) if isinstance(given, str) else given  # some models encode it twice
    return Call(name=tool.name, arguments=_checked(arguments, tool))


def _checked(arguments: Any, tool: Tool) -> str:
    if not isinstance(arguments, dict):
        raise MalformedCall("its arguments are no object")
    if problem_of(arguments, tool.parameters) is not None:
        raise MalformedCall("its arguments don't fit the schema")
    return msgspec.json.encode(arguments).decode()
