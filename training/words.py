"""The words' head as `words.tsv` has it: learned by others, taken over as it is."""

from functools import cache
from pathlib import Path

import numpy as np

from antiphon.classifier.words import WordHead

FILE = Path(__file__).parent / "words.tsv"


@cache
def word_head() -> WordHead:
    """Raises OSError, ValueError for a file that was damaged."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    name, bias = lines[0].split("\t")
    if name != "(bias)":
        raise ValueError(f"{FILE.name} begins with {name!r}")
    rows = [line.split("\t") for line in lines[1:]]
    return WordHead(
        places={word: place for place, (word, _, _) in enumerate(rows)},
        rarity=np.array([float(rarity) for _, rarity, _ in rows], dtype=np.float32),
        weights=np.array([float(weight) for _, _, weight in rows], dtype=np.float32),
        bias=float(np.float32(bias)),
    )
