"""Prose that says nothing in particular, as much as a test wants, always the same for a seed."""

import random
from collections.abc import Iterator

_NOUNS = (
    "valve", "harbour", "ledger", "orchard", "turbine", "archive", "glacier", "committee",
    "signal", "bridge", "vessel", "library", "engine", "meadow", "contract", "lantern",
)  # fmt: skip
_VERBS = (
    "opens", "measures", "repeats", "carries", "follows", "replaces", "describes", "delays",
    "protects", "records", "divides", "supports",
)  # fmt: skip
_WORDS = (
    "northern", "careful", "second", "quiet", "narrow", "annual", "usual", "broken", "early",
    "distant", "public", "heavy",
)  # fmt: skip


def sentence(dice: random.Random) -> str:
    """One sentence of ten to twenty words."""
    words = ["the"]
    for _ in range(dice.randrange(2, 5)):
        words += [dice.choice(_WORDS), dice.choice(_NOUNS), dice.choice(_VERBS), "the"]
    words += [dice.choice(_WORDS), dice.choice(_NOUNS), "in", str(dice.randrange(1900, 2026))]
    text = " ".join(words)
    return text[0].upper() + text[1:] + "."


def paragraphs(seed: int, *, count: int, sentences: int = 6) -> Iterator[str]:
    """So many paragraphs."""
    dice = random.Random(f"prose {seed}")
    for _ in range(count):
        yield " ".join(sentence(dice) for _ in range(sentences))
