"""A text as a vector, as the classifier wants it: the last layers of a language model, looked at.

The sentence vector such models are made for has lost much of what a text's tone shows; layers
below still have it. So a text is the first token, the mean and the maximum of the last three.
"""

from collections.abc import Sequence

import numpy as np

from antiphon.minilm import WIDTH, MiniLm, Vector

LAYERS = 3
SIZE = LAYERS * 3 * WIDTH
WINDOW = 192
"""Tokens that are looked at together."""
_OVERLAP = 32


class Embedder:
    """One compiled model. For one thread at a time. Raises DamagedModel."""

    def __init__(self, *, threads: int = 1) -> None:
        self._model = MiniLm(layers=LAYERS, threads=threads)

    def windows(self, text: str) -> list[list[int]]:
        """The text's tokens, in windows that overlap; one, maybe empty, at least."""
        tokens = self._model.tokens(text)
        if len(tokens) <= WINDOW:
            return [tokens]
        return [
            tokens[start : start + WINDOW]
            for start in range(0, len(tokens) - _OVERLAP, WINDOW - _OVERLAP)
        ]

    def vector(self, windows: Sequence[Sequence[int]]) -> Vector:
        """One vector for all the windows: means of what is a mean, maxima of what is one."""
        found = [self._looked_at(window) for window in windows]
        if len(found) == 1:
            return found[0].ravel()
        each = np.stack(found)
        means, maxima = each[:, :, :2].mean(axis=0), each[:, :, 2:].max(axis=0)
        return np.concatenate([means, maxima], axis=1).ravel()

    def _looked_at(self, window: Sequence[int]) -> Vector:
        """Layers × (first token, mean, maximum) × width."""
        found = np.empty((LAYERS, 3, WIDTH), dtype=np.float32)
        for row, state in enumerate(self._model.states(window)):
            inner = state[1:-1] if window else state
            found[row] = state[0], inner.mean(axis=0), inner.max(axis=0)
        return found
