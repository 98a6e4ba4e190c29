"""Who reads files with these settings, and what they are told: the one module that brings settings
and reader processes together. A process for each file, started for it and gone with it.
"""

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

import structlog
import trio

from antiphon.documents import reader_config
from antiphon.documents.reader_config import Limits, ReaderConfig, encode_config
from antiphon.documents.reader_wire import (
    Advanced,
    Cut,
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
    encode_command,
    frame_decoder,
)
from antiphon.documents.refusing import unreadable
from antiphon.errors import ReaderLost, ReaderUnavailable, UnreadableFile
from antiphon.processes.link import Contract, ProcessLink, launch
from antiphon.reading_files import Chunking, Progress, ReadDocument, TextChunk, Unreadable
from antiphon.reading_settings import ReadingSettings
from antiphon.settings import Settings

log = structlog.get_logger(__name__)

ReaderProcess = ProcessLink[ReaderCommand, ReaderFrame]
"""One running reader process. Raises ReaderLost."""

_MODULE = "antiphon.documents.process"
_MIB = 1024 * 1024

CONTRACT: Contract[ReaderCommand, ReaderFrame] = Contract(
    child="reader",
    stderr_event="reader_stderr",
    encode=encode_command,
    decoder=frame_decoder,
    halt=HaltReader(),
    lost=ReaderLost,
)


class Readers:
    """A FileReader. It bounds how many processes there are at once, and holds nothing else."""

    def __init__(self, settings: Callable[[], Settings], *, module: str = _MODULE) -> None:
        self._settings = settings
        self._module = module
        processes = settings().reading.processes
        self._behind = trio.CapacityLimiter(processes)
        self._waited_for = trio.CapacityLimiter(processes)

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
        """As in the port. Raises UnreadableFile, ReaderUnavailable."""
        read = Read(path=str(path), filename=filename, media_type=media_type, chunking=chunking)
        async with self._waited_for if waited_for else self._behind:
            told = _Highest(progress)
            try:
                return await self._attempt(read, waited_for, told)
            except _KilledFromOutside:
                # The kernel, short of memory, or an operator: not the file's fault, unless it
                # happens to the same file again.
                log.warning("reader_killed", again=True)
            try:
                return await self._attempt(read, waited_for, told)
            except _KilledFromOutside as error:
                log.warning("reader_killed", again=False)
                message = "The file's reader was killed twice; the file may take too much memory."
                raise unreadable(Unreadable.CRASHED, message) from error

    async def launch(self, *, waited_for: bool = False) -> ReaderProcess:
        """Start a reader process. Raises ReaderUnavailable."""
        await trio.lowlevel.checkpoint()
        config = config_of(self._settings(), waited_for=waited_for)
        try:
            return launch(CONTRACT, self._module, encode_config(config), {})
        except OSError as error:
            problem = f"cannot start {sys.executable}: {error.strerror}"
            raise ReaderUnavailable(problem) from error

    async def _attempt(self, read: Read, waited_for: bool, progress: "_Highest") -> ReadDocument:
        settings = self._settings().reading
        link = await self.launch(waited_for=waited_for)
        try:
            with trio.move_on_after(settings.wall_s):
                await link.send(read)
                return await _received(link, settings, progress)
            log.warning("reader_too_slow", reader_pid=link.pid, wall_s=settings.wall_s)
            raise unreadable(Unreadable.TOO_SLOW)
        except ReaderLost as error:
            raise _judged(link.status, error) from error
        finally:
            # At once: it has said all that it will, or nobody waits for it any more.
            with trio.CancelScope(shield=True):
                await link.aclose(grace_s=0)


def config_of(settings: Settings, *, waited_for: bool) -> ReaderConfig:
    """What a reader process is told."""
    reading = settings.reading
    return ReaderConfig(
        log_level=settings.log_level,
        nice=0 if waited_for else reading.nice,
        limits=limits(reading),
        faults=settings.faults,
    )


def limits(reading: ReadingSettings) -> Limits:
    """What one file may cost."""
    return Limits(
        cpu_s=reading.cpu_s,
        memory_bytes=reading.memory_mib * _MIB,
        file_bytes=reading.file_mib * _MIB,
        unpacked_bytes=reading.unpacked_mib * _MIB,
        characters=reading.characters,
        pages=reading.pages,
    )


class _KilledFromOutside(Exception):
    """By SIGKILL, which no limit and no parser sends."""


class _Highest:
    """Tells progress, and never less than before, also where a file is read again."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._share = 0.0

    def tell(self, share: float) -> None:
        if self._progress is not None and share > self._share:
            self._share = min(share, 1.0)
            self._progress(self._share)


def _judged(status: int | None, error: ReaderLost) -> Exception:
    """Whose fault it is that a process is gone before it had finished."""
    match status:
        case None | 0 | reader_config.EXIT_BROKEN:
            # It broke the protocol, or closed its connection: whatever the file did to it.
            log.error("reader_broken", reason=error.reason)
            return unreadable(Unreadable.CRASHED)
        case _ if status > 0:
            return ReaderUnavailable(f"reader process {error.reason}")
        case _ if -status == signal.SIGKILL:
            return _KilledFromOutside()
        case _ if -status == signal.SIGXCPU:
            return unreadable(Unreadable.TOO_SLOW)
        case _:
            log.warning("reader_crashed", signal=-status)
            return unreadable(Unreadable.CRASHED)


@dataclass(slots=True)
class _Arriving:
    """A document of which not all frames have come."""

    most: int
    text: str = ""
    characters: int = 0
    pieces: list[str] = field(default_factory=list)
    structure: Structure | None = None
    chunks: list[TextChunk] = field(default_factory=list)

    def add_piece(self, text: str) -> None:
        self.characters += len(text)
        if self.characters > self.most:
            raise ReaderLost("sent more text than it may")
        self.pieces.append(text)

    def add_structure(self, structure: Structure) -> None:
        self.structure = structure
        self.text = "".join(self.pieces)

    def add_cut(self, cut: Cut) -> None:
        last = self.chunks[-1].end if self.chunks else 0
        if self.structure is None or not last < cut.end <= self.characters or cut.start < 0:
            raise ReaderLost("sent a chunk that is none")
        text = self.text[cut.start : cut.end]
        if cut.lead is not None:
            text = f"{self.text[cut.lead[0] : cut.lead[1]]}\n{text}"
        headings = self.structure.headings
        self.chunks.append(
            TextChunk(
                number=len(self.chunks),
                text=text,
                start=cut.start,
                end=cut.end,
                headings=tuple(headings[at].text for at in cut.path if 0 <= at < len(headings)),
                page=cut.page,
            )
        )

    def finished(self, frame: Finished) -> ReadDocument:
        structure = self.structure
        if structure is None or (self.characters, len(self.chunks)) != (
            frame.characters,
            frame.chunks,
        ):
            raise ReaderLost("sent half a document")
        return ReadDocument(
            media_type=structure.media_type,
            text=self.text,
            title=structure.title,
            headings=structure.headings,
            page_starts=structure.page_starts,
            notices=structure.notices,
            chunks=tuple(self.chunks),
        )


async def _received(
    link: ReaderProcess, settings: ReadingSettings, progress: _Highest
) -> ReadDocument:
    """Raises UnreadableFile, ReaderUnavailable, ReaderLost."""
    arriving = _Arriving(settings.characters)
    while True:
        match await link.receive():
            case Advanced(share=share):
                progress.tell(share)
            case Piece(text=text):
                arriving.add_piece(text)
            case Structure() as structure:
                arriving.add_structure(structure)
            case Cuts(cuts=cuts):
                for cut in cuts:
                    arriving.add_cut(cut)
            case Finished() as frame:
                progress.tell(1.0)
                return arriving.finished(frame)
            case Refused(code=code, message=message):
                raise UnreadableFile(code.value, message)
            case Missing(problem=problem):
                raise ReaderUnavailable(f"the file can't be opened: {problem}")
            case frame:
                assert_never(frame)
