"""System prompts as text: what they may be called, how long they may be, and how values take the
places of their variables. Pure, and knows nothing of where they are kept."""

import re
from collections.abc import Mapping

from antiphon.errors import InvalidRequest

LONGEST_TEXT = 100_000
"""Characters of a version."""
LONGEST_FILLED = 400_000
"""With values in their places: a short request must not grow into gigabytes, by a long value whose
variable stands in a prompt a thousand times."""
HIGHEST_VERSION = 999_999_999

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")
_MOST_NAMED = 10
_VARIABLES = "prompt.variables"


def is_prompt_name(text: str) -> bool:
    """Whether a prompt may be called that."""
    return _NAME.fullmatch(text) is not None


def version_number(text: str) -> int | None:
    """A version as the API writes it; None for what can't be one."""
    return int(text) if _VERSION.fullmatch(text) else None


def label_of(name: str, version: int) -> str:
    """A version as traces name it."""
    return f"{name}@{version}"


def variables_of(text: str) -> tuple[str, ...]:
    """The names in double braces, each once, in the order of the text. Other braces are text."""
    return tuple(dict.fromkeys(_VARIABLE.findall(text)))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each variable's value in its place, in one pass: a value that spells a variable
    stays as it is. Raises InvalidRequest, which names variables without a value and values without
    a variable."""
    places = _VARIABLE.findall(text)
    if missing := [name for name in dict.fromkeys(places) if name not in values]:
        raise InvalidRequest(
            f"Missing prompt variables: {_listed(missing)}.", _VARIABLES, "missing_prompt_variable"
        )
    if unknown := sorted(values.keys() - set(places)):
        raise InvalidRequest(
            f"Unknown prompt variables: {_listed(unknown)}.", _VARIABLES, "unknown_prompt_variable"
        )
    length = len(text) + sum(len(values[name]) for name in places)
    if length > LONGEST_FILLED:
        raise InvalidRequest(
            f"Invalid '{_VARIABLES}': with them the prompt would be about {length} characters "
            f"long, and at most {LONGEST_FILLED} are allowed.",
            _VARIABLES,
            "string_above_max_length",
        )
    return _VARIABLE.sub(lambda found: values[found[1]], text)


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"'{name[:64]}'" for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
