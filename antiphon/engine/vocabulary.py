"""Token ids back to text as they come, for any `tokenizers` vocabulary. Special tokens have none.

What leaves is final: an incomplete UTF-8 sequence waits for its rest, and is dropped if that never
comes. Knows nothing of stop strings.
"""

import codecs
import re
from typing import Protocol

from tokenizers import Tokenizer, decoders

_REPLACEMENT = "�"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_WORD_START = "▁"
_PATIENCE = 32
"""Tokens without a whole character among them: that is no character, and never will be."""


class TokenStream(Protocol):
    """The text of one answer."""

    def push(self, token: int) -> str:
        """The text that this token completes; often empty, sometimes several tokens' worth."""

    def flush(self) -> str:
        """What is left at the end, without the part that never became valid UTF-8."""


class Vocabulary:
    """One model's tokens, shared by all answers of a host."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(
            token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special
        )
        self._data: dict[int, bytes] = {}
        self._byte_level = isinstance(tokenizer.decoder, decoders.ByteLevel)
        self._bytes_of = {symbol: byte for byte, symbol in _byte_symbols().items()}

    def stream(self) -> TokenStream:
        # A byte-level vocabulary says each token's bytes exactly, so nothing has to be decoded
        # twice; others only say what a sequence of tokens means.
        return _ByteStream(self) if self._byte_level else _WindowStream(self, self._tokenizer)

    def is_special(self, token: int) -> bool:
        return token in self._special

    def data(self, token: int) -> bytes:
        """The bytes this token stands for; none for a special or an unknown one."""
        data = self._data.get(token)
        if data is None:
            data = self._data[token] = self._find_data(token)
        return data

    def _find_data(self, token: int) -> bytes:
        text = self._tokenizer.id_to_token(token)
        if text is None or token in self._special:
            return b""
        if not self._byte_level:
            if match := _BYTE_TOKEN.fullmatch(text):
                return bytes([int(match[1], 16)])
            return text.replace(_WORD_START, " ").encode()
        try:
            return bytes(self._bytes_of[symbol] for symbol in text)
        except KeyError:  # an added token is plain text, also inside a byte-level vocabulary
            return text.encode()


class _ByteStream:
    __slots__ = ("_decode", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def push(self, token: int) -> str:
        return self._decode(self._vocabulary.data(token))

    def flush(self) -> str:
        return ""


class _WindowStream:
    """Decodes the last few tokens with and without the newest, and takes the difference: what a
    token adds may depend on those before it (`▁`, clean-up of blanks, byte fallback)."""

    __slots__ = ("_before", "_read", "_tokenizer", "_vocabulary", "_window")

    def __init__(self, vocabulary: Vocabulary, tokenizer: Tokenizer) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = tokenizer
        self._window: list[int] = []
        self._read = 0
        """How much of the window has been turned into text that left."""
        self._before = ""
        """The text of that part."""

    def push(self, token: int) -> str:
        # It adds no text, and an answer that goes on past its end may have thousands of them.
        if self._vocabulary.is_special(token):
            return ""
        self._window.append(token)
        text = self._tokenizer.decode(self._window)
        waiting = text.endswith(_REPLACEMENT) and len(self._window) - self._read < _PATIENCE
        if len(text) <= len(self._before) or waiting:
            return ""
        return self._take(text)

    def flush(self) -> str:
        if self._read == len(self._window):
            return ""
        return self._take(self._tokenizer.decode(self._window).rstrip(_REPLACEMENT))

    def _take(self, text: str) -> str:
        new = text[len(self._before) :]
        del self._window[: self._read]
        self._read = len(self._window)
        self._before = self._tokenizer.decode(self._window)
        return new


def _byte_symbols() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte, by which byte-level vocabularies are written."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    symbols = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in symbols)
    return symbols | {byte: chr(256 + index) for index, byte in enumerate(others)}
