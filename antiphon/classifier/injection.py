"""Finds the instruction that doesn't belong: in a document a sentence that speaks to the assistant,
in a prompt an attempt to lift the model's own instructions.

A request is no injection by itself: a chat is full of them. So a sentence is judged together with
the text that it stands in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from antiphon.classifier.kernel import KernelHeads
from antiphon.classifier.linear import Floats, NgramHeads
from antiphon.classifier.ngrams import bags
from antiphon.classifier.text import cleaned, sentences, spread

CONTEXT = 3 * 384
"""Numbers of the last layer: as much of the surrounding text as counts."""
LOOKED_AT = 4
"""Sentences of a passage that the embedder sees: those whose n-grams look worst."""
PASSAGES = 24
_PASSAGE = 900
_RUN_UP = 1


class Vectors(Protocol):
    """The embedder, as this model needs it."""

    def windows(self, text: str) -> list[list[int]]: ...

    def vector(self, windows: Sequence[Sequence[int]]) -> Floats: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionParts:
    """What was learned; every head is a single one."""

    ngrams: NgramHeads
    """These only choose the sentences that the embedder sees."""
    kernel: KernelHeads
    """Over a sentence's vector and the last layer of its passage's, together."""
    slope: float
    intercept: float


def passages(text: str) -> list[list[str]]:
    """The text's sentences, in passages that share a sentence with the one before; one at least."""
    found: list[list[str]] = [[]]
    size = 0
    for sentence in sentences(text):
        if size and size + len(sentence) > _PASSAGE:
            found.append(found[-1][-_RUN_UP:])
            size = sum(map(len, found[-1]))
        found[-1].append(sentence)
        size += len(sentence)
    return found


def shape(passage: Sequence[str]) -> str:
    """A passage as the embedder gets it."""
    return cleaned(" ".join(passage))


def injection_logit(text: str, parts: InjectionParts, embedder: Vectors) -> float:
    """The worst passage's logit, before calibration."""
    found = passages(text)
    kept = [[cleaned(sentence) for sentence in passage] for passage in found]
    flat = [sentence for passage in kept for sentence in passage]
    if not flat:
        return -30.0
    looks = parts.ngrams.logits(bags([spread(sentence) for sentence in flat]))[:, 0]
    starts = np.cumsum([0, *map(len, kept)])
    ranges = list(pairwise(starts))
    if len(ranges) > PASSAGES:
        ranges.sort(key=lambda span: -float(looks[span[0] : span[1]].max(initial=-30.0)))
    worst = -30.0
    for begin, end in ranges[:PASSAGES]:
        if begin == end:
            continue
        order = np.argsort(-looks[begin:end], kind="stable")[:LOOKED_AT] + begin
        whole = shape([flat[at] for at in range(begin, end)])
        vectors = seen([whole, *(flat[at] for at in order)], embedder)
        worst = max(worst, float(parts.kernel.logits(paired(vectors[1:], vectors[:1])).max()))
    return worst


def seen(texts: Sequence[str], embedder: Vectors) -> Floats:
    """The vector of each cleaned text, or of what fits into two windows."""
    return np.stack([embedder.vector(embedder.windows(text)[:2]) for text in texts])


def paired(sentences: Floats, passages: Floats) -> Floats:
    """Each sentence's vector together with its passage's; one passage may be that of all."""
    context = np.broadcast_to(passages[:, -CONTEXT:], (len(sentences), CONTEXT))
    return np.hstack([sentences, context])
