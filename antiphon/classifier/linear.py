"""Linear heads over hashed n-grams, for many texts at once.

Training uses the very same functions, so that a weight means the same on both sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.ngrams import Bags

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramHeads:
    """Heads over n-grams: 8-bit weights, already times their n-gram's rarity."""

    weights: NDArray[np.int8]
    """Buckets × heads."""
    scale: Floats
    rarity: NDArray[np.uint8]
    """Of each bucket; 0 for one that no training text had."""
    bias: Floats

    def logits(self, bags: Bags) -> Floats:
        """Texts × heads. A text of no known n-gram gets the biases."""
        texts = len(bags.starts) - 1
        sums = np.zeros((texts, len(self.bias)), dtype=np.float32)
        filled = np.flatnonzero(np.diff(bags.starts))
        if len(filled):
            rows = self.weights[bags.buckets].astype(np.int32)
            sums[filled] = np.add.reduceat(rows, bags.starts[:-1][filled], axis=0)
        return sums * self.scale / lengths(bags, self.rarity)[:, None] + self.bias


def lengths(bags: Bags, rarity: NDArray[np.uint8]) -> Floats:
    """How much each text holds: the root of its summed squares, at least 1."""
    total = np.zeros(len(bags.starts), dtype=np.float64)
    squares = rarity.astype(np.float64) ** 2
    np.cumsum(np.bincount(_owners(bags), squares[bags.buckets], len(total) - 1), out=total[1:])
    return np.sqrt(np.maximum(np.diff(total), 1.0)).astype(np.float32)


def _owners(bags: Bags) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(bags.starts) - 1), np.diff(bags.starts))
