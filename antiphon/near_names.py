"""The name that somebody who wrote another one has probably meant, for messages about mistakes."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one that is most like a word, if any is like it."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return close[0] if close else None
