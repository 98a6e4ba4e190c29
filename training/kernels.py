"""Fits the kernel heads: main directions of the vectors, then ridge regression on the labels.

Both are closed forms; nothing but the seed of the first directions is drawn.
"""

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.kernel import KernelHeads, Projection, gaussian, squared
from antiphon.classifier.linear import Floats

NUMBERS = 384
RIDGE = 0.15
NARROW = 1.8
"""The kernel's exponent at the median distance between two texts."""
_ROUNDS = 4
_ROUNDS_UNKNOWN = 30
_SAMPLE = 1500


def fit_projection(vectors: Floats, *, numbers: int = NUMBERS, seed: int = 0) -> Projection:
    """By subspace iteration. The short vectors' lengths are those of the scaled long ones."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = 1 / (vectors.std(axis=0, dtype=np.float64).astype(np.float32) + np.float32(1e-4))
    scaled = (vectors - mean) * scale
    basis = np.random.default_rng(seed).standard_normal((vectors.shape[1], numbers + 32))
    basis = basis.astype(np.float32)
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(scaled.T @ (scaled @ basis))
    _, _, rotation = np.linalg.svd(scaled @ basis, full_matrices=False)
    directions = basis @ rotation[:numbers].T
    step = np.abs(directions).max(axis=0) / np.float32(127)
    rounded = np.rint(directions / step) * step
    return Projection(mean=mean, scale=scale, directions=rounded.astype(np.float32), step=step)


def fit_kernel(
    vectors: Floats,
    labels: Floats,
    weights: Floats,
    *,
    ridge: float = RIDGE,
    narrow: float = NARROW,
    numbers: int = NUMBERS,
) -> KernelHeads:
    """Targets are 1 and -1; for a head whose label a row doesn't tell, the row isn't there."""
    projection = fit_projection(vectors, numbers=numbers)
    short = projection.shortened(vectors)
    unit = np.quantile(np.abs(short), 0.999, axis=0).astype(np.float32) / np.float32(127)
    known = np.clip(np.rint(short / unit), -127, 127).astype(np.float32) * unit
    squares = squared(known)
    width = _median(known, squares) / narrow
    likeness = gaussian(known, known, squares, np.float32(1 / width))
    told = ~np.isnan(labels)
    target = np.where(told, 2 * labels - 1, np.nan).astype(np.float32)
    bias = _means(target, weights)
    target = np.where(told, target - bias, 0).astype(np.float32)
    system = likeness + np.diag(ridge / weights).astype(np.float32)
    shares = _without_unknown(np.linalg.inv(system), target, told)
    return KernelHeads(
        projection=projection,
        known=known,
        unit=unit,
        squares=squares,
        shares=shares.astype(np.float16).astype(np.float32),
        bias=bias,
        width=width,
    )


def _without_unknown(inverse: Floats, target: Floats, told: NDArray[np.bool_]) -> Floats:
    """The shares, those of unknown rows 0: their targets are chosen such that this comes out, by
    conjugate gradients. That saves an inverse for each head."""
    shares: Floats = inverse @ target
    rest = np.where(told, 0, -shares).astype(np.float32)
    step, size = rest.copy(), (rest * rest).sum(axis=0)
    for _ in range(_ROUNDS_UNKNOWN):
        turned = inverse @ step
        length = size / np.maximum((step * turned).sum(axis=0), 1e-20)
        shares += length * turned
        rest -= length * np.where(told, 0, turned)
        before, size = size, (rest * rest).sum(axis=0)
        step = rest + size / np.maximum(before, 1e-20) * step
    return np.where(told, shares, 0).astype(np.float32)


def _means(target: Floats, weights: Floats) -> Floats:
    """Of the known targets, by weight; 0 for a head of which none is known."""
    told = ~np.isnan(target)
    total = np.maximum((weights[:, None] * told).sum(axis=0), 1e-9)
    found: Floats = (weights[:, None] * np.where(told, target, 0)).sum(axis=0) / total
    return found.astype(np.float32)


def _median(known: Floats, squares: Floats) -> float:
    """The median squared distance among the first rows of every kind."""
    step = max(1, len(known) // _SAMPLE)
    some, of = known[::step], squares[::step]
    apart = of[:, None] + of[None, :] - 2 * (some @ some.T)
    return float(np.median(np.maximum(apart, 0)))
