"""Texts as hashed n-grams of characters and words, many texts at once, with numpy alone.

A text is a bag of buckets; nothing of it can be read back from them. The hash is our own, so that
weights trained anywhere mean the same everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint64]

BITS = 17
BUCKETS = 1 << BITS
CHARACTERS = (2, 3, 4, 5)
"""Lengths of the n-grams of characters; they cross the borders of words."""
WORDS = (1, 2, 3)

_P = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse
_P_INVERSE = np.uint64(pow(int(_P), -1, 1 << 64))
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(64 - BITS)
_HALF = np.uint64(32)
_SPACE = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Bags:
    """The n-grams of several texts: those of text i are `buckets[starts[i]:starts[i + 1]]`."""

    buckets: NDArray[np.int64]
    starts: NDArray[np.int64]


def bags(texts: Sequence[str]) -> Bags:
    """The n-grams of each text, as often as they occur. Texts are `spread` ones."""
    framed = [f" {text} " for text in texts]
    lengths = np.array([len(text) for text in framed], dtype=np.int64)
    points = np.frombuffer("".join(framed).encode("utf-32-le", "replace"), dtype=np.uint32)
    codes: Codes = points.astype(np.uint64)
    owner = np.repeat(np.arange(len(texts)), lengths)
    hashes, owners = [], []
    with np.errstate(over="ignore"):
        running = codes * _MIX
        for size in range(2, max(CHARACTERS) + 1):
            running = running[:-1] * _P + codes[size - 1 :]
            if size in CHARACTERS:
                whole = owner[: len(running)] == owner[size - 1 :]
                hashes.append(running[whole] + np.uint64(size))
                owners.append(owner[: len(running)][whole])
        for size, (words, word_owner) in _words(codes, owner).items():
            hashes.append(words + np.uint64(size << 40))
            owners.append(word_owner)
        found = np.concatenate(hashes)
        found ^= found >> _HALF
        found *= _MIX
        found ^= found >> _HALF
        found *= _P
    whose = np.concatenate(owners)
    order = np.argsort(whose, kind="stable") if len(texts) > 1 else slice(None)
    starts = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.bincount(whose, minlength=len(texts)), out=starts[1:])
    return Bags((found[order] >> _SHIFT).astype(np.int64), starts)


def _words(codes: Codes, owner: NDArray[np.int64]) -> dict[int, tuple[Codes, NDArray[np.int64]]]:
    """Hashes of the runs of words by their number, and whose they are."""
    gap = codes == _SPACE
    begins = np.flatnonzero(gap[:-1] & ~gap[1:]) + 1
    ends = np.flatnonzero(~gap[:-1] & gap[1:]) + 1
    powers, inverses = _powers((len(codes) + 4095) // 4096 * 4096)
    prefix = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.cumsum(codes * powers[: len(codes)], out=prefix[1:])
    found = {}
    for size in WORDS:
        count = max(0, len(begins) - size + 1)
        first, last = begins[:count], ends[size - 1 :][:count]
        whole = owner[first] == owner[last - 1]
        first, last = first[whole], last[whole]
        found[size] = (prefix[last] - prefix[first]) * inverses[first], owner[first]
    return found


@cache
def _powers(count: int) -> tuple[Codes, Codes]:
    with np.errstate(over="ignore"):
        powers: Codes = np.cumprod(np.full(count, _P, dtype=np.uint64), dtype=np.uint64)
        inverses: Codes = np.cumprod(np.full(count, _P_INVERSE, dtype=np.uint64), dtype=np.uint64)
        return powers, inverses
