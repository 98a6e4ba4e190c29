"""A reader's process: `python -m antiphon.documents.process --fd N --config JSON`.

It reads one file and ends, so that no file ever shares a process with somebody else's. It has one
thread, opens the file itself, and from then on nothing else (`confinement`).
"""

import argparse
import codecs
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import assert_never

import structlog

from antiphon import faults
from antiphon.documents.building import Advance, DocumentBuilder
from antiphon.documents.chunking import cut
from antiphon.documents.confinement import confine, limit
from antiphon.documents.decoding import LIKELY, decode
from antiphon.documents.reader_config import EXIT_BROKEN, Limits, ReaderConfig, decode_config
from antiphon.documents.reader_wire import (
    Advanced,
    Cuts,
    Finished,
    HaltReader,
    Missing,
    Piece,
    Read,
    ReaderCommand,
    ReaderFrame,
    Refused,
    Structure,
    command_decoder,
    encode_frame,
)
from antiphon.documents.reading import read_document
from antiphon.documents.refusing import unreadable
from antiphon.errors import ReaderLost, UnreadableFile
from antiphon.fault_plan import Site
from antiphon.processes.channel import Channel, ServerGone
from antiphon.processes.settling import settle_in
from antiphon.reading_files import Chunking, Unreadable

log = structlog.get_logger(__name__)

ReadFile = Callable[[bytes, str, str | None, Limits, Advance], DocumentBuilder]

_PIECE = 200_000
"""Characters of a frame, far below what a frame may have."""
_CUTS = 1_000
_ADVANCE_S = 0.2
_FOR_EVER_S = 10.0**6


def main(read: ReadFile = read_document) -> None:
    """The command line of a reader; `read` takes the place of the real one in tests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--config", type=decode_config, required=True)
    arguments = parser.parse_args()
    sys.exit(serve(socket.socket(fileno=arguments.fd), arguments.config, read))


def serve(connection: socket.socket, config: ReaderConfig, read: ReadFile) -> int:
    """Read one file over this connection; the exit status of its process."""
    settle_in(config.log_level)
    os.nice(config.nice)
    channel = Channel(connection, command_decoder())
    try:
        with faults.from_setting(config.faults):
            faults.maybe(Site.READER_START)
            _load_all()
            while not (commands := channel.receive(_FOR_EVER_S)):
                pass
            match commands[0]:
                case Read():
                    Reader(channel, config.limits, read).read(commands[0])
                case HaltReader():
                    pass
                case _:
                    assert_never(commands[0])
            while channel.backlog_bytes:
                channel.flush(_FOR_EVER_S)
    except ServerGone:
        log.info("server_gone")
    except ReaderLost as error:
        log.error("reader_gives_up", reason=error.reason)
        return EXIT_BROKEN
    except MemoryError:
        # Even for saying so there was too little.
        return EXIT_BROKEN
    return 0


class Reader:
    """The reading of one file, as its frames."""

    def __init__(self, channel: Channel[ReaderCommand], limits: Limits, read: ReadFile) -> None:
        self._channel = channel
        self._limits = limits
        self._read_file = read
        self._advanced = 0.0
        self._next = time.monotonic() + _ADVANCE_S

    def read(self, read: Read) -> None:
        """Say all that comes of it. Raises ServerGone."""
        limit(self._limits)
        try:
            with Path(read.path).open("rb") as file:
                data = file.read(self._limits.file_bytes + 1)
        except OSError as error:
            self._say(Missing(problem=error.strerror or type(error).__name__))
            return
        faults.maybe(Site.READER_FILE)
        if not confine():
            log.info("reader_not_confined")
        while faults.strikes(Site.READER_HANG):
            time.sleep(_FOR_EVER_S)
        refused = self._attempt(
            lambda: self._tell(
                self._read_file(data, read.filename, read.media_type, self._limits, self._advance),
                read.chunking,
            )
        )
        # Only here, where all that the attempt had taken is given back.
        if refused is not None:
            self._say(Refused(code=Unreadable(refused.code), message=refused.message))

    def _attempt(self, attempt: Callable[[], None]) -> UnreadableFile | None:
        try:
            attempt()
        except UnreadableFile as error:
            return UnreadableFile(error.code, error.message)
        except MemoryError:
            return unreadable(Unreadable.TOO_MUCH_MEMORY)
        except RecursionError:
            return unreadable(Unreadable.TOO_DEEP)
        except ServerGone:
            raise
        except Exception as error:
            # A defect in a parser, or what a file has made of it: for the file's owner it is the
            # same, and for us a line with its place and no word of the file.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            log.error("reading_failed", error=type(error).__name__, at=place)
            return unreadable(Unreadable.CRASHED)
        return None

    def _tell(self, builder: DocumentBuilder, chunking: Chunking) -> None:
        text = builder.text()
        for start in range(0, len(text), _PIECE):
            self._say(Piece(text=text[start : start + _PIECE]))
        self._say(
            Structure(
                media_type=builder.media_type,
                title=builder.title,
                headings=tuple(builder.headings),
                page_starts=tuple(builder.page_starts),
                notices=tuple(builder.notices),
            )
        )
        cuts = cut(text, builder.blocks, builder.headings, builder.page_starts, chunking)
        chunks = 0
        while batch := tuple(islice(cuts, _CUTS)):
            chunks += len(batch)
            self._say(Cuts(cuts=batch))
            self._advance(0.9 + 0.1 * batch[-1].end / len(text))
        self._say(Finished(characters=len(text), chunks=chunks))

    def _advance(self, share: float) -> None:
        now = time.monotonic()
        if now >= self._next and share > self._advanced:
            self._advanced, self._next = share, now + _ADVANCE_S
            self._say(Advanced(share=share))

    def _say(self, frame: ReaderFrame) -> None:
        self._channel.send(encode_frame(frame))


def _load_all() -> None:
    """What Python would look for in files when it is first needed, and then may not open."""
    for name in (*LIKELY, "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "idna", "cp437"):
        codecs.lookup(name)
    decode("Größe, „Übung“ und Straßen – naïve café, 20 €.\n".encode("cp1252") * 4)


if __name__ == "__main__":
    main()
