"""Texts to token ids, and what was encoded lately remembered: what a conversation has said is said
again with each of its turns, and what is new is the smallest part of it.

Any thread may use it. Two threads at once may encode the same text, or forget one too many.
"""

import ctypes
from array import array
from collections.abc import Sequence

from tokenizers import Tokenizer

from antiphon.errors import InvalidRequest

_REMEMBERED_CHARS = 1 << 19
"""Of each of two generations; with their ids, some two megabytes each."""
_LONGEST_CHARS = 4096
"""Longer ones are few, and would drive out many. What is left takes about a millisecond to encode,
so that nobody can tell by the time what others have said."""
_TRIM_CHARS = 131_072
"""Encoding this much leaves ten megabytes free but held, in a thread that may sleep for long."""


class Encoder:
    """Of plain text: no added tokens are found in it."""

    def __init__(self, vocabulary: Tokenizer, remembered_chars: int = _REMEMBERED_CHARS) -> None:
        self._vocabulary = vocabulary
        self._most_chars = remembered_chars
        self._young: dict[str, array[int]] = {}
        self._old: dict[str, array[int]] = {}
        self._young_chars = 0

    def encode(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Of each its token ids. Raises InvalidRequest for what is no text."""
        known = {text: self._recall(text) for text in texts}
        unknown = [text for text, ids in known.items() if ids is None]
        for text, ids in zip(unknown, encoded(self._vocabulary, unknown), strict=True):
            known[text] = packed = array("i", ids)
            if len(text) <= _LONGEST_CHARS:
                self._keep(text, packed)
        return [known[text] or () for text in texts]

    def _recall(self, text: str) -> "array[int] | None":
        ids = self._young.get(text)
        if ids is None and (ids := self._old.get(text)) is not None:
            self._keep(text, ids)
        return ids

    def _keep(self, text: str, ids: "array[int]") -> None:
        if self._young_chars + len(text) > self._most_chars:
            self._old, self._young, self._young_chars = self._young, {}, 0
        self._young[text] = ids
        self._young_chars += len(text)


def encoded(vocabulary: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """By a vocabulary, as it stands. Raises InvalidRequest for what is no text."""
    if not texts:
        return []
    try:
        # Unlike `encode`, the batch call lets other threads run (measured, tokenizers 0.23).
        found = vocabulary.encode_batch_fast(list(texts), add_special_tokens=False)
    except (TypeError, UnicodeError) as error:
        raise InvalidRequest("the messages hold text that is not Unicode", "messages") from error
    ids = [each.ids for each in found]
    if sum(map(len, texts)) > _TRIM_CHARS:
        del found
        return_freed_memory()
    return ids


def return_freed_memory() -> None:
    """The library's work leaves memory free but held; glibc gives it back when asked."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
