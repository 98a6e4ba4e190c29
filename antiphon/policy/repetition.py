"""Finds the same piece of text over and over, as a model writes it that can't stop.

Holds nothing back: what is wrong with a repetition is that it goes on.
"""

from collections.abc import Sequence
from dataclasses import replace

from antiphon.verdicts import Finding


def least(times: int, piece: int, longest: int) -> int:
    """Characters that a repeated piece must fill. Short ones need more than `times`, or every ruler
    and every row of dots would be one."""
    return max(times * piece, 4 * longest)


class Repetition:
    """A tracker. Pieces have at most `longest` characters.

    A repetition fills at least four times as much. So looking once in two of these lengths misses
    none: there, what was written last is sought just before. The distance is the piece's length,
    and from then on each character is compared with the one so far before it.
    """

    def __init__(self, times: int, longest: int, finding: Finding) -> None:
        self._times = times
        self._longest = longest
        self._finding = finding
        self._fed = 0
        self._tail = ""
        """What was fed last: enough to find where a repetition began."""
        self._piece = 0
        """The length of what is being repeated; 0 where nothing is."""
        self._start = 0

    @property
    def held_from(self) -> int:
        return self._fed

    def feed(self, text: str) -> Sequence[Finding]:
        found = []
        span = 2 * self._longest
        while text:
            # Up to the next place to look, which is the same however the text was cut.
            room = span - self._fed % span
            part, text = text[:room], text[room:]
            found += self._compare(part)
            self._tail = (self._tail + part)[-3 * span :]
            self._fed += len(part)
            if self._fed % span == 0 and not self._piece:
                self._look()
        return found

    def finish(self) -> Sequence[Finding]:
        return []

    def _compare(self, part: str) -> list[Finding]:
        """Go on with the repetition that is under way."""
        if not self._piece:
            return []
        needed = self._start + least(self._times, self._piece, self._longest)
        expected = self._tail[len(self._tail) - self._piece :]
        expected = (expected * (len(part) // self._piece + 1))[: len(part)]
        same = len(part) if part == expected else _common(part, expected)
        reached = self._fed + same
        found = []
        if self._fed < needed <= reached:
            found.append(replace(self._finding, start=self._start, end=needed))
        if same < len(part):
            self._piece = 0
        return found

    def _look(self) -> None:
        tail, longest = self._tail, self._longest
        size = len(tail)
        at = tail.rfind(tail[size - longest :], size - 2 * longest, size - 1)
        if at < 0:
            return
        self._piece = size - longest - at
        while at and tail[at - 1] == tail[at - 1 + self._piece]:
            at -= 1
        self._start = self._fed - size + at


def _common(left: str, right: str) -> int:
    """How many characters are the same from the beginning on."""
    return next(
        (at for at, (one, other) in enumerate(zip(left, right, strict=True)) if one != other),
        len(left),
    )
