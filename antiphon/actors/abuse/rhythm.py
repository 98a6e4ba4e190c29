"""The rhythm of one user's requests: whether a person can be at the other end. Pure.

It looks at the time between arrivals alone, of some twenty requests without a break.
"""

import math
from dataclasses import dataclass

_MEMORY = 16
"""Requests, over which the mean goes; older ones fade."""
_ENOUGH = 20
"""So many gaps, before anything is said."""
_BREAK_S = 600.0
"""Longer than that is no rhythm: it begins anew."""
_REGULAR = 0.1
"""Deviation over mean. What people send deviates by about as much as its mean; a program with a
pause in its loop by a few percent."""
_FASTEST_S = 2.0
"""Nobody reads an answer and writes the next prompt within that, twenty times in a row."""


@dataclass(slots=True)
class Rhythm:
    last: float | None = None
    gaps: int = 0
    mean: float = 0.0
    variance: float = 0.0

    def beat(self, now: float) -> str | None:
        """A request has come; `regular` or `fast` where it comes as a script's would."""
        last, self.last = self.last, now
        if last is None:
            return None
        gap = now - last
        if gap > _BREAK_S:
            self.gaps = 0
            return None
        self.gaps += 1
        weight = 1.0 / min(self.gaps, _MEMORY)  # the first one starts both anew
        change = gap - self.mean
        self.mean += weight * change
        self.variance = (1.0 - weight) * (self.variance + weight * change * change)
        return self.reading()

    def reading(self) -> str | None:
        if self.gaps < _ENOUGH:
            return None
        if self.mean < _FASTEST_S:
            return "fast"
        return "regular" if math.sqrt(self.variance) < _REGULAR * self.mean else None
