"""From bytes to a typed request body. Every refusal is an InvalidRequest whose `param` is the path
of the offending value as OpenAI writes it: `messages[0].content[1].type`."""

import json
import re
from typing import Any, TypeVar

import msgspec

from antiphon.errors import InvalidRequest

T = TypeVar("T", bound=msgspec.Struct)

_KINDS = {
    "str": "string",
    "int": "integer",
    "float": "decimal",
    "bool": "boolean",
    "array": "array",
    "object": "object",
    "null": "null",
}
_PLACE = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_EXPECTED = re.compile(r"^Expected `(?P<expected>[^`]*)`(?:, got `(?P<actual>[^`]*)`)?$")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BAD_CHARACTER = re.compile("[\x00\ud800-\udfff]")
_NAMED = re.compile(r"`(?P<field>[^`]*)`$")
_LONGEST_PATH = 200
_INVALID_VALUE = re.compile(r"^Invalid (?:enum )?value (?P<value>.*)$", re.DOTALL)


def decode_body(body: bytes, decoder: msgspec.json.Decoder[T], allowed: dict[str, str]) -> T:
    """Decode strictly. `allowed` says, by the last name of a path, which values a refused one
    could have had. Raises InvalidRequest."""
    try:
        value = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _of_validation_error(str(error), allowed) from None
    except msgspec.DecodeError as error:
        raise _of_malformed(body, error) from None
    except RecursionError:
        raise _too_deep() from None
    if rb"\u0000" in body:  # the only spelling of NUL that JSON has
        _refuse_characters(body)
    return value


def convert_value(value: Any, kind: type[T], inside: str, allowed: dict[str, str]) -> T:
    """Check a part of a decoded body that stands at the path `inside`. Raises InvalidRequest."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _of_validation_error(str(error), allowed, inside) from None


def _of_validation_error(text: str, allowed: dict[str, str], inside: str = "") -> InvalidRequest:
    place = _PLACE.search(text)
    path = place["path"].removeprefix(".") if place else ""
    path = _join(inside, path) if path else inside
    problem = text[: place.start()] if place else text
    if problem.startswith("Object contains unknown field"):
        param = _join(path, _field(problem))
        return InvalidRequest(f"Unrecognized request argument supplied: {param}", param)
    if problem.startswith("Object missing required field"):
        param = _join(path, _field(problem))
        return InvalidRequest(
            f"Missing required parameter: '{param}'.", param, "missing_required_parameter"
        )
    if not path:
        return InvalidRequest("The request body must be a JSON object.")
    if (wrong := _EXPECTED.match(problem)) is not None:
        got = f", but got {_article(_kind(wrong['actual']))} instead" if wrong["actual"] else ""
        message = f"Invalid type for '{path}': expected {_kinds(wrong['expected'])}{got}."
        return InvalidRequest(message, path, "invalid_type")
    if (wrong := _INVALID_VALUE.match(problem)) is not None:
        supported = allowed.get(path.rpartition(".")[2])
        hint = f" Supported values are: {supported}." if supported else ""
        message = f"Invalid value for '{path}': {wrong['value'][:100]}.{hint}"
        return InvalidRequest(message, path, "invalid_value")
    return InvalidRequest(f"Invalid value for '{path}': {problem}.", path, "invalid_value")


def _of_malformed(body: bytes, error: msgspec.DecodeError) -> InvalidRequest:
    # Half a pair at a string's end is "truncated" to the decoder, so its words don't tell.
    if _SURROGATE.search(body) is not None:
        _refuse_characters(body)
    return InvalidRequest(
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't "
        f"using your HTTP library correctly: the server expects a JSON payload. {error})"
    )


def _refuse_characters(body: bytes) -> None:
    """Name the string that holds NUL or half a surrogate pair; databases and tokenizers choke on
    both. Raises InvalidRequest if there is one."""
    try:
        found = _find_bad_string(json.loads(body), "")
    except ValueError:
        return
    except RecursionError:
        raise _too_deep() from None
    if found is not None:
        path, what = found[0][:_LONGEST_PATH], found[1]
        raise InvalidRequest(
            f"Invalid '{path}': the string contains {what}, which is not allowed.",
            path,
            "invalid_string",
        )


def _too_deep() -> InvalidRequest:
    return InvalidRequest("The JSON of the request body is nested too deeply.")


def _find_bad_string(value: Any, path: str) -> tuple[str, str] | None:
    match value:
        case str():
            if (bad := _BAD_CHARACTER.search(value)) is not None:
                return path, "a NUL character" if bad[0] == "\x00" else "an unpaired surrogate"
        case list():
            for index, item in enumerate(value):
                if (found := _find_bad_string(item, f"{path}[{index}]")) is not None:
                    return found
        case dict():
            for key, item in value.items():
                if (found := _find_bad_string(key, path)) is not None:
                    return found
                if (found := _find_bad_string(item, _join(path, key))) is not None:
                    return found
    return None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _field(problem: str) -> str:
    found = _NAMED.search(problem)
    return found["field"][:100] if found else ""


def _kinds(expected: str) -> str:
    names = [_article(_kind(name)) for name in expected.split(" | ") if name != "null"]
    return "one of " + " or ".join(names) if len(names) > 1 else names[0]


def _kind(name: str) -> str:
    return _KINDS.get(name, name)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aio" else f"a {noun}" if noun != "null" else noun
