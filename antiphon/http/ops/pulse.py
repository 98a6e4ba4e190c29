"""How many tokens each model has made in each of the last seconds: what a page shows as a rate.

It is told the time, and asked at the time of looking: no task keeps it.
"""

from collections import deque

from antiphon.ids import ModelName

_SECONDS = 60


class Pulse:
    """One count a second and model, for the last minute."""

    def __init__(self) -> None:
        self._counts: dict[ModelName, deque[tuple[int, int]]] = {}

    def add(self, model: ModelName, tokens: int, now: float) -> None:
        """It comes for every token of every turn, so it does next to nothing."""
        counts = self._counts.get(model)
        if counts is None:
            counts = self._counts[model] = deque(maxlen=_SECONDS)
        second = int(now)
        if counts and counts[-1][0] == second:
            counts[-1] = (second, counts[-1][1] + tokens)
        else:
            counts.append((second, tokens))

    def last_minute(self, model: ModelName, now: float) -> tuple[int, ...]:
        """Of each whole second of the last minute, the oldest first: this one isn't over."""
        by_second = dict(self._counts.get(model, ()))
        this = int(now)
        return tuple(by_second.get(second, 0) for second in range(this - _SECONDS, this))

    def per_second(self, model: ModelName, now: float, *, seconds: int = 10) -> float:
        """Lately."""
        return sum(self.last_minute(model, now)[-seconds:]) / seconds
