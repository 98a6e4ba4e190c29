"""What a text says that can be right or wrong: its numbers, dates, names and codes. Pure.

For comparing texts, so it need not find all of them, but the same ones in the same words.
"""

import re
from collections.abc import Iterable

from antiphon.actors.workers.stopwords import ALL_STOPWORDS
from antiphon.actors.workers.words import folded, words

_NUMBER = re.compile(r"\d(?:[\d.,:/'\u2019\u00a0-]*\d)?")
_GROUPING = re.compile(r"(?<=\d)[,'\u2019\u00a0](?=\d{3}(?!\d))")
_POSSESSIVE = re.compile(r"['\u2019]s$")


def numbers(text: str) -> frozenset[str]:
    """As digits, without what groups thousands."""
    return frozenset(_GROUPING.sub("", found) for found in _NUMBER.findall(text))


def names(sentences: Iterable[str]) -> frozenset[str]:
    """Words with a capital that doesn't come from where they stand, folded; in German every noun.
    Words with digits in them are codes, and count as names."""
    found: set[str] = set()
    for sentence in sentences:
        spoken = words(sentence)
        for place, word in enumerate(spoken):
            name = _POSSESSIVE.sub("", word)
            if not _is_name(name):
                continue
            follows = _is_name(spoken[place + 1]) if place + 1 < len(spoken) else False
            if place or follows or _is_certain(name):
                found.add(folded(name))
    return frozenset(found)


def facts(sentences: Iterable[str]) -> frozenset[str]:
    """Both."""
    known = list(sentences)
    return names(known).union(*map(numbers, known))


def _is_name(word: str) -> bool:
    if word.isdigit() or folded(word) in ALL_STOPWORDS:
        return False
    return word[:1].isupper() or _is_certain(word)


def _is_certain(word: str) -> bool:
    """A code, an address or an acronym, wherever it stands."""
    has_digit = any(map(str.isdigit, word))
    has_letter = any(map(str.isalpha, word))
    return (has_digit and has_letter) or "@" in word or (len(word) > 1 and word.isupper())
