"""A classifier that is asked a few texts at a time, so that between them its process can say that
it lives, and give up what takes longer than it may: others wait meanwhile."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from antiphon.policy.scan import Scorer

_AT_ONCE = 8
"""A fraction of a second on a slow machine, and nearly as quick as all at once."""


class OutOfTime(Exception):
    """The work in hand has taken all the time that it may."""


class PacedScorer:
    """A Scorer around another one. `between` is called after every few texts."""

    def __init__(self, scorer: Scorer, between: Callable[[], None]) -> None:
        self._scorer = scorer
        self._between = between
        self._until = float("inf")

    @property
    def name(self) -> str:
        return self._scorer.name

    @property
    def thresholds(self) -> Mapping[str, float]:
        return self._scorer.thresholds

    @property
    def harmless_below(self) -> float:
        return self._scorer.harmless_below

    @property
    def injection_threshold(self) -> float:
        return self._scorer.injection_threshold

    def begin(self, budget_s: float) -> None:
        """What follows may take so long together."""
        self._until = time.monotonic() + budget_s

    def scores(self, texts: Sequence[str], *, light: bool = False) -> Sequence[Mapping[str, float]]:
        """Raises OutOfTime."""
        return [
            scores for few in self._paced(texts) for scores in self._scorer.scores(few, light=light)
        ]

    def injection(self, texts: Sequence[str]) -> Sequence[float]:
        """Raises OutOfTime."""
        return [score for few in self._paced(texts) for score in self._scorer.injection(few)]

    def _paced(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        for start in range(0, len(texts), _AT_ONCE):
            if time.monotonic() > self._until:
                raise OutOfTime
            yield texts[start : start + _AT_ONCE]
            self._between()
