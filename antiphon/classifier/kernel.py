"""Heads that compare a text with every text they were trained on: a Gaussian kernel over vectors.

The texts are in here as short vectors of 8-bit numbers only; none can be read back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.linear import Floats

_CHUNK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Long vectors made short: centred, each number by its spread, along the main directions."""

    mean: Floats
    scale: Floats
    directions: Floats
    """Numbers of a long vector × numbers of a short one, in the file as one byte each, in steps of
    `step`."""
    step: Floats

    def shortened(self, vectors: Floats) -> Floats:
        centred = (vectors - self.mean) * self.scale
        return (centred @ self.directions).astype(np.float32, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelHeads:
    """`shares` says how much likeness to each known text counts for each head."""

    projection: Projection
    known: Floats
    """Texts × numbers, in the file as one byte each, in steps of `unit`."""
    unit: Floats
    squares: Floats
    """The known texts' squared lengths."""
    shares: Floats
    """Texts × heads."""
    bias: Floats
    width: float
    """The kernel falls by e within the root of this squared distance."""

    def logits(self, vectors: Floats) -> Floats:
        """Texts × heads."""
        short = self.projection.shortened(vectors)
        narrow = np.float32(1 / self.width)
        found = np.empty((len(short), len(self.bias)), dtype=np.float32)
        for at in range(0, len(short), _CHUNK):
            part = short[at : at + _CHUNK]
            likeness = gaussian(part, self.known, self.squares, narrow)
            found[at : at + _CHUNK] = likeness @ self.shares + self.bias
        return found


def gaussian(
    texts: Floats, known: Floats, squares: NDArray[np.float32], narrow: np.float32
) -> Floats:
    """How alike each text is to each known one, 0…1."""
    apart = squared(texts)[:, None] + squares[None, :] - 2 * (texts @ known.T)
    found: Floats = np.exp(-np.maximum(apart, 0) * narrow)
    return found


def squared(vectors: Floats) -> Floats:
    """The squared length of each."""
    found: Floats = np.einsum("ij,ij->i", vectors, vectors)
    return found
