"""A document in the making: readers add what they find, block by block, and the text is put
together with every position known. Bounded: too much text ends it at once."""

import re
import unicodedata
from collections.abc import Callable, Iterable

from antiphon.documents.reader_config import Limits
from antiphon.documents.refusing import refuse
from antiphon.reading_files import Block, BlockKind, Heading, Unreadable

_LIGATURES = {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_ODD = re.compile(
    # Controls, which no text needs and PostgreSQL refuses in part; half characters; what is
    # invisible and so only there to hide words from people, or words in: soft hyphens, zero width
    # spaces, byte order marks, tags (U+E0000…, in which whole instructions have been hidden).
    "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u00a0\u00ad\u200b\u2060\ufeff\ufb00-\ufb06\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\u0085\u2028\u2029]")
_SPACES = re.compile(r"[ \t\n]+")
_BLANKS = re.compile(r"(?<![ \t])[ \t]{200,}+|\n{4,}+")
"""More than a table has that was drawn with spaces: a bomb of blanks."""

_HEADINGS = 10_000
"""More are no headings."""
_HEADING_CHARACTERS = 160

_TOGETHER = frozenset({BlockKind.ROW, BlockKind.ITEM})
"""These follow their like on the next line; all else follows an empty one."""

Advance = Callable[[float], None]
"""Told how much has been read, 0…1."""


def clean(text: str) -> str:
    """The text as it is kept: its lines end alike, and nothing invisible is in it."""
    text = _LINE_ENDS.sub("\n", text)
    text = _ODD.sub(_plain, text)
    return _BLANKS.sub(lambda found: found[0][:2] if "\n" in found[0] else " ", text)


def flat(text: str) -> str:
    """In one line, words one space apart."""
    return _SPACES.sub(" ", clean(text)).strip()


def _plain(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\u00a0":
        return " "
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return _LIGATURES.get(character, "")


class DocumentBuilder:
    """The one owner of a document's text until it is finished."""

    def __init__(self, media_type: str, limits: Limits, advance: Advance | None = None) -> None:
        self.media_type = media_type
        self.title: str | None = None
        self.limits = limits
        self._advance = advance
        self._parts: list[str] = []
        self._length = 0
        self.blocks: list[Block] = []
        self.headings: list[Heading] = []
        self.page_starts: list[int] = []
        self.notices: list[str] = []

    @property
    def length(self) -> int:
        """Characters so far: where the next page would begin."""
        return self._length

    def advanced(self, share: float) -> None:
        """Say how much has been read."""
        if self._advance is not None:
            self._advance(share)

    def heading(self, level: int, text: str) -> None:
        if text := flat(text):
            self.name(level, text, self._append(BlockKind.HEADING, text))

    def name(self, level: int, text: str, start: int) -> None:
        """What begins at `start` is under this heading, without a line of its own for it."""
        if len(self.headings) < _HEADINGS:
            text = text[:_HEADING_CHARACTERS]
            self.headings.append(Heading(level=level, text=text, start=start))

    def add(self, kind: BlockKind, text: str, *, near: bool = False) -> int | None:
        """A block whose lines stay as they are; where it begins, unless it is blank. With `near` it
        follows the one before on the next line."""
        text = clean(text).strip("\n")
        return self._append(kind, text.rstrip(), near=near) if text.strip() else None

    def row(self, cells: Iterable[str], *, first: bool) -> None:
        """One row of a table; `first` is the one that says what the columns are."""
        line = " | ".join(flat(cell) for cell in cells)
        if line.strip("| "):
            self._append(BlockKind.COLUMNS if first else BlockKind.ROW, line)

    def page(self) -> None:
        """What comes now is on the next page."""
        # What separates it from the page before belongs to that one.
        self._separate(None)
        self.page_starts.append(self._length)

    def notice(self, sentence: str) -> None:
        if sentence not in self.notices:
            self.notices.append(sentence)

    def text(self) -> str:
        return "".join(self._parts)

    def _append(self, kind: BlockKind, text: str, *, near: bool = False) -> int:
        self._separate(kind, near=near)
        start = self._length
        self._put(text)
        self.blocks.append(Block(kind=kind, start=start, end=self._length))
        return start

    def _separate(self, kind: BlockKind | None, *, near: bool = False) -> None:
        if not self._parts or self._parts[-1].endswith("\n"):
            return
        last = self.blocks[-1].kind
        alike = kind in _TOGETHER and last is kind
        second = kind is BlockKind.ROW and last is BlockKind.COLUMNS
        self._put("\n" if near or alike or second else "\n\n")

    def _put(self, text: str) -> None:
        self._length += len(text)
        if self._length > self.limits.characters:
            most = self.limits.characters
            refuse(Unreadable.TOO_MUCH_TEXT, f"The file has more than {most:,} characters of text.")
        self._parts.append(text)
