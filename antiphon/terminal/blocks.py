"""Markdown as it is written, cut into blocks that are finished and the one that still grows: what
is finished is drawn once, and only the rest again and again. Pure; it knows no terminal."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Blocks:
    """Of one answer. A block ends at an empty line that is in no fence, if the next line isn't
    indented: that may belong to an item of a list."""

    def __init__(self) -> None:
        self.rest = ""
        """What has not ended yet."""
        self._read = 0
        """Of the rest: up to which line's start it was looked at."""
        self._fence = ""
        self._gap: int | None = None
        """Where an empty line ended that may be the end of a block."""

    def feed(self, text: str) -> Iterator[str]:
        """The blocks that this completes."""
        self.rest += text
        while (end := self.rest.find("\n", self._read)) >= 0:
            yield from self._line(self.rest[self._read : end], end + 1)

    def finish(self) -> str:
        """The last block."""
        rest, self.rest = self.rest, ""
        self._read, self._fence, self._gap = 0, "", None
        return rest

    def _line(self, line: str, end: int) -> Iterator[str]:
        if self._fence:
            fence = _FENCE.match(line)
            if fence and fence[1].startswith(self._fence) and not line[fence.end() :].strip():
                self._fence = ""
        elif not line.strip():
            if self._read > 0 or self._gap is not None:
                self._gap = end
        else:
            if self._gap is not None and not line[0].isspace():
                yield self.rest[: self._gap]
                self.rest = self.rest[self._gap :]
                end -= self._gap
                self._read = 0
            self._gap = None
            if fence := _FENCE.match(line):
                self._fence = fence[1]
        self._read = end
