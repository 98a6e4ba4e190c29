"""The words of a text, the script it is written in, and its language, as far as that can be told.

Pure. Works on any script; scripts that write no spaces are taken in pairs of characters.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from antiphon.actors.workers.stopwords import ALL_STOPWORDS, STOPWORDS

_WORD = re.compile(r"[^\W_]+(?:['\u2019.@/:-][^\W_]+)*")
_UNSPACED = frozenset({"CJK", "THAI", "LAO", "KHMER", "MYANMAR"})
_ONE_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HALFWIDTH": "CJK", "FULLWIDTH": "CJK"}
_SHARE = 0.2
"""Of all letters: with less, a script is only quoted."""
_LEAD = 2
"""So many common words more than any other language's make a language."""


def words(text: str) -> list[str]:
    """As they are written."""
    return _WORD.findall(text)


def folded(word: str) -> str:
    """For comparing: case and kinds of apostrophes don't count."""
    return word.replace("\u2019", "'").casefold()


def terms(text: str) -> Iterator[str]:
    """What a text is about: its words but the commonest, folded."""
    for word in words(text):
        if _script(word[0]) in _UNSPACED:
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif (term := folded(word)) not in ALL_STOPWORDS:
            yield term


def scripts(text: str) -> frozenset[str]:
    """Those that a fair part of its letters are of; none for a text without letters."""
    counts = Counter(script for script in map(_script, text) if script)
    total = counts.total()
    return frozenset(script for script, count in counts.items() if count >= _SHARE * total)


def is_unspaced(text: str) -> bool:
    """Whether it is written without spaces between words."""
    return bool(scripts(text) & _UNSPACED)


def language(text: str) -> str | None:
    """ISO 639-1, where that is clear."""
    counts = Counter(map(folded, words(text)))
    known = {
        name: sum(count for word, count in counts.items() if word in common)
        for name, common in STOPWORDS.items()
    }
    (best, most), (_, next_most) = Counter(known).most_common(2)
    return best if most >= next_most + _LEAD else None


def estimate_tokens(text: str) -> int:
    """About how many tokens it has, where nobody has counted: a quarter of its characters, more
    where vocabularies have few words of a script."""
    ascii_chars = sum(map(str.isascii, text))
    return (ascii_chars + 3) // 4 + sum(
        1 if _script(char) in _UNSPACED else 0.5 for char in text if not char.isascii()
    ).__ceil__()


@lru_cache(4096)
def _script(char: str) -> str | None:
    """By the first word of the name that Unicode gives the letter."""
    if not char.isalpha():
        return None
    name = unicodedata.name(char, "").partition(" ")[0]
    return _ONE_SCRIPT.get(name, name) or None
