"""What a text is found by: its words, the same for both databases, which get them ready-made.

Neither database's own reading of a text is used: they differ, SQLite's takes a Chinese sentence for
one word, PostgreSQL's wants to be told the language of each text. Words are folded (case, width,
accents); where a script writes no spaces, every two neighbours are a word.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

_WORD = re.compile(r"[^\W_]+")
# Han, kana, Hangul, Thai, Lao, Myanmar and Khmer.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_UNSPACED += "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(f"([{_UNSPACED}]+)")
_LONGEST = 40
"""Characters of a word that count: what is longer is no word, and an index entry has its limits."""
_SILENT = ("xe", "che", "she", "sse")
"""Endings whose e is that of a plural, or might be: box and boxes, cache and caches."""
_OWNER = "\ue000"
"""Before what says whose a chunk is; and no word begins like this, being for private use."""
EVERY = "\ue001"
"""A word that every chunk has."""

_encoder = msgspec.json.Encoder()
_repeated = msgspec.json.Decoder(dict[str, int])


class ChunkWords(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk as it is found. `words` has each word once; `repeated` those that it has several
    times, and how often."""

    length: int
    repeated: str
    words: str


def owner(user: str) -> str:
    """The word that all chunks of a user have and nobody else's."""
    return f"{_OWNER}{hashlib.sha256(user.encode()).hexdigest()[:24]}"


def marks(user: str) -> str:
    """The words that a chunk has before its own."""
    return f"{EVERY} {owner(user)}"


def chunk_words(text: str) -> ChunkWords:
    counts = Counter(words(text))
    repeated = {word: count for word, count in counts.items() if count > 1}
    return ChunkWords(
        length=counts.total(),
        repeated=_encoder.encode(repeated).decode(),
        words=" ".join(sorted(counts)),
    )


def repetitions(text: str) -> dict[str, int]:
    """What `repeated` says."""
    return _repeated.decode(text)


def terms(asked: Iterable[str], most: int) -> tuple[str, ...]:
    """The words of a query, each once, in their order."""
    return tuple(dict.fromkeys(word for text in asked for word in words(text)))[:most]


def words(text: str) -> Iterator[str]:
    if text.isascii():
        yield from (_singular(word[:_LONGEST]) for word in _WORD.findall(text.lower()))
        return
    for word in _WORD.findall(_folded(text)):
        if word.isascii():
            yield _singular(word[:_LONGEST])
        else:
            for part in _RUN.split(word):
                yield from _pairs(part) if _RUN.match(part) else _whole(part)


def _folded(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    plain = "".join(each for each in parts if not unicodedata.category(each).startswith("M"))
    return unicodedata.normalize("NFC", plain).casefold()


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for first, second in pairwise(run):
        yield first + second


def _whole(part: str) -> Iterator[str]:
    if part:
        yield part[:_LONGEST]


def _singular(word: str) -> str:
    """English plurals are found by their singular, and the other way round (after the weak stemmer
    of Harman, "How effective is suffixing?", 1991)."""
    if len(word) <= 3:
        return word
    if word.endswith("s") and not word.endswith(("us", "ss", "is")):
        word = f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
    return word[:-1] if word.endswith(_SILENT) else word
