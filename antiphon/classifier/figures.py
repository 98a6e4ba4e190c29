"""The figures of a classifier: from scores and truths to AUROC, rates, curves and intervals.

Pure: knows no model, no file and no text. Whatever is random is seeded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Truths = NDArray[np.bool_]

RESAMPLES = 1000
_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f}–{self.high:.3f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one threshold does: a text is flagged when its score is at least the threshold."""

    threshold: float
    flagged: float
    """Share of the texts that are to be flagged and are: the recall."""
    false_alarms: float
    """Share of the harmless texts that are flagged."""
    precision: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All figures of one set of texts. Those for which the set has no rows are None."""

    rows: int
    positives: int
    auroc: Interval | None
    flagged: Interval | None
    false_alarms: Interval | None
    at: Point
    """The default threshold."""
    curve: tuple[Point, ...]


def auroc(scores: Scores, truths: Truths) -> float:
    """The chance that a text to be flagged scores higher than a harmless one; a tie is half.

    Raises ValueError where one of the two kinds is missing.
    """
    positives = int(truths.sum())
    negatives = len(truths) - positives
    if not positives or not negatives:
        raise ValueError("needs rows of both kinds")
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # tied scores share the mean of their ranks
    ranks = float(middle[place][truths].sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


def auroc_interval(
    scores: Scores, truths: Truths, *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """By the bootstrap, rows of either kind drawn for themselves. Raises ValueError as `auroc`."""
    value = auroc(scores, truths)
    positives, negatives = scores[truths], scores[~truths]
    labels = np.repeat([True, False], [len(positives), len(negatives)])
    random = np.random.default_rng(seed)
    drawn = [
        auroc(
            np.concatenate(
                [
                    random.choice(positives, len(positives)),
                    random.choice(negatives, len(negatives)),
                ]
            ),
            labels,
        )
        for _ in range(resamples)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(value=value, low=float(low), high=float(high))


def rate(hits: int, of: int) -> Interval:
    """A share with Wilson's interval, which holds for few rows too. Raises ValueError for none."""
    if not of:
        raise ValueError("no rows")
    share = hits / of
    scale = 1 + _Z**2 / of
    middle = (share + _Z**2 / (2 * of)) / scale
    reach = _Z * sqrt(share * (1 - share) / of + _Z**2 / (4 * of**2)) / scale
    return Interval(value=share, low=max(0.0, middle - reach), high=min(1.0, middle + reach))


def at_threshold(scores: Scores, truths: Truths, threshold: float) -> Point:
    """What the threshold does to these rows; a share of nothing is 0."""
    hit = scores >= threshold
    right, wrong = int((hit & truths).sum()), int((hit & ~truths).sum())
    positives = int(truths.sum())
    return Point(
        threshold=threshold,
        flagged=right / positives if positives else 0.0,
        false_alarms=wrong / (len(truths) - positives) if len(truths) > positives else 0.0,
        precision=right / (right + wrong) if right + wrong else 0.0,
        f1=2 * right / (right + wrong + positives) if right + wrong + positives else 0.0,
    )


def figures(
    scores: Sequence[float] | Scores,
    truths: Sequence[bool] | Truths,
    *,
    threshold: float,
    seed: int = 0,
    steps: int = 20,
) -> Figures:
    """Every figure of these rows. Raises ValueError for none, or not one truth for each score."""
    found = np.asarray(scores, dtype=np.float64)
    true = np.asarray(truths, dtype=np.bool_)
    if not len(found) or found.shape != true.shape:
        raise ValueError("needs rows, and one truth for each score")
    point = at_threshold(found, true, threshold)
    positives = int(true.sum())
    negatives = len(true) - positives
    hit = found >= threshold
    return Figures(
        rows=len(true),
        positives=positives,
        auroc=auroc_interval(found, true, seed=seed) if positives and negatives else None,
        flagged=rate(int((hit & true).sum()), positives) if positives else None,
        false_alarms=rate(int((hit & ~true).sum()), negatives) if negatives else None,
        at=point,
        curve=tuple(at_threshold(found, true, step / steps) for step in range(1, steps)),
    )
