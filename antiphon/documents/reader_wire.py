"""What the server and a reader process say to each other: the frames of that contract, as bytes.

One Read, then Advanced now and then, and at the end Refused, Missing, or the document: its text in
pieces, its structure, its chunks, Finished. Whatever is no such frame raises ReaderLost.
"""

import msgspec

from antiphon.errors import ReaderLost
from antiphon.processes.frames import FrameDecoder, encode
from antiphon.reading_files import Chunking, Heading, Unreadable

# ── server → reader ──────────────────────────────────────────────────────────────────────────────


class Read(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="read"):
    """The one file that this process is there for."""

    path: str
    filename: str
    media_type: str | None
    chunking: Chunking


class HaltReader(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="halt"):
    """End the process in order."""


ReaderCommand = Read | HaltReader

# ── reader → server ──────────────────────────────────────────────────────────────────────────────


class Advanced(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="advanced"):
    """How much has been read, 0…1."""

    share: float


class Piece(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="piece"):
    """The next piece of the text."""

    text: str


class Structure(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="structure"):
    """All that is known of the text and isn't in it."""

    media_type: str
    title: str | None
    headings: tuple[Heading, ...]
    page_starts: tuple[int, ...]
    notices: tuple[str, ...]


class Cut(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A chunk: where it is, and the part of a table that comes before it. `path` are places among
    the headings."""

    start: int
    end: int
    lead: tuple[int, int] | None
    path: tuple[int, ...]
    page: int | None


class Cuts(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="cuts"):
    """The next chunks, in order."""

    cuts: tuple[Cut, ...]


class Finished(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="finished"):
    """The document is whole: it has so many characters and chunks."""

    characters: int
    chunks: int


class Refused(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="refused"):
    """Nothing can be made of the file."""

    code: Unreadable
    message: str


class Missing(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag="missing"):
    """The file isn't there, or can't be opened."""

    problem: str


ReaderFrame = Advanced | Piece | Structure | Cuts | Finished | Refused | Missing


def encode_command(command: ReaderCommand) -> bytes:
    """Raises ReaderLost when it is too long to send."""
    return encode(command, ReaderLost)


def encode_frame(frame: ReaderFrame) -> bytes:
    """Raises ReaderLost when it is too long to send."""
    return encode(frame, ReaderLost)


def command_decoder() -> FrameDecoder[ReaderCommand]:
    """The reader's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(ReaderCommand), ReaderLost)


def frame_decoder() -> FrameDecoder[ReaderFrame]:
    """The server's end."""
    return FrameDecoder(msgspec.msgpack.Decoder(ReaderFrame), ReaderLost)
