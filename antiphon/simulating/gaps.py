"""How long streams waited from one token to the next: a histogram for each lane, in steps of a
tenth, since a million requests have hundreds of millions of gaps."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

_PER_E = 20
"""Bins to a factor of e: a quantile is right within 2.5 %."""


class Gaps:
    def __init__(self, lanes: int) -> None:
        self._bins: list[dict[int, int]] = [{} for _ in range(lanes)]

    def add(self, seconds: float, streams: Sequence[int], times: int = 1) -> None:
        """So many streams of each lane gained a token after so many seconds, so many times."""
        if seconds <= 0:
            return
        place = math.floor(math.log(seconds) * _PER_E)
        for bins, count in zip(self._bins, streams, strict=True):
            if count:
                bins[place] = bins.get(place, 0) + count * times

    def merge(self, other: "Gaps") -> None:
        for mine, theirs in zip(self._bins, other._bins, strict=True):
            for place, count in theirs.items():
                mine[place] = mine.get(place, 0) + count

    def quantile(self, share: float, lanes: Iterable[int]) -> float:
        """By nearest rank, over the lanes together; NaN of nothing."""
        together: Counter[int] = Counter()
        for lane in lanes:
            together.update(self._bins[lane])
        rank = max(math.ceil(share * together.total()), 1)
        for place in sorted(together):
            rank -= together[place]
            if rank <= 0:
                return math.exp((place + 0.5) / _PER_E)
        return math.nan
