"""The embedded classifier: OpenAI's categories for a text, and a score for hidden instructions.

Two models give the same scores at the same thresholds: `full` looks at a text with an embedder too
and is for what comes in, `light` at hashed n-grams only and is for what streams out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.injection import InjectionParts, injection_logit
from antiphon.classifier.kernel import KernelHeads
from antiphon.classifier.linear import Floats, NgramHeads
from antiphon.classifier.ngrams import bags
from antiphon.classifier.text import cleaned, spread, statements
from antiphon.classifier.words import WordHead
from antiphon.verdicts import CATEGORIES

HEADS = ("any", *CATEGORIES)
"""The first head says whether a text is to be flagged at all, the others for what."""

PAGE = 4
"""Windows of the embedder that are judged together."""
CLOSE_LOOKS = 2
OUT_OF_CONTEXT = np.float32(0.3)
"""So much worse than a whole page a sentence has to look that is judged alone."""
PAGES = 6
"""Of a longer text the embedder sees so many pages, evenly spread; the n-grams are of all of it."""
_CAUTION = 0.6
"""In logits, how much surer the light model has to be. It is asked for every piece of an answer, so
it has many chances to be wrong: without this and the next one 38 of 1,412 harmless answers are
flagged on their way, with both none."""
_SHORT = 24
_SHORT_CAUTION = 2.5
"""How much surer again of next to nothing, less and less up to `_SHORT` characters: an answer's
first word says little, and "You" alone looks like the beginning of an insult."""
HARMLESS_BELOW = 0.05
"""Of the light scores. Four in five ordinary turns are below; and of what is to be flagged, and is
by the full model in the cross-validation, none of SimpleSafetyTests, one in seventy of XSTest, one
in seventeen of OpenAI's set."""
_PIECE = 1200


class Vectors(Protocol):
    """The embedder, as the model needs it."""

    def windows(self, text: str) -> list[list[int]]: ...

    def vector(self, windows: Sequence[Sequence[int]]) -> Floats: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What was learned."""

    ngrams: NgramHeads
    kernel: KernelHeads
    blend: float
    """How much the n-grams' logits count beside the kernel's."""
    words: WordHead
    word_blend: float
    """How much the words' logit counts for the first head of the full model."""
    full: Floats
    """Slope and intercept that make the full model's logits a score, for each head: heads × 2."""
    light: Floats


class Classifier:
    """Scores texts. For one thread at a time; never raises for any text."""

    def __init__(
        self, name: str, parts: Parts, injection: InjectionParts, embedder: Vectors
    ) -> None:
        self.name = name
        self.thresholds: Mapping[str, float] = dict.fromkeys(CATEGORIES, 0.5)
        self.injection_threshold = 0.5
        self.harmless_below = HARMLESS_BELOW
        self._parts = parts
        self._injection = injection
        self._embedder = embedder

    def scores(self, texts: Sequence[str], *, light: bool = False) -> list[Mapping[str, float]]:
        """For each text how much it is of each category, 0…1."""
        if not texts:
            return []
        clean = [cleaned(text) for text in texts]
        logits = light_logits(clean, self._parts.ngrams) if light else self._full(clean)
        calibration = self._parts.light if light else self._parts.full
        chances = _sigmoid(
            led(logits) * calibration[:, 0] + calibration[:, 1] - (_caution(clean) if light else 0)
        )
        return [dict(zip(CATEGORIES, row, strict=True)) for row in _by_category(chances).tolist()]

    def injection(self, texts: Sequence[str]) -> list[float]:
        """For each text how likely it holds an instruction that doesn't belong there, 0…1."""
        found = self._injection
        logits = [injection_logit(text, found, self._embedder) for text in texts]
        return [
            float(chance)
            for chance in _sigmoid(np.array(logits, np.float32) * found.slope + found.intercept)
        ]

    def _full(self, clean: Sequence[str]) -> Floats:
        parts = self._parts
        logits = [kernel_logits(text, parts.kernel, self._embedder, parts.ngrams) for text in clean]
        return blended(
            np.stack(logits),
            light_logits(clean, parts.ngrams),
            parts.words.logits(clean),
            blend=parts.blend,
            word_blend=parts.word_blend,
        )


def blended(
    kernel: Floats, ngrams: Floats, words: Floats, *, blend: float, word_blend: float
) -> Floats:
    """The full model's logits. Words know of no categories, so only the first head hears them."""
    found = kernel + np.float32(blend) * ngrams
    found[:, 0] += np.float32(word_blend) * words
    return found


def light_logits(clean: Sequence[str], ngrams: NgramHeads) -> Floats:
    """By n-grams alone; of a longer text each head's worst piece."""
    pieces = [_pieces(text) for text in clean]
    flat = [spread(piece) for text in pieces for piece in text]
    starts = np.cumsum([0, *(len(text) for text in pieces[:-1])])
    worst: Floats = np.maximum.reduceat(ngrams.logits(bags(flat)), starts, axis=0)
    return worst


def _caution(clean: Sequence[str]) -> Floats:
    """For each text, for all heads."""
    lengths = np.array([len(text) for text in clean], dtype=np.float32)
    short = np.maximum(1 - lengths / _SHORT, 0)
    found: Floats = (_CAUTION + _SHORT_CAUTION * short)[:, np.newaxis].astype(np.float32)
    return found


def led(logits: Floats) -> Floats:
    """The logits with the likeliest category's added to the first head's: a text is flagged when
    it looks bad in general and bad in one way in particular."""
    found = logits.copy()
    found[:, 0] += logits[:, 1:].max(axis=1)
    return found


def _pieces(text: str) -> list[str]:
    """A long text in pieces that overlap by half; one at least."""
    if len(text) <= _PIECE:
        return [text]
    return [text[at : at + _PIECE] for at in range(0, len(text) - _PIECE // 2, _PIECE // 2)]


def kernel_logits(text: str, kernel: KernelHeads, embedder: Vectors, ngrams: NgramHeads) -> Floats:
    """What the kernel says of a cleaned text: the worst of its pages and, of a longer text, of the
    few sentences that look worst by their n-grams, since a page of small talk would drown them."""
    windows = embedder.windows(text)
    pages = _pages(windows)
    found = [embedder.vector(page) for page in pages]
    if len(windows) > 1:
        parts = statements(text)
        looks = led(ngrams.logits(bags([spread(part) for part in parts])))[:, 0]
        order = np.argsort(-looks, kind="stable")[:CLOSE_LOOKS]
        found += [embedder.vector(embedder.windows(parts[at])[:1]) for at in order]
    logits = kernel.logits(np.stack(found))
    logits[len(pages) :] -= OUT_OF_CONTEXT
    worst: Floats = logits.max(axis=0)
    return worst


def _pages(windows: Sequence[Sequence[int]]) -> list[Sequence[Sequence[int]]]:
    pages = [windows[at : at + PAGE] for at in range(0, len(windows), PAGE)]
    if len(pages) <= PAGES:
        return pages
    return [pages[at] for at in np.linspace(0, len(pages) - 1, PAGES).astype(int)]


def _by_category(chances: Floats) -> NDArray[np.float64]:
    """The first head's chance for the likeliest category, and for each other its part of that."""
    each = chances[:, 1:].astype(np.float64)
    found: NDArray[np.float64] = (
        chances[:, :1] * each / np.maximum(each.max(axis=1, keepdims=True), 1e-9)
    )
    return found


def _sigmoid(values: Floats) -> Floats:
    return (1 / (1 + np.exp(-np.clip(values, -30, 30)))).astype(np.float32, copy=False)
