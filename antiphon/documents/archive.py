"""A file that is an archive of parts, as a DOCX is: they are unpacked one at a time, piece by
piece, and counted, whatever the archive says of their size."""

import io
import zipfile
import zlib
from collections.abc import Iterator

from antiphon.documents.reader_config import Limits
from antiphon.documents.refusing import refuse
from antiphon.reading_files import Unreadable

_ENTRIES = 10_000
_PIECE = 256 * 1024
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Those that office documents may use (ECMA-376 part 2, annex B). The standard library unpacks the
others all at once."""
_ENCRYPTED = 0x1
"""Bit 0 of an entry's general purpose flag (APPNOTE 4.4.4)."""


class Archive:
    """The parts of a ZIP file, by their names."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
            refuse(Unreadable.DAMAGED)
        if len(self._zip.filelist) > _ENTRIES:
            refuse(Unreadable.TOO_LARGE, f"The file has more than {_ENTRIES:,} parts.")
        self._left = self._most = limits.unpacked_bytes

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._zip.namelist())

    def pieces(self, name: str) -> Iterator[bytes]:
        """The unpacked part. Raises UnreadableFile, also when all that was unpacked is too much."""
        entry = self._zip.getinfo(name)
        if entry.flag_bits & _ENCRYPTED:
            refuse(Unreadable.ENCRYPTED)
        if entry.compress_type not in _METHODS:
            refuse(Unreadable.DAMAGED)
        try:
            with self._zip.open(entry) as part:
                while piece := part.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        most = self._most // 2**20
                        refuse(Unreadable.TOO_LARGE, f"The file unpacks to more than {most} MiB.")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError):
            refuse(Unreadable.DAMAGED)
