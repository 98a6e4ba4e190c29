"""The parts of an expression, as values: what one character may be, and how parts are put together.

Knows no text to be searched.
"""

import functools
import re
from dataclasses import dataclass
from enum import Flag, auto


class Guard(Flag):
    """What must be true between two characters."""

    NONE = 0
    BORDER = auto()
    """A character of a word on exactly one side."""
    INSIDE = auto()
    """On both sides, or on neither."""
    AFTER_NO_WORD = auto()
    """None before."""
    BEFORE_NO_WORD = auto()
    """None after."""


def holds_between(guard: Guard, before: bool, after: bool) -> bool:
    """Whether it is true between two characters, of which is told whether they belong to words."""
    if not guard:
        return True
    return not (
        (Guard.BORDER in guard and before == after)
        or (Guard.INSIDE in guard and before != after)
        or (Guard.AFTER_NO_WORD in guard and before)
        or (Guard.BEFORE_NO_WORD in guard and after)
    )


@functools.lru_cache(maxsize=4096)
def _one_character(source: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE if ignore_case else 0)


@dataclass(frozen=True, slots=True)
class Chars:
    """One character: `source` is an expression of the standard library for it, so that both mean
    the same; `literal` is the character where it is only one."""

    source: str
    literal: str | None = None
    ignore_case: bool = False

    def has(self, character: str) -> bool:
        if self.literal is not None and not self.ignore_case:
            return character == self.literal
        return _one_character(self.source, self.ignore_case).fullmatch(character) is not None


@dataclass(frozen=True, slots=True)
class Between:
    """No character, but what must be true where it stands."""

    guard: Guard


@dataclass(frozen=True, slots=True)
class Row:
    parts: "tuple[Part, ...]"


@dataclass(frozen=True, slots=True)
class Choice:
    parts: "tuple[Part, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    part: "Part"
    least: int
    most: int


Part = Chars | Between | Row | Choice | Repeat


def longest(part: Part) -> int:
    """Characters of its longest match."""
    match part:
        case Chars():
            return 1
        case Between():
            return 0
        case Row(parts):
            return sum(map(longest, parts))
        case Choice(parts):
            return max(map(longest, parts), default=0)
        case Repeat(inner, _, most):
            return most * longest(inner)


def shortest(part: Part) -> int:
    """And of its shortest."""
    match part:
        case Chars():
            return 1
        case Between():
            return 0
        case Row(parts):
            return sum(map(shortest, parts))
        case Choice(parts):
            return min(map(shortest, parts), default=0)
        case Repeat(inner, least, _):
            return least * shortest(inner)


def size(part: Part) -> int:
    """Parts that it has when everything that is counted is written out."""
    match part:
        case Chars() | Between():
            return 1
        case Row(parts) | Choice(parts):
            return max(1, sum(map(size, parts)))
        case Repeat(inner, _, most):
            return max(1, most) * size(inner)
