"""Whether a call's arguments fit the function's JSON schema. Pure, and bounded: the schema is a
stranger's, and some take longer than anybody would wait."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
from jsonschema import Draft202012Validator
from jsonschema.validators import create, validator_for
from referencing.exceptions import Unresolvable

from antiphon.tools import Parameters

_STEPS = 2_000
"""Keywords that are looked at, some 15 ms. What takes more is taken to fit: the client's own check
has the last word."""
_UNCHECKED = {
    *("pattern", "patternProperties", "format"),
    *("uniqueItems", "unevaluatedItems", "unevaluatedProperties"),
}
"""Python's expressions can take forever, and comparing all with all nearly does."""

_Errors = Iterator[jsonschema.ValidationError]


class _TooMuch(Exception):
    """The steps are used up."""


def problem_of(arguments: Any, schema: Parameters) -> str | None:
    """What doesn't fit, in a few words; None when all does."""
    kind = validator_for(schema, default=Draft202012Validator)
    steps = iter(range(_STEPS))
    bounded = create(
        kind.META_SCHEMA,
        {
            name: _counted(keyword, steps)
            for name, keyword in kind.VALIDATORS.items()
            if name not in _UNCHECKED
        },
        type_checker=kind.TYPE_CHECKER,
    )
    try:
        error = next(bounded(_of_one_kind(schema)).iter_errors(arguments), None)
    except (_TooMuch, RecursionError, Unresolvable):
        return None
    return None if error is None else error.message[:200]


def _counted(keyword: Any, steps: Iterator[int]) -> Any:
    def check(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> _Errors:
        if next(steps, None) is None:
            raise _TooMuch
        if "patternProperties" in schema and value is schema.get("additionalProperties"):
            return  # which of them are additional only expressions tell
        yield from keyword(validator, value, instance, schema) or ()

    return check


def _of_one_kind(schema: Any) -> Any:
    """Without what would have another validator, an unbounded one, look at a part of it."""
    match schema:
        case dict():
            return {key: _of_one_kind(value) for key, value in schema.items() if key != "$schema"}
        case list():
            return [_of_one_kind(each) for each in schema]
        case _:
            return schema
