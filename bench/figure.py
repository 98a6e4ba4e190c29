"""A figure: what was measured, what is required of it, and whether that holds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table. `required` is None for a figure that only explains the others."""

    name: str
    value: float | bool
    unit: str = ""
    required: str | None = None
    holds: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """JSON has no NaN: what could not be measured is null."""
        value = self.value if math.isfinite(self.value) else None
        return {
            "name": self.name,
            "value": value,
            "unit": self.unit,
            "required": self.required,
            "holds": self.holds,
        }


def at_least(name: str, value: float, bound: float, unit: str = "") -> Figure:
    """A figure that must not be below `bound`; NaN does not hold."""
    required = f"≥ {_short(bound)}{_after(unit)}"
    return Figure(name=name, value=value, unit=unit, required=required, holds=value >= bound)


def at_most(name: str, value: float, bound: float, unit: str = "") -> Figure:
    """A figure that must not be above `bound`; NaN does not hold."""
    required = f"≤ {_short(bound)}{_after(unit)}"
    return Figure(name=name, value=value, unit=unit, required=required, holds=value <= bound)


def must_be_true(name: str, value: bool) -> Figure:
    """A fact."""
    return Figure(name=name, value=value, required="yes", holds=value)


def explains(name: str, value: float, unit: str = "") -> Figure:
    """A figure without a bound."""
    return Figure(name=name, value=value, unit=unit)


def quantile(values: Sequence[float], share: float) -> float:
    """By nearest rank; NaN of nothing."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else math.nan


def table(figures: Sequence[Figure]) -> str:
    """The figures for people, one a line."""
    rows = [("figure", "measured", "required", "holds")]
    for figure in figures:
        holds = {None: "", True: "yes", False: "NO"}[figure.holds]
        rows.append((figure.name, _shown(figure), figure.required or "", holds))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {required:<{widths[2]}}  {holds}".rstrip()
        for name, value, required, holds in rows
    ]
    return "\n".join([lines[0], "-" * len(max(lines, key=len)), *lines[1:]])


def _shown(figure: Figure) -> str:
    if isinstance(figure.value, bool):
        return "yes" if figure.value else "no"
    return f"{_short(figure.value)}{_after(figure.unit)}"


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _after(unit: str) -> str:
    return f" {unit}" if unit else ""
