"""`tool_choice`, in the words of either API: what a model may and must do with its functions.
Pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from antiphon.errors import InvalidRequest
from antiphon.http.openai.bounds import empty_array
from antiphon.http.openai.decode import convert_value
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.schema import Strict
from antiphon.tools import Tool, Toolbox

_MODES = {"mode": "'auto' and 'required'"}
_SHOWN_NAME = 64


class _FunctionName(Strict, frozen=True):
    name: str


class _ChatNamed(Strict, frozen=True):
    type: str
    function: _FunctionName


class _Named(Strict, frozen=True):
    type: str
    name: str


class _Allowed(Strict, frozen=True):
    mode: Literal["auto", "required"]
    tools: list[dict[str, Any]]


class _ChatAllowed(Strict, frozen=True):
    type: str
    allowed_tools: _Allowed


class _FlatAllowed(_Allowed, frozen=True):
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which functions may be called, None for all, and whether one must be; and whether files may
    be searched, where that is offered."""

    required: bool = False
    names: tuple[str, ...] | None = None
    searches: bool = True


def chat_choice(choice: Any) -> Choice | None:
    """As chat completions have it; None for none. Raises InvalidRequest."""
    return _read(choice, _chat_object)


def choice_of(choice: Any, *, has_search: bool = False) -> Choice | None:
    """As responses have it; None for none. A search in files is always made where it may be, so
    that it is required changes nothing, and is no reason to call a function. Raises
    InvalidRequest."""
    found = _read(choice, _object)
    if isinstance(choice, dict) and _names_search(choice) and not has_search:
        raise _invalid("no 'file_search' was specified in the 'tools' parameter")
    if found is not None and found.names == ():
        return replace(found, required=False)
    return found


def toolbox_of(
    tools: Sequence[Tool], choice: Choice | None, parallel: bool | None
) -> Toolbox | None:
    """None where nothing may be called. Raises InvalidRequest for a choice of what isn't there."""
    if choice is None:
        return None
    names = choice.names
    if not tools and (choice.required or names):
        raise _invalid("'tool_choice' is only allowed when 'tools' are specified")
    for name in names or ():
        if all(tool.name != name for tool in tools):
            raise _invalid(
                f"no function named '{name[:_SHOWN_NAME]}' was specified in the 'tools' parameter"
            )
    if not tools:
        return None
    return Toolbox(
        tools=tuple(tools),
        allowed=None if names is None else frozenset(names),
        required=choice.required,
        parallel=parallel,
    )


def check_functions(
    tools: Sequence[dict[str, Any]],
    path: str,
    besides: Collection[int] = (),
    *,
    may_search: bool,
) -> None:
    """Raises InvalidRequest for a tool that is none, but for those at the places `besides`."""
    supported = "'function' and 'file_search'" if may_search else "'function'"
    for index, value in enumerate(tools):
        kind = value.get("type")
        if index in besides:
            continue
        if isinstance(kind, str) and kind != "function":
            raise unsupported_value(f"{path}[{index}].type", kind, supported)


def _read(choice: Any, read: Callable[[dict[str, Any]], Choice]) -> Choice | None:
    match choice:
        case "none":
            return None
        case None | "auto":
            return Choice()
        case "required":
            return Choice(required=True)
        case {"type": str()}:
            return read(choice)
        case _:
            raise InvalidRequest(
                "Invalid value for 'tool_choice'. Supported values are: 'none', 'auto', "
                "'required', a function, and allowed tools.",
                "tool_choice",
                "invalid_value",
            )


def _chat_object(choice: dict[str, Any]) -> Choice:
    match choice["type"]:
        case "function":
            named = convert_value(choice, _ChatNamed, "tool_choice", {})
            return Choice(required=True, names=(named.function.name,))
        case "allowed_tools":
            allowed = convert_value(choice, _ChatAllowed, "tool_choice", _MODES).allowed_tools
            path = "tool_choice.allowed_tools.tools"
            return _allowed(
                allowed,
                path,
                lambda value, at: convert_value(value, _ChatNamed, at, {}).function.name,
            )
        case kind:
            raise unsupported_value("tool_choice.type", kind, "'function' and 'allowed_tools'")


def _object(choice: dict[str, Any]) -> Choice:
    match choice["type"]:
        case "function":
            named = convert_value(choice, _Named, "tool_choice", {})
            return Choice(required=True, names=(named.name,))
        case "file_search":
            return Choice()
        case "allowed_tools":
            allowed = convert_value(choice, _FlatAllowed, "tool_choice", _MODES)
            return _allowed(
                allowed,
                "tool_choice.tools",
                lambda value, at: convert_value(value, _Named, at, {}).name,
                may_search=True,
            )
        case kind:
            raise unsupported_value(
                "tool_choice.type", kind, "'function', 'file_search', and 'allowed_tools'"
            )


def _names_search(choice: dict[str, Any]) -> bool:
    named = choice.get("tools") if choice.get("type") == "allowed_tools" else [choice]
    return any(each.get("type") == "file_search" for each in named or ())


def _allowed(
    allowed: _Allowed,
    path: str,
    name_of: Callable[[dict[str, Any], str], str],
    *,
    may_search: bool = False,
) -> Choice:
    if not allowed.tools:
        raise empty_array(path)
    searches = [
        at
        for at, value in enumerate(allowed.tools)
        if may_search and value.get("type") == "file_search"
    ]
    check_functions(allowed.tools, path, searches, may_search=may_search)
    names = tuple(
        name_of(value, f"{path}[{at}]")
        for at, value in enumerate(allowed.tools)
        if at not in searches
    )
    return Choice(required=allowed.mode == "required", names=names, searches=bool(searches))


def _invalid(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid value for 'tool_choice': {problem}.", "tool_choice", "invalid_value"
    )
