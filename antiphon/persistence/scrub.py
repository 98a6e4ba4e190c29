"""Overwrites what SQLite leaves behind in its own pages, which `secure_delete` doesn't reach: where
a page is filled anew, cells that move to another one stay in its unused middle as they were, and
there they stay when their rows are deleted. Works on the file itself, between transactions; what it
changes means nothing to SQLite (https://sqlite.org/fileformat2.html#b_tree_pages).
"""

import os
import struct
from pathlib import Path

_READ_BYTES = 1024 * 1024
_HEADER = struct.Struct(">HHxxB")
"""From offset 16: page size and, at 20, the bytes reserved at the end of each page."""
_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_HEADER_BYTES = {_INDEX_INTERIOR: 12, _TABLE_INTERIOR: 12, _INDEX_LEAF: 8, _TABLE_LEAF: 8}
_CELLS = struct.Struct(">HH")
_FIRST_PAGE_SKIPS = 100
_TOO_MANY_PAGES = 0x02000000
"""Pages of text that go on elsewhere begin with a page's number; from here on that could be taken
for the kind of a page."""


class PageScrubber:
    """Goes round the file, some pages at a time. Its descriptor stays open as long as the database:
    closing any one would give up all locks that this process has on the file, SQLite's too."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._wal = path.with_name(f"{path.name}-wal")
        self._next = 0
        self._stop = 0
        self._wrapped = False
        self._wrote = False
        self.done = False
        """Whether every page was looked at since text was deleted. Not so at first: who knows what
        the last process left."""

    def begin(self) -> None:
        """Text was deleted: every page has to be looked at from now on."""
        self._stop, self._wrapped, self.done = self._next, False, False

    def wal_is_empty(self) -> bool:
        """Whether the file itself has all that was committed."""
        return not self._wal.exists() or not self._wal.stat().st_size

    def some(self, most_bytes: int) -> bool:
        """Look at the next pages; whether any was changed. To be called while nobody else can write
        to the file, and with an empty WAL."""
        head = os.pread(self._file, _FIRST_PAGE_SKIPS, 0)
        size = page_size(head, os.fstat(self._file).st_size)
        if size is None:
            self.done = True
            return False
        changed, looked = False, 0
        while looked < most_bytes and not self.done:
            data = os.pread(self._file, _READ_BYTES, self._next)
            changed = self._scrub(data, size, size - head[20]) or changed
            looked += len(data)
            self._next += len(data)
            if len(data) < _READ_BYTES:
                self._next, self._wrapped = 0, True
            self.done = self._wrapped and self._next >= self._stop
        self._wrote = self._wrote or changed
        if self.done and self._wrote:
            os.fdatasync(self._file)
            self._wrote = False
        return changed

    def close(self) -> None:
        os.close(self._file)

    def _scrub(self, data: bytes, size: int, usable: int) -> bool:
        changed = False
        for start in range(0, len(data) - size + 1, size):
            place = self._next + start
            found = residue(data[start : start + size], usable, is_first=place == 0)
            if found is not None:
                os.pwrite(self._file, bytes(found[1] - found[0]), place + found[0])
                changed = True
        return changed


def page_size(head: bytes, file_bytes: int) -> int | None:
    """None where pages can't be told apart: no database yet, one that moves its pages about
    (auto_vacuum), or a file beyond all expectation."""
    if len(head) < _FIRST_PAGE_SKIPS or any(head[52:56]):
        return None
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    return None if file_bytes // size >= _TOO_MANY_PAGES else size


def residue(page: bytes, usable: int, *, is_first: bool) -> tuple[int, int] | None:
    """From where to where the page has something between its list of cells and the cells; None
    where there is nothing, or the page is of another kind."""
    head = _FIRST_PAGE_SKIPS if is_first else 0
    length = _HEADER_BYTES.get(page[head])
    if length is None:
        return None
    cells, end = _CELLS.unpack_from(page, head + 3)
    start = head + length + 2 * cells
    end = end or 65536
    if not start < end <= usable:
        return None
    return (start, end) if page[start:end] != bytes(end - start) else None
