"""What a file says, as values: its text with the structure that it shows, and the chunks that are
found and shown as one. The reading of files, said at the user's side; nobody who asks parses
anything.

Positions are characters of `ReadDocument.text`, the end exclusive.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

EXTRACTOR = "1"
"""Which reader this is. It changes when the same bytes would be read, or cut, in another way: a
document that another one has made is made anew."""

MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS = 100, 4096


class BlockKind(enum.StrEnum):
    """What a stretch of text is, as far as it matters where it may be cut."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    """Of a list."""
    COLUMNS = "columns"
    """The first row of a table, which mostly says what its columns are."""
    ROW = "row"
    """Of a table, in one line."""
    CODE = "code"


class Block(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A stretch of the text that belongs together."""

    kind: BlockKind
    start: int
    end: int


class Heading(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """`level` is 1 for the widest. It holds until the next one of its level or a wider one."""

    level: int
    text: str
    start: int


class TextChunk(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A piece of a document. `text` is what stands from `start` to `end`, for a table after the row
    that says what its columns are. `page` counts from 1, where there are pages; `headings` are
    those that it stands under, the widest first."""

    number: int
    text: str
    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None


class Chunking(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How a text is cut: the `static` strategy of OpenAI's vector stores, whose own default these
    numbers are. Tokens are estimated, as no one vocabulary is the right one."""

    max_tokens: int = 800
    overlap_tokens: int = 400
    """How much of a chunk's end the next one begins with, where no heading is between them."""

    def problem(self) -> str | None:
        """Why a text can't be cut like this, for people."""
        if not MIN_CHUNK_TOKENS <= self.max_tokens <= MAX_CHUNK_TOKENS:
            return f"must be from {MIN_CHUNK_TOKENS} to {MAX_CHUNK_TOKENS} tokens"
        if not 0 <= self.overlap_tokens <= self.max_tokens // 2:
            return "the overlap must be at most half of the chunk"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """What was read from one file. `media_type` is what the file was found to be, whatever it was
    called. `notices` are sentences for people: what was left out, or had to be guessed."""

    media_type: str
    text: str
    title: str | None = None
    headings: tuple[Heading, ...] = ()
    page_starts: tuple[int, ...] = ()
    """Where each page begins; empty where there are none."""
    notices: tuple[str, ...] = ()
    chunks: tuple[TextChunk, ...] = ()


class Unreadable(enum.StrEnum):
    """Why a file can't be read: the file's own fault, so that reading it again is no use."""

    EMPTY = "empty_file"
    UNSUPPORTED = "unsupported_file"
    """Of a kind that isn't read."""
    DAMAGED = "damaged_file"
    """Not what it begins as: cut short, or garbage."""
    ENCODING = "unknown_encoding"
    ENCRYPTED = "encrypted_file"
    FORBIDDEN = "forbidden_content"
    """It asks for what a reader doesn't do, such as fetching other files."""
    NO_TEXT = "no_text"
    TOO_LARGE = "file_too_large"
    """The file, or what it unpacks to."""
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    TOO_DEEP = "too_deeply_nested"
    TOO_SLOW = "took_too_long"
    TOO_MUCH_MEMORY = "too_much_memory"
    CRASHED = "reader_crashed"

    @property
    def api_code(self) -> str:
        """The `last_error.code` of a file in a vector store, as OpenAI has them."""
        return "unsupported_file" if self is Unreadable.UNSUPPORTED else "invalid_file"


Progress = Callable[[float], None]
"""Told how much has been read, 0…1, never less than before; called on the Trio thread."""


class FileReader(Protocol):
    """Reads files, each in a process of its own, which is gone afterwards."""

    async def read(
        self,
        path: Path,
        filename: str,
        media_type: str | None = None,
        *,
        chunking: Chunking = Chunking(),
        waited_for: bool = False,
        progress: Progress | None = None,
    ) -> ReadDocument:
        """What the file says, cut into chunks. `filename` and `media_type` are hints where the
        content doesn't tell; `waited_for` says that a person waits, so that it isn't done behind
        everything else. Cancelling kills the process.

        Raises UnreadableFile: the file's fault, for good. ReaderUnavailable: not the file's, so it
        can be tried again.
        """
