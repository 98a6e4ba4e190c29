"""The settings of the processes that read files: the section `reading`, read and checked by
`settings`."""

import msgspec

from antiphon.errors import SettingsError

_SMALLEST_MIB = 256
"""Python, PDFium and an ordinary file take less."""


class ReadingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one file may cost its reader. Whatever needs more is refused, and its owner told so:
    only hostile files do."""

    processes: int = 1
    """How many files are read at once behind everything else; as many again for people who
    wait."""
    wall_s: float = 300.0
    """The longest that a file may take. It is read behind everything else, so on a busy machine
    much of that is waiting."""
    cpu_s: float = 60.0
    """What it may take of a core: 200 pages take a second."""
    memory_mib: int = 1024
    file_mib: int = 64
    """The largest file."""
    unpacked_mib: int = 256
    """The most that is unpacked of a file that is an archive, as a DOCX is."""
    characters: int = 10_000_000
    """The most text that a file may have: twice the Bible."""
    pages: int = 5_000
    nice: int = 19
    """How far a reader is behind everything else, where nobody waits for the file; 0…19."""


def check_reading(settings: ReadingSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    for name in ("processes", "file_mib", "unpacked_mib", "characters", "pages"):
        if getattr(settings, name) < 1:
            raise SettingsError(f"reading.{name}", "must be at least 1")
    for name in ("wall_s", "cpu_s"):
        if not 1 <= getattr(settings, name) < float("inf"):
            raise SettingsError(f"reading.{name}", "must be at least 1")
    if settings.memory_mib < _SMALLEST_MIB:
        raise SettingsError("reading.memory_mib", f"must be at least {_SMALLEST_MIB}")
    if not 0 <= settings.nice <= 19:
        raise SettingsError("reading.nice", "must be from 0 to 19")
