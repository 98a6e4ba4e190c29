"""A text as a vector: the mean of what a language model's last layer makes of its tokens, at length
one, in half precision."""

import numpy as np
from numpy.typing import NDArray

from antiphon.minilm import MiniLm

WINDOW = 254
"""Tokens that are looked at together: what the model was made for."""

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]


class SentenceVectors:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._model = MiniLm()

    def question(self, text: str) -> Floats:
        """Of a long one its ends: people ask before or after what they paste."""
        tokens = self._model.tokens(text)
        if len(tokens) > WINDOW:
            tokens = [*tokens[: WINDOW // 2], *tokens[-WINDOW // 2 :]]
        return self._window(tokens)

    def passage(self, text: str) -> Halves:
        """Of a long one the mean of its windows, which are about as long as each other."""
        tokens = self._model.tokens(text)
        windows = max(1, -(-len(tokens) // WINDOW))
        size = max(1, -(-len(tokens) // windows))
        found = [
            self._window(tokens[start : start + size])
            for start in range(0, max(1, len(tokens)), size)
        ]
        whole = found[0] if len(found) == 1 else _at_length_one(np.mean(found, axis=0))
        return whole.astype(np.float16)

    def _window(self, tokens: list[int]) -> Floats:
        (state,) = self._model.states(tokens)
        return _at_length_one(state.mean(axis=0))


def _at_length_one(vector: Floats) -> Floats:
    found: Floats = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return found
