"""Fits the heads of both models on rows whose features are made once.

Deterministic: convex losses, L-BFGS in a fixed order, one thread of linear algebra.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.linear import Floats, NgramHeads, lengths
from antiphon.classifier.model import PAGE, Vectors
from antiphon.classifier.ngrams import BUCKETS, Bags, bags
from antiphon.classifier.text import cleaned, spread
from training.lbfgs import Vector, minimise

NGRAM_L2 = 1e-5
_RAREST = 255


@dataclass(frozen=True, slots=True)
class Features:
    """What both models see of the texts; there may be more bags than vectors."""

    vectors: Floats
    bags: Bags


def features(texts: Sequence[str], embedder: Vectors, *, seen: int) -> Features:
    """Of a longer text only what fits on its first page; the embedder sees the first `seen`."""
    clean = [cleaned(text) for text in texts]
    vectors = np.stack([embedder.vector(embedder.windows(text)[:PAGE]) for text in clean[:seen]])
    return Features(vectors, bags([spread(text) for text in clean]))


def taken(found: Bags, chosen: NDArray[np.int64]) -> Bags:
    """The bags of some texts."""
    counts = np.diff(found.starts)[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.repeat(found.starts[chosen] - starts[:-1], counts)
    return Bags(found.buckets[np.arange(starts[-1]) + offsets], starts)


def rarities(found: Bags) -> NDArray[np.uint8]:
    """How much an n-gram tells by being rare, 1 to 255; 0 where fewer than two texts have it."""
    texts = len(found.starts) - 1
    owners = np.repeat(np.arange(texts), np.diff(found.starts))
    pairs = np.unique(owners * BUCKETS + found.buckets)
    having = np.bincount(pairs % BUCKETS, minlength=BUCKETS)
    told = np.log((1 + texts) / (1 + having)) + 1
    scaled = np.rint(_RAREST * told / (np.log((1 + texts) / 3) + 1))
    scaled[having < 2] = 0
    found_rarity: NDArray[np.uint8] = scaled.astype(np.uint8)
    return found_rarity


def fit_ngrams(
    found: Bags, labels: Floats, weights: Floats, *, l2: float = NGRAM_L2, iterations: int = 30
) -> NgramHeads:
    """Logistic heads over n-grams, one after another, then rounded to 8 bit."""
    rarity = rarities(found)
    texts = len(found.starts) - 1
    owners = np.repeat(np.arange(texts), np.diff(found.starts))
    pairs, counts = np.unique(owners * BUCKETS + found.buckets, return_counts=True)
    row, bucket = pairs // BUCKETS, pairs % BUCKETS
    seen = rarity[bucket] > 0
    row, bucket, counts = row[seen], bucket[seen], counts[seen]
    columns, column = np.unique(bucket, return_inverse=True)
    size = lengths(found, rarity)
    value = (counts * rarity[bucket].astype(np.float64)) / size[row]
    filled, starts = np.unique(row, return_index=True)
    truth, weight = _known(labels, weights)
    table = np.zeros((len(columns) + 1, labels.shape[1]))
    for head in range(labels.shape[1]):

        def loss(flat: Vector, head: int = head) -> tuple[float, Vector]:
            logits = np.full(texts, flat[-1])
            logits[filled] += np.add.reduceat(value * flat[column], starts)
            each = slice(head, head + 1)
            cost, slope = _logistic(logits[:, None], truth[:, each], weight[:, each])
            gradient = np.empty_like(flat)
            gradient[:-1] = np.bincount(column, value * slope[row, 0], len(columns))
            gradient[:-1] += l2 * flat[:-1]
            gradient[-1] = slope.sum()
            return cost + 0.5 * l2 * float(flat[:-1] @ flat[:-1]), gradient

        table[:, head] = minimise(loss, table[:, head], iterations=iterations)
    full = table[:-1] * rarity[columns, None]
    scale = np.maximum(np.quantile(np.abs(full), 0.9999, axis=0), 1e-9) / 127
    rounded = np.zeros((BUCKETS, labels.shape[1]), dtype=np.int8)
    rounded[columns] = np.clip(np.rint(full / scale), -127, 127)
    return NgramHeads(
        weights=rounded,
        scale=scale.astype(np.float32),
        rarity=rarity,
        bias=table[-1].astype(np.float32),
    )


def fit_platt(logits: Floats, labels: Floats, weights: Floats) -> tuple[float, float]:
    """Slope and intercept that make a logit a chance; 1 and 0 without rows of both kinds."""
    truth, weight = _known(labels[:, None], weights)
    if not 0 < (truth * weight).sum() < weight.sum():
        return 1.0, 0.0

    def loss(flat: Vector) -> tuple[float, Vector]:
        value, slope = _logistic((logits * flat[0] + flat[1])[:, None], truth, weight)
        return value, np.array([float(slope[:, 0] @ logits), float(slope.sum())])

    found = minimise(loss, np.array([1.0, 0.0]), iterations=50)
    return float(found[0]), float(found[1])


def _known(labels: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Labels without the unknown ones, and weights that sum to one for each head."""
    known = ~np.isnan(labels)
    weight = weights[:, None] * known
    total = np.maximum(weight.sum(axis=0, keepdims=True), 1e-9)
    return np.where(known, labels, 0).astype(np.float32), (weight / total).astype(np.float32)


def _logistic(
    logits: NDArray[np.floating], truth: Floats, weight: Floats
) -> tuple[float, NDArray[np.floating]]:
    """The summed loss, and its slope at each logit."""
    cost = np.logaddexp(0, logits) - truth * logits
    chance = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
    return float((weight * cost).sum(dtype=np.float64)), weight * (chance - truth)
