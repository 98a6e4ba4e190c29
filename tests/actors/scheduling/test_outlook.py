"""How things stand for one more request, as a value."""

import inspect
from dataclasses import fields, replace
from typing import Any

from antiphon.actors.scheduling.outlook import Outlook, Shared
from antiphon.workload import WorkloadClass

INSIDE = frozenset(inspect.signature(Outlook.with_inside).parameters) - {"self"}
"""What only whoever knows the inside of the engine can say."""


def all_different() -> Outlook:
    """No field as it is by itself, and no two numbers alike; a field that is new is here, too."""
    values: dict[str, Any] = {}
    for number, field in enumerate(fields(Outlook), 1000):
        match field.name:
            case "lane":
                values[field.name] = WorkloadClass.BACKGROUND
            case "shared":
                values[field.name] = Shared(lanes=frozenset(), slots=9, running=8, ahead=7)
            case "releases":
                values[field.name] = (0.25, 0.5)
            case name:
                values[name] = number
    return Outlook(**values)


def test_what_is_known_of_the_inside_of_the_engine_leaves_all_else_as_it_was():
    outside = all_different()
    inside: dict[str, Any] = dict.fromkeys(INSIDE, 1)

    assert outside.with_inside(**inside) == replace(outside, **inside)
    assert {field.name for field in fields(Outlook)} > INSIDE
