"""How long answers get, learned from those that ended: per lane, decaying. Pure arithmetic."""

from bisect import bisect_right
from itertools import accumulate, pairwise

from antiphon.workload import WorkloadClass

_LONGEST = 4096
"""Tokens up to which lengths are told apart; beyond, an answer ends at any time alike."""
_BOUNDS = (
    *(0, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512),
    *(768, 1024, 1536, 2048, 3072, _LONGEST),
)
_BUCKETS = len(_BOUNDS) - 1
_PRIOR_MEAN = 200.0
"""What a chat answer has where nothing is known."""
_TAIL_MEAN = 2000.0
_PRIOR_WEIGHT = 2.0
"""As if so many answers had been seen to be as the prior says."""
_MEMORY = 200.0
"""After so many answers, one counts e times less."""
_FIT_EVERY = 8
_RESCALE_AT = 1e9
_NEVER = 1e-9


class _Lane:
    """Survival by buckets, in the manner of Kaplan and Meier: an answer that was cut off at its
    bound says that it was at least as long, and nothing of where it would have ended."""

    def __init__(self) -> None:
        widths = [high - low for low, high in pairwise(_BOUNDS)]
        self._at_risk = [_PRIOR_WEIGHT] * _BUCKETS
        self._ended = [_PRIOR_WEIGHT * width / (_PRIOR_MEAN + width) for width in widths]
        self._weight = 1.0
        self._unfitted = 0
        self._fit()

    def observe(self, tokens: int, *, cut: bool) -> None:
        weight = self._weight = self._weight * (1.0 + 1.0 / _MEMORY)
        last = min(bisect_right(_BOUNDS, tokens) - 1, _BUCKETS - 1)
        for bucket in range(last):
            self._at_risk[bucket] += weight
        low, high = _BOUNDS[last], _BOUNDS[last + 1]
        if cut:
            self._at_risk[last] += weight * min((tokens - low) / (high - low), 1.0)
        else:
            self._at_risk[last] += weight
            self._ended[last] += weight
        self._unfitted += 1

    def fit(self) -> None:
        """Take in what has been observed, if that is enough to matter."""
        if self._unfitted >= _FIT_EVERY:
            self._fit()

    def _fit(self) -> None:
        self._unfitted = 0
        surviving: list[float] = []
        alive = 1.0
        for bucket in range(_BUCKETS):
            width = _BOUNDS[bucket + 1] - _BOUNDS[bucket]
            lost = alive * min(self._ended[bucket] / self._at_risk[bucket], 1.0) / width
            surviving.extend([max(alive - lost * token, _NEVER) for token in range(width)])
            alive -= lost * width
        surviving.append(max(alive, _NEVER))
        self.surviving = surviving
        """The part of answers that are longer than so many tokens."""
        self.area = [0.0, *accumulate(surviving)]
        """The sum of that over all shorter lengths."""
        if self._weight > _RESCALE_AT:
            self._at_risk = [value / self._weight for value in self._at_risk]
            self._ended = [value / self._weight for value in self._ended]
            self._weight = 1.0


class AnswerLengths:
    """Of each lane."""

    def __init__(self) -> None:
        self._lanes = {lane: _Lane() for lane in WorkloadClass}

    def observe(self, lane: WorkloadClass, tokens: int, max_tokens: int) -> None:
        """An answer ended after so many tokens, by itself unless that is all it was allowed."""
        if tokens >= 0:
            self._lanes[lane].observe(tokens, cut=tokens >= max_tokens)

    def mean(self, lane: WorkloadClass, max_tokens: int) -> float:
        """Tokens of an answer that is allowed so many."""
        of = self._lanes[lane]
        of.fit()
        return max(of.area[min(max(max_tokens, 1), _LONGEST)], 1.0)

    def ended_within(
        self, lane: WorkloadClass, gained: int, max_tokens: int, steps: tuple[int, ...]
    ) -> list[float]:
        """How likely an answer that has `gained` so many tokens is over after each of these many
        more."""
        of = self._lanes[lane]
        of.fit()
        surviving = of.surviving
        here = min(gained, _LONGEST)
        alive = surviving[here]
        left = max_tokens - gained
        last = _LONGEST - here
        return [
            1.0
            if step >= left
            else 1.0 - surviving[here + step] / alive
            if step < last
            else 1.0 - surviving[-1] / alive * _TAIL_MEAN / (_TAIL_MEAN + step - last)
            for step in steps
        ]
