"""One linear head over whole words, learned by others from other texts: a second opinion.

Its weights come with ours as a list of words and two numbers for each; nothing of its maker's runs.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from antiphon.classifier.linear import Floats

FARTHEST = np.float32(1.5)
"""No text's logit is farther from zero: one word may not outweigh what the others say."""
_WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordHead:
    """Weights of words, by how rare a word is in the texts that they were learned from."""

    places: Mapping[str, int]
    """Where a word's numbers are."""
    rarity: Floats
    weights: Floats
    bias: float

    def logits(self, clean: Sequence[str]) -> Floats:
        """One number for each cleaned text; the bias where no word is known."""
        found = np.array([self._logit(text) for text in clean], dtype=np.float32)
        return np.clip(found, -FARTHEST, FARTHEST)

    def _logit(self, text: str) -> float:
        known = map(self.places.get, _WORD.findall(text))
        counts = Counter(place for place in known if place is not None)
        if not counts:
            return self.bias
        places = np.fromiter(counts, np.int64, len(counts))
        holds = np.fromiter(counts.values(), np.float32, len(counts)) * self.rarity[places]
        return float(holds @ self.weights[places] / np.sqrt(holds @ holds)) + self.bias
