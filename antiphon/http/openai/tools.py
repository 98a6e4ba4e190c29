"""The functions that a request offers, read and checked: from what both APIs write, each in its own
way, to the toolbox that a turn has. Pure; what depends on an engine is checked later."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.http.openai.bounds import check_length
from antiphon.http.openai.decode import convert_value
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.schema import FunctionTool
from antiphon.http.openai.schema import ChatFunctionTool
from antiphon.http.openai.schemas import schema_problem
from antiphon.http.openai.tool_choice import chat_choice, check_functions, choice_of, toolbox_of
from antiphon.http.openai.vector_stores.tool import FILE_SEARCH, parse_file_search
from antiphon.sources import FileSearch
from antiphon.tools import Parameters, Tool, Toolbox

MAX_TOOLS = 128
MAX_NAME = 64
MAX_CALL_ID = 256
_MAX_DESCRIPTION = 16_384
_MAX_BYTES = 131_072
"""Of all of them together: they are read by every turn, and their schemas are compiled as one."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTools:
    """All that there are, and what may be done with them: nothing, where `toolbox` is None."""

    tools: tuple[Tool, ...] = ()
    toolbox: Toolbox | None = None
    is_chat: bool = False
    places: tuple[int, ...] = ()
    """Where the functions stand in the request, if anything else stands between them."""
    search: FileSearch | None = None
    """What is searched before the model speaks."""


def parse_chat_tools(
    tools: list[dict[str, Any]] | None, choice: Any, parallel: bool | None
) -> GivenTools:
    """Raises InvalidRequest."""
    given = _tools(tools, _chat_tool)
    return GivenTools(
        tools=given, toolbox=toolbox_of(given, chat_choice(choice), parallel), is_chat=True
    )


def parse_tools(
    tools: list[dict[str, Any]] | None, choice: Any, parallel: bool | None
) -> GivenTools:
    """Raises InvalidRequest."""
    searches = [place for place, each in enumerate(tools or ()) if each.get("type") == FILE_SEARCH]
    if len(searches) > 1:
        raise InvalidRequest(
            "Invalid 'tools': there may be one 'file_search'; it takes several vector stores.",
            f"tools[{searches[1]}]",
            "invalid_value",
        )
    search = None
    for place in searches:
        search = parse_file_search((tools or [])[place], f"tools[{place}]")
    given = _tools(tools, _tool, besides=frozenset(searches), may_search=True)
    chosen = choice_of(choice, has_search=search is not None)
    if search is not None and not given and chosen is not None:
        chosen = replace(chosen, required=False)  # the search is what has to be made
    return GivenTools(
        tools=given,
        places=tuple(place for place in range(len(tools or ())) if place not in searches),
        toolbox=toolbox_of(given, chosen, parallel),
        search=search if chosen is not None and chosen.searches else None,
    )


def check_tools(given: GivenTools) -> None:
    """Raises InvalidRequest unless the schemas are some, by their own metaschema. Takes time: leave
    the event loop for it when there are tools."""
    places = given.places or range(len(given.tools))
    for index, tool in zip(places, given.tools, strict=True):
        place = f"tools[{index}]{'.function' if given.is_chat else ''}.parameters"
        problem = schema_problem(tool.parameters)
        if problem is None and tool.parameters.get("type") != "object":
            kind = str(tool.parameters.get("type"))[:40]
            problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'"
        if problem is not None:
            raise InvalidRequest(
                f"Invalid schema for function '{tool.name}': {problem}.",
                place,
                "invalid_function_parameters",
            )


def check_name(name: str, param: str) -> None:
    """Raises InvalidRequest for what can't be a function's."""
    check_length(param, name, MAX_NAME)
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the "
            "pattern '^[a-zA-Z0-9_-]+$'.",
            param,
            "invalid_value",
        )


def _tools(
    tools: list[dict[str, Any]] | None,
    read: Callable[[dict[str, Any], str], Tool],
    besides: frozenset[int] = frozenset(),
    *,
    may_search: bool = False,
) -> tuple[Tool, ...]:
    """Without those at the places `besides`, which are no functions."""
    given = tools or ()
    if len(given) > MAX_TOOLS:
        raise InvalidRequest(
            "Invalid 'tools': array too long. Expected an array with maximum length "
            f"{MAX_TOOLS}, but got an array with length {len(given)} instead.",
            "tools",
            "array_above_max_length",
        )
    check_functions(given, "tools", besides, may_search=may_search)
    found: dict[str, Tool] = {}
    for index, value in enumerate(given):
        if index in besides:
            continue
        tool = read(value, f"tools[{index}]")
        if tool.name in found:
            raise InvalidRequest(
                f"Invalid 'tools': there are two functions of the name '{tool.name}'.",
                f"tools[{index}]",
                "invalid_value",
            )
        found[tool.name] = tool
    if sum(len(tool.text.encode()) for tool in found.values()) > _MAX_BYTES:
        raise InvalidRequest(
            f"Invalid 'tools': together they are larger than {_MAX_BYTES} bytes.",
            "tools",
            "invalid_value",
        )
    return tuple(found.values())


def _chat_tool(value: dict[str, Any], path: str) -> Tool:
    function = convert_value(value, ChatFunctionTool, path, {}).function
    place = f"{path}.function"
    return _checked(function.name, function.description, function.parameters, place)


def _tool(value: dict[str, Any], path: str) -> Tool:
    given = convert_value(value, FunctionTool, path, {})
    if given.allowed_callers not in (None, ["direct"]):
        raise unsupported_value(f"{path}.allowed_callers", "the given value", "['direct']")
    for name, asked in (
        ("defer_loading", given.defer_loading),
        ("output_schema", given.output_schema),
        ("async", given.is_async),
    ):
        if asked:
            raise InvalidRequest(
                f"Unsupported parameter: '{path}.{name}' is not supported by this server.",
                f"{path}.{name}",
                "unsupported_parameter",
            )
    return _checked(given.name, given.description, given.parameters, path)


def _checked(name: str, description: str | None, parameters: Parameters | None, path: str) -> Tool:
    check_name(name, f"{path}.name")
    check_length(f"{path}.description", description, _MAX_DESCRIPTION)
    schema = parameters or {"type": "object", "properties": {}}
    if "type" not in schema:
        schema = {"type": "object", **schema}
    return Tool(name=name, description=description or "", parameters=schema)
