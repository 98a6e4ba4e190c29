"""L-BFGS in 64 bit: minimises a smooth convex function, the same steps every time."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def minimise(
    function: Callable[[Vector], tuple[float, Vector]],
    start: Vector,
    *,
    iterations: int,
    tolerance: float = 1e-4,
    memory: int = 10,
) -> Vector:
    """Where `function`, which gives its value and gradient, is smallest, or the best place after
    so many iterations. Ends when the gradient has shrunk to `tolerance` of its first length."""
    at = start
    value, gradient = function(at)
    enough = float(np.linalg.norm(gradient)) * tolerance
    steps: deque[tuple[Vector, Vector, float]] = deque(maxlen=memory)
    for _ in range(iterations):
        if float(np.linalg.norm(gradient)) <= enough:
            break
        direction = -_scaled(gradient, steps)
        slope = float(gradient @ direction)
        length = 1.0 if steps else min(1.0, 1.0 / float(np.abs(gradient).sum()))
        for _ in range(30):
            there = at + length * direction
            new_value, new_gradient = function(there)
            if new_value <= value + 1e-4 * length * slope:
                break
            length *= 0.5
        else:
            break
        move, turn = there - at, new_gradient - gradient
        if (curve := float(move @ turn)) > 1e-12:
            steps.append((move, turn, 1.0 / curve))
        at, value, gradient = there, new_value, new_gradient
    return at


def _scaled(gradient: Vector, steps: deque[tuple[Vector, Vector, float]]) -> Vector:
    """The gradient times the curvature's inverse as the last steps show it: the two loops of
    Nocedal's Algorithm 7.4."""
    found = gradient.copy()
    shares = []
    for move, turn, inverse in reversed(steps):
        share = inverse * float(move @ found)
        shares.append(share)
        found -= share * turn
    if steps:
        move, turn, inverse = steps[-1]
        found *= 1.0 / (inverse * float(turn @ turn))
    for (move, turn, inverse), share in zip(steps, reversed(shares), strict=True):
        found += (share - inverse * float(turn @ found)) * move
    return found
