"""Scores that decay: points by signal, halved in each half-life, of one subject. Pure.

The score doesn't depend on the order of signals of one moment, nor on how often it is looked at.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from antiphon.actors.abuse.signals import MOST, PROMPTS, TOLERATED, Mark, Signal

_MARKS = 8
"""The last ones are kept one by one, for whoever asks why."""
_CONTRIBUTORS = 16


def decayed(value: float, elapsed_s: float, half_life_s: float) -> float:
    return value * math.exp2(-max(elapsed_s, 0.0) / half_life_s)


@dataclass(slots=True)
class Tally:
    """One signal's points, as they were at `at`, and how often it came."""

    points: float = 0.0
    at: float = 0.0
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0
    weight: float = 0.0
    """What it added when it came last."""


@dataclass(slots=True)
class Score:
    """Of one subject. Times are the injected clock's, `*_ms` the wall clock's."""

    tallies: dict[Signal, Tally] = field(default_factory=dict)
    answered: Tally = field(default_factory=Tally)
    """Answered prompts."""
    marks: tuple[Mark, ...] = ()
    contributors: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of an address: how much of it each of its users has brought."""

    def add(self, mark: Mark, now: float, half_life_s: float) -> None:
        """Count one signal."""
        tally = self.tallies.setdefault(mark.signal, Tally(first_ms=mark.at_ms))
        points = decayed(tally.points, now - tally.at, half_life_s) + mark.points
        tally.points = min(points, MOST.get(mark.signal, points))
        tally.at = now
        tally.count += 1
        tally.last_ms = mark.at_ms
        tally.weight = mark.points
        self.marks = (*self.marks[1 - _MARKS :], mark)

    def add_from(
        self, contributor: str, mark: Mark, now: float, half_life_s: float, *, most: float
    ) -> None:
        """The same, of an address, where one user alone brings no more than `most`."""
        points, at = self.contributors.pop(contributor, (0.0, now))
        points = decayed(points, now - at, half_life_s)
        brought = max(0.0, min(mark.points, most - points))
        self.contributors[contributor] = (points + brought, now)
        while len(self.contributors) > _CONTRIBUTORS:
            del self.contributors[next(iter(self.contributors))]
        if brought:
            self.add(
                Mark(signal=mark.signal, points=brought, at_ms=mark.at_ms, detail=mark.detail),
                now,
                half_life_s,
            )

    def answer(self, now: float, half_life_s: float) -> None:
        """A prompt was answered."""
        self.answered.points = 1.0 + decayed(
            self.answered.points, now - self.answered.at, half_life_s
        )
        self.answered.at = now
        self.answered.count += 1

    def points(self, signal: Signal, now: float, half_life_s: float) -> float:
        tally = self.tallies.get(signal)
        return 0.0 if tally is None else decayed(tally.points, now - tally.at, half_life_s)

    def tolerated(self, now: float, half_life_s: float, tolerance: float) -> float:
        """How many points its answered prompts take away."""
        answered = self.answered
        return tolerance * decayed(answered.points, now - answered.at, half_life_s)

    def total(self, now: float, half_life_s: float, tolerance: float) -> float:
        """Everything that counts, less what is tolerated."""
        if not self.tallies:
            return 0.0
        each = {signal: self.points(signal, now, half_life_s) for signal in self.tallies}
        excusable = sum(points for signal, points in each.items() if signal in TOLERATED)
        excused = self.tolerated(now, half_life_s, tolerance)
        rest = sum(points for signal, points in each.items() if signal not in TOLERATED)
        return max(0.0, excusable - excused) + rest

    def of_prompts(self, now: float, half_life_s: float, tolerance: float) -> float:
        """What blocked prompts have to do with it."""
        points = sum(self.points(signal, now, half_life_s) for signal in PROMPTS)
        return max(0.0, points - self.tolerated(now, half_life_s, tolerance))

    def brought(self, now: float, half_life_s: float) -> Iterator[tuple[str, float]]:
        """What is left of what each of an address's users brought."""
        for user, (points, at) in self.contributors.items():
            yield user, decayed(points, now - at, half_life_s)

    def scale(self, factor: float) -> None:
        """All of it counts for less from now on."""
        for tally in (*self.tallies.values(), self.answered):
            tally.points *= factor
        self.contributors.clear()
