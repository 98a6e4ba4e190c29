"""Where things stand in a TOML text: the line of every table, key and element of an array.

`tomllib` gives values without places. The text has been parsed by it before, so only its structure
is followed here.
"""

import bisect
import re
import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]
"""Such as ("rules", 2, "match", "entities", 0)."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' + r"|'''.*?'{3,5}" + r'|"(?:[^"\\]|\\.)*"' + r"|'[^']*'", re.DOTALL
)
_PLAIN = re.compile(r"[^,\]}#\n]*")


class Positions:
    """The lines of one text, from 1."""

    def __init__(self, lines: Mapping[Path, int]) -> None:
        self._lines = lines

    def line(self, path: Path) -> int:
        """Of what stands at the path; of what is nearest around it, where nothing does."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return 1


def positions_in(text: str) -> Positions:
    """Of a text that `tomllib` takes."""
    return Positions(_Walk(text).lines)


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._tables: dict[Path, int] = {}
        """How many elements each array of tables has so far."""
        self.lines: dict[Path, int] = {}
        self._statements()

    def _statements(self) -> None:
        table: Path = ()
        while self._blank():
            if self._next("[["):
                table = self._header(repeated=True)
                self._next("]]")
            elif self._next("["):
                table = self._header(repeated=False)
                self._next("]")
            else:
                self._pair(table)

    def _header(self, *, repeated: bool) -> Path:
        keys = self._keys()
        path: Path = ()
        for depth, key in enumerate(keys, 1):
            path += (key,)
            if repeated and depth == len(keys):
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path += (self._tables[path] - 1,)
            self._note(path)
        return path

    def _pair(self, table: Path) -> None:
        path = table
        for key in self._keys():
            path += (key,)
            self._note(path)
        self._blank()
        self._next("=")
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._blank()
            if quoted := self._match(_STRING):
                keys.append(str(tomllib.loads(f"key = {quoted}")["key"]))
            else:
                keys.append(self._match(_BARE))
            self._blank()
            if not self._next("."):
                return keys

    def _value(self, path: Path) -> None:
        self._blank()
        if self._next("["):
            index = 0
            while self._blank() and not self._next("]"):
                self._note((*path, index))
                self._value((*path, index))
                index += 1
                self._blank()
                self._next(",")
        elif self._next("{"):
            while self._blank() and not self._next("}"):
                self._pair(path)
                self._blank()
                self._next(",")
        elif not self._match(_STRING):
            self._match(_PLAIN)

    def _note(self, path: Path) -> None:
        self.lines.setdefault(path, bisect.bisect_left(self._newlines, self._at) + 1)

    def _blank(self) -> bool:
        """Pass over what means nothing; False at the end of the text."""
        self._match(_BLANK)
        return self._at < len(self._text)

    def _next(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        self._at += len(token) * found
        return found

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match.group()
