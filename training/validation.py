"""Cross-validation: every public row is scored by a model that saw neither it nor its group.

HateCheck's rows come from templates, so all rows of a function stay together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.linear import Floats
from antiphon.classifier.model import (
    HEADS,
    Parts,
    Vectors,
    blended,
    kernel_logits,
    led,
    light_logits,
)
from antiphon.classifier.text import cleaned
from training.fitting import Features, fit_ngrams, fit_platt, taken
from training.kernels import fit_kernel
from training.rows import Row
from training.words import word_head

FOLDS = 5
BLEND = 0.05
WORD_BLEND = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """What share of harmless texts may be flagged at the default threshold."""

    xstest: float
    turns: float


FULL = Alarms(xstest=0.05, turns=0.01)
LIGHT = Alarms(xstest=0.05, turns=0.003)
"""It is asked again and again while an answer grows."""


@dataclass(frozen=True, slots=True)
class Held:
    """Logits of the public rows by models that didn't see them."""

    kernel: Floats
    ngrams: Floats
    words: Floats
    """One for each row: this head was learned from none of them."""

    def full(self) -> Floats:
        """The full model's."""
        return blended(self.kernel, self.ngrams, self.words, blend=BLEND, word_blend=WORD_BLEND)


def folds(rows: Sequence[Row], *, seed: int = 0) -> NDArray[np.int64]:
    """The fold of each row, -1 for own ones. Groups of a set are dealt out in turn, shuffled."""
    random = Random(seed)
    place: dict[str, int] = {}
    for name in sorted({row.set for row in rows}):
        groups = sorted({row.group for row in rows if row.set == name and row.group})
        random.shuffle(groups)
        place.update((group, at % FOLDS) for at, group in enumerate(groups))
    return np.array([place[row.group] if row.group else -1 for row in rows])


def held_out(
    rows: Sequence[Row],
    found: Features,
    fold: NDArray[np.int64],
    embedder: Vectors,
    *,
    measured: int,
) -> Held:
    """The logits of the first `measured` rows, each by a model that was not shown its fold, and
    looked at as the classifier does."""
    shape = (measured, len(HEADS))
    held = Held(
        kernel=np.full(shape, np.nan, np.float32),
        ngrams=np.full(shape, np.nan, np.float32),
        words=word_head().logits([cleaned(row.text) for row in rows[:measured]]),
    )
    labels, weights = labels_of(rows), weights_of(rows)
    for each in range(FOLDS):
        learn = np.flatnonzero(fold != each)
        ngrams = fit_ngrams(taken(found.bags, learn), labels[learn], weights[learn])
        seen = learn[learn < len(found.vectors)]
        kernel = fit_kernel(found.vectors[seen], labels[seen], weights[seen])
        for at in np.flatnonzero(fold[:measured] == each).tolist():
            clean = cleaned(rows[at].text)
            held.kernel[at] = kernel_logits(clean, kernel, embedder, ngrams)
            held.ngrams[at] = light_logits([clean], ngrams)[0]
    return held


def labels_of(rows: Sequence[Row]) -> Floats:
    """Rows × heads."""
    return np.stack([row.labels for row in rows])


def weights_of(rows: Sequence[Row]) -> Floats:
    """How much each row counts."""
    return np.array([row.weight for row in rows], dtype=np.float32)


def calibrations(rows: Sequence[Row], held: Held) -> tuple[Floats, Floats]:
    """Slope and intercept of each head for the full and the light model, from held-out logits."""
    full = calibration(rows, held.full(), FULL)
    return full, calibration(rows, held.ngrams, LIGHT)


def calibration(rows: Sequence[Row], logits: Floats, alarms: Alarms) -> Floats:
    """By Platt's method; then the first head's intercept puts 0.5 where no more false alarms are
    than allowed."""
    labels, weights = labels_of(rows), weights_of(rows)
    logits = led(logits)
    found = np.empty((len(HEADS), 2), dtype=np.float32)
    for head in range(len(HEADS)):
        known = ~np.isnan(labels[:, head])
        found[head] = fit_platt(logits[known, head], labels[known, head], weights[known])
    limits = []
    for name, share in (("xstest", alarms.xstest), ("turns", alarms.turns)):
        safe = np.array([row.set == name and row.labels[0] == 0 for row in rows])
        limits.append(float(np.quantile(logits[safe, 0], 1 - share)))
    found[0, 1] = -found[0, 0] * max(limits)
    return found


def fit_all(rows: Sequence[Row], found: Features, full: Floats, light: Floats) -> Parts:
    """What ships: fitted on every row."""
    labels, weights = labels_of(rows), weights_of(rows)
    seen = len(found.vectors)
    return Parts(
        ngrams=fit_ngrams(found.bags, labels, weights),
        kernel=fit_kernel(found.vectors, labels[:seen], weights[:seen]),
        blend=BLEND,
        words=word_head(),
        word_blend=WORD_BLEND,
        full=full,
        light=light,
    )
