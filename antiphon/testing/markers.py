"""Words that nobody else says, and how they look wherever text may end up: to find out whether any
of a person's text is left."""

import base64
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

_WIDE = str.maketrans("0123456789abcdef", "абвгдежзиклмнопр")


@dataclass(frozen=True, slots=True)
class Marker:
    """A word and the same word beyond ASCII."""

    word: str = field(default_factory=lambda: f"mark{secrets.token_hex(5)}")

    @property
    def wide(self) -> str:
        return self.word.removeprefix("mark").translate(_WIDE) + "😀"

    @property
    def said(self) -> str:
        """Both, in what a person might write."""
        return f'"{self.word}" {self.wide}'

    def __str__(self) -> str:
        return self.said

    def found_in(self, data: bytes) -> list[str]:
        """The forms in which it is there."""
        return [name for name, form in self._forms() if form in data]

    def _forms(self) -> Iterator[tuple[str, bytes]]:
        for name, text in (("plain", self.word), ("wide", self.wide[:-1])):
            yield name, text.encode()
            yield f"{name}, in UTF-16", text.encode("utf-16-le")
            yield f"{name}, in UTF-16 BE", text.encode("utf-16-be")
            yield f"{name}, in hexadecimal", text.encode().hex().encode()
            for shift in range(3):
                # What stands before and behind it changes the first and the last characters.
                encoded = base64.b64encode(bytes(shift) + text.encode())
                yield f"{name}, in base64", encoded[4:-4]
        escaped = json.dumps(self.wide[:-1])[1:-1]
        yield "wide, escaped in JSON", escaped.encode()
        yield "wide, escaped in JSON with capitals", escaped.upper().replace("\\U", "\\u").encode()
        yield "wide, in a URL", quote(self.wide[:-1]).encode()
