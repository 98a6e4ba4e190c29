"""A plot as one SVG file: lines over a linear or logarithmic axis, without a library. Numbers are
rounded, so that the same report gives the same bytes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 200, 40, 52
_COLOURS = ("#1b6ca8", "#c8553d", "#3d8361", "#8a5a9e", "#b8860b", "#555b6e", "#d1495b", "#2e4057")
_POINTS = 200
"""Of a line: more can't be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`dashed` sets the second of two runs apart; lines of one `colour` belong together."""

    name: str
    colour: int = 0
    points: tuple[tuple[float, float], ...]
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """`marks` are vertical lines with a name, such as objectives."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[str, float], ...] = ()
    log_x: bool = False


def distribution(
    name: str, values: Sequence[float], *, colour: int = 0, dashed: bool = False
) -> Line:
    """The share of values up to x."""
    ordered = sorted(value for value in values if value > 0)
    count = len(ordered)
    places = sorted({min(round(part * (count - 1) / _POINTS), count - 1) for part in range(201)})
    points = tuple((ordered[place], (place + 1) / count) for place in places) if count else ()
    return Line(name=name, colour=colour, points=points, dashed=dashed)


def svg(chart: Chart) -> str:
    """Self-contained, readable on light and on dark pages."""
    xs = [x for line in chart.lines for x, _ in line.points] + [x for _, x in chart.marks]
    ys = [y for line in chart.lines for _, y in line.points]
    x_axis = _Axis.over(xs, log=chart.log_x, begin=_LEFT, end=_WIDTH - _RIGHT)
    y_axis = _Axis.over([0.0, *ys], log=False, begin=_HEIGHT - _BOTTOM, end=_TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_LEFT, 22, chart.title, size=15),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, chart.x_label, anchor="middle"),
        f'<text transform="translate(16 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle" fill="#222222">{escape(chart.y_label)}</text>',
        *_grid(x_axis, y_axis),
        *_marks(chart, x_axis),
    ]
    for number, line in enumerate(chart.lines):
        colour = _COLOURS[line.colour % len(_COLOURS)]
        dash = ' stroke-dasharray="6 4"' if line.dashed else ""
        path = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in line.points)
        top = _TOP + 8 + 20 * number
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>',
            f'<path d="M{_WIDTH - _RIGHT + 14} {top}h24" stroke="{colour}" '
            f'stroke-width="2"{dash}/>',
            _text(_WIDTH - _RIGHT + 44, top + 4, line.name),
        ]
    return "\n".join([*parts, "</svg>", ""])


def _grid(x_axis: "_Axis", y_axis: "_Axis") -> list[str]:
    parts = []
    for value in x_axis.ticks():
        x = f"{x_axis.place(value):.1f}"
        parts.append(f'<path d="M{x} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#dddddd"/>')
        parts.append(_text(x_axis.place(value), _HEIGHT - _BOTTOM + 18, f"{value:g}", "middle"))
    for value in y_axis.ticks():
        y = f"{y_axis.place(value):.1f}"
        parts.append(f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(_LEFT - 8, y_axis.place(value) + 4, f"{value:g}", "end"))
    return parts


def _marks(chart: Chart, x_axis: "_Axis") -> list[str]:
    parts = []
    for name, value in chart.marks:
        x = x_axis.place(value)
        parts.append(
            f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#222222" '
            'stroke-dasharray="2 3"/>'
        )
        parts.append(_text(x + 4, _HEIGHT - _BOTTOM - 6, name))
    return parts


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="#222222">{escape(text)}</text>'
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    log: bool
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool, begin: float, end: float) -> "_Axis":
        known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low, high = (min(known), max(known)) if known else (0.1, 1.0)
        if low == high:
            high = low * 2 if low > 0 else low + 1
        return cls(low, high, log, begin, end)

    def place(self, value: float) -> float:
        part = (self._scaled(value) - self._scaled(self.low)) / (
            self._scaled(self.high) - self._scaled(self.low)
        )
        return self.begin + min(max(part, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round values: 1, 2 and 5 times a power of ten."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            few = self.high / self.low > 1000
            steps = (1,) if few else (1, 2, 5)
            every = (step * 10.0**decade for decade in decades for step in steps)
            return [value for value in every if self.low <= value <= self.high]
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough)
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step)
        return [round(number * step, 10) for number in range(first, last + 1)]

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value
