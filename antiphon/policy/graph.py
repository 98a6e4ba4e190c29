"""An expression as a graph: each character it may read, and which may follow (Glushkov's
construction).

Whatever is counted is written out, so the size is bounded here: a graph that is small is followed
in few steps a character, whatever the text.
"""

from dataclasses import dataclass

from antiphon.policy.syntax import Between, Chars, Choice, Guard, Part, Repeat, Row, size

PARTS = 1_024
"""Characters that an expression may have when it is written out."""
EDGES = 8_192
"""Pairs of characters that may follow each other, of one expression."""


class GraphTooLarge(Exception):
    """Written out, the expression has more parts, or more ways through them, than is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One character of the expression, what may come after it, and under which conditions the
    match may end with it."""

    chars: Chars
    following: tuple[tuple[int, Guard], ...]
    ends: tuple[Guard, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    places: tuple[Place, ...]
    first: tuple[tuple[int, Guard], ...]
    may_be_empty: bool


_END = 0


class _Builder:
    """States that read a character, and states that only lead on."""

    def __init__(self) -> None:
        self.chars: dict[int, tuple[Chars, int]] = {}
        self.ways: dict[int, list[tuple[int, Guard]]] = {}
        self._states = 1
        self._budget = EDGES

    def _state(self) -> int:
        self._states += 1
        return self._states - 1

    def add(self, part: Part, then: int) -> int:
        """The state that reads the part and goes on to `then`."""
        match part:
            case Chars():
                state = self._state()
                self.chars[state] = (part, then)
                return state
            case Between(guard):
                return self._lead([(then, guard)])
            case Row(parts):
                for each in reversed(parts):
                    then = self.add(each, then)
                return then
            case Choice(parts):
                return self._lead([(self.add(each, then), Guard.NONE) for each in parts])
            case Repeat(inner, least, most):
                # One inside the other, (a(a(a)?)?)?: so that each copy leads to only one more.
                end = then
                for _ in range(most - least):
                    then = self._lead([(self.add(inner, then), Guard.NONE), (end, Guard.NONE)])
                for _ in range(least):
                    then = self.add(inner, then)
                return then

    def _lead(self, ways: list[tuple[int, Guard]]) -> int:
        state = self._state()
        self.ways[state] = ways
        return state

    def reached(self, state: int) -> tuple[list[tuple[int, Guard]], list[Guard]]:
        """The reading states that can come next, and the conditions under which it ends. Raises
        GraphTooLarge."""
        nexts: list[tuple[int, Guard]] = []
        ends: list[Guard] = []
        waiting = [(state, Guard.NONE)]
        seen = set(waiting)
        while waiting:
            self._budget -= 1
            if self._budget < 0:
                raise GraphTooLarge
            at, guard = waiting.pop()
            if at == _END:
                ends.append(guard)
            elif at in self.chars:
                nexts.append((at, guard))
            else:
                for target, condition in self.ways[at]:
                    way = (target, guard | condition)
                    if way not in seen:
                        seen.add(way)
                        waiting.append(way)
        return nexts, ends


def graph_of(part: Part) -> Graph:
    """Raises GraphTooLarge."""
    if size(part) > PARTS:
        raise GraphTooLarge
    builder = _Builder()
    first, empty = builder.reached(builder.add(part, _END))
    numbers = {state: number for number, state in enumerate(builder.chars)}
    places = []
    for chars, then in builder.chars.values():
        nexts, ends = builder.reached(then)
        places.append(
            Place(
                chars=chars,
                following=tuple((numbers[state], guard) for state, guard in nexts),
                # An end without a condition makes the others superfluous.
                ends=(Guard.NONE,) if Guard.NONE in ends else tuple(ends),
            )
        )
    return Graph(
        places=tuple(places),
        first=tuple((numbers[state], guard) for state, guard in first),
        may_be_empty=bool(empty),
    )
