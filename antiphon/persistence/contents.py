"""File contents in a folder, each under its SHA-256. Pure file work in threads; knows no database.

Several servers may share the folder. Nothing is locked between them: an upload makes sure of its
content again once its record is written, and a removal looks for a record again once the content
is out of the way, so whichever comes last puts things right.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import trio

from antiphon.errors import StorageFull, StoreFailed
from antiphon.ports import ContentDraft, ContentReader, StoredContent

R = TypeVar("R")

_NAME = re.compile(r"[0-9a-f]{64}")
_BUFFER_BYTES = 1024 * 1024
"""A thread for every chunk off the network would cost more than the write."""
_READ_BYTES = 256 * 1024
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ABANDONED_S = 60.0
"""A removal takes milliseconds: one this old lost its server on the way."""
_THREADS = 8
"""Disks gain nothing from more, and the rest of the server's threads stay free."""


class FolderContents:
    """Contents under one folder: `ab/abcdef…`, besides `drafts/` and `removed/`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = trio.CapacityLimiter(_THREADS)

    async def prepare(self) -> int:
        """Make the folder, and clear what servers that died left on the way in or out; how many
        of them. Raises StorageFull, StoreFailed."""
        return await self._in_thread(self._prepare)

    async def draft(self) -> ContentDraft:
        """Raises StorageFull, StoreFailed."""
        return _Draft(self, await self._in_thread(self._open_draft))

    async def open(self, sha256: str) -> ContentReader | None:
        """Raises StoreFailed."""
        descriptor = await self._in_thread(_open_descriptor, self.path(sha256))
        # Not made in the thread, which would keep it alive for a while.
        return None if descriptor is None else _Reader(descriptor)

    async def remove(self, sha256: str, is_unused: Callable[[], Awaitable[bool]]) -> bool:
        """As the port says. Once begun it is not cancelled half-way."""
        if not await is_unused():
            return False
        aside = self._folder / "removed" / f"{sha256}-{secrets.token_hex(8)}"
        with trio.CancelScope(shield=True):  # is_unused is bounded by the store's own deadline
            if not await self._in_thread(_move, self.path(sha256), aside):
                return True
            try:
                stays = not await is_unused()
            except BaseException:
                with trio.move_on_after(_ABANDONED_S, shield=True):
                    await self._in_thread(_put_back, aside, self.path(sha256))
                raise
            if stays:
                await self._in_thread(_put_back, aside, self.path(sha256))
            else:
                await self._in_thread(aside.unlink, True)
        return not stays

    async def older_than(self, before_ms: int) -> tuple[str, ...]:
        """Raises StoreFailed."""
        return await self._in_thread(self._older_than, before_ms / 1000)

    def path(self, sha256: str) -> Path:
        """Where a content lies. Raises ValueError for what is no hash, so that no record can name
        another file."""
        if _NAME.fullmatch(sha256) is None:
            raise ValueError(f"not a SHA-256: {sha256!r:.100}")
        return self._folder / sha256[:2] / sha256

    async def _in_thread(self, work: Callable[..., R], *args: object) -> R:
        with _told_apart():
            return await trio.to_thread.run_sync(work, *args, limiter=self._threads)

    def _prepare(self) -> int:
        for name in ("drafts", "removed"):
            (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        cleared = sum(map(_clear_draft, list((self._folder / "drafts").iterdir())))
        for aside in list((self._folder / "removed").iterdir()):
            # Back among the others: only the database can tell, and the sweep asks it.
            if aside.stat().st_ctime < time.time() - _ABANDONED_S:
                _put_back(aside, self.path(aside.name.partition("-")[0]))
                cleared += 1
        return cleared

    def _open_draft(self) -> BinaryIO:
        """A new file, locked as long as this server lives. One that starts may take it for
        abandoned before it is locked: then it is gone, and the next one is tried."""
        while True:
            path = self._folder / "drafts" / secrets.token_hex(16)
            file = open(path, "xb", buffering=0, opener=_private)  # noqa: SIM115 - kept open
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():
                return file
            file.close()

    def _older_than(self, before: float) -> tuple[str, ...]:
        return tuple(
            path.name
            for path in sorted(self._folder.glob("[0-9a-f][0-9a-f]/*"))
            if _NAME.fullmatch(path.name) and _touched(path) < before
        )


class _Draft:
    """Writes to a file of its own, hashing as it goes; its first name goes when it is closed."""

    def __init__(self, contents: FolderContents, file: BinaryIO) -> None:
        self._contents = contents
        self._file = file
        self._hash = hashlib.sha256()
        self._size = 0
        self._buffer = bytearray()
        self._path: Path | None = None
        self._is_closed = False

    async def write(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) >= _BUFFER_BYTES:
            await self._contents._in_thread(self._flush)

    async def commit(self) -> StoredContent:
        await self._contents._in_thread(self._commit)
        return StoredContent(sha256=self._hash.hexdigest(), size=self._size)

    async def confirm(self) -> None:
        await self._contents._in_thread(self._link)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            Path(self._file.name).unlink(missing_ok=True)
            self._file.close()

    def _flush(self) -> None:
        view = memoryview(bytes(self._buffer))
        self._buffer.clear()
        self._hash.update(view)
        self._size += len(view)
        while view:  # an unbuffered write may take a part
            view = view[self._file.write(view) :]

    def _commit(self) -> None:
        self._flush()
        os.fsync(self._file.fileno())
        self._path = self._contents.path(self._hash.hexdigest())
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._link()
        _sync_folder(self._path.parent)

    def _link(self) -> None:
        """A second name, which appears at once and whole; or the time of the first upload of the
        same bytes made new, so that no sweep takes them for forgotten."""
        assert self._path is not None, "committed first"
        while True:
            try:
                return os.link(self._file.name, self._path)
            except FileExistsError:
                try:
                    return os.utime(self._path)
                except FileNotFoundError:  # removed between the two
                    continue


class _Reader:
    """A descriptor, which outlives the file's name. Closed at the latest when nobody has it."""

    def __init__(self, descriptor: int) -> None:
        self.size = os.fstat(descriptor).st_size
        self._descriptor = descriptor
        self._offset = 0
        self._closer = weakref.finalize(self, os.close, descriptor)

    async def read(self) -> bytes:
        with _told_apart():
            data = await trio.to_thread.run_sync(
                os.pread, self._descriptor, _READ_BYTES, self._offset
            )
        self._offset += len(data)
        return data

    def close(self) -> None:
        self._closer()


@contextmanager
def _told_apart() -> Iterator[None]:
    """Disk errors in the store's words."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise (StorageFull if error.errno in _FULL else StoreFailed)(reason) from error


def _open_descriptor(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _clear_draft(path: Path) -> int:
    """Remove a draft whose server is gone: its lock went with it."""
    try:
        file = open(path, "rb")  # noqa: SIM115 - only its opening may fail here
    except FileNotFoundError:  # its server is well, and done with it
        return 0
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        path.unlink(missing_ok=True)
    return 1


def _move(path: Path, aside: Path) -> bool:
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    return True


def _put_back(aside: Path, path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        os.link(aside, path)
    except FileExistsError:  # an upload of the same bytes was quicker
        pass
    except FileNotFoundError:  # another server put it back
        return
    aside.unlink(missing_ok=True)


def _touched(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # removed while we looked
        return time.time()


def _sync_folder(folder: Path) -> None:
    """A name is durable once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
