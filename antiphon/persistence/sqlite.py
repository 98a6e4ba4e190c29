"""The store's database as one SQLite file, through aiosqlite.

A unit of work runs from BEGIN to COMMIT inside its connection's thread, in one hop: nothing that
happens to its caller can leave a transaction open (aiosqlite's statements go on when their caller
is cancelled). One connection writes, a few read, and readers never wait for the writer (WAL).
"""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import aiosqlite
import structlog

from antiphon import faults
from antiphon.errors import StorageFull, StoreError, StoreFailed, StoreUnavailable
from antiphon.fault_plan import Site
from antiphon.persistence.codec import to_json
from antiphon.persistence.port import (
    Dialect,
    DuplicateKey,
    MissingReference,
    Row,
    Statement,
    Work,
    Write,
    clean,
)
from antiphon.persistence.scrub import PageScrubber
from antiphon.persistence.sqlite_dialect import DIALECT, words_of
from antiphon.persistence.word_index import WordIndex, problems

log = structlog.get_logger(__name__)

R = TypeVar("R")

Durability = Literal["normal", "full"]

_READERS = 3
"""Reads at once; each has a thread and a page cache of its own."""
_BUSY_MS = 5_000
"""How long one waits for another process's write."""
_TIDY_BUSY_MS = 200
"""A reader that stays longer than this in an old state makes the truncation wait for the next."""
_WRITER_CLOSE_S = 5.0
"""A unit of work that still writes when the store closes is interrupted after this."""
_READER_CLOSE_S = 0.2
"""Nobody waits for an answer any more."""
_JOIN_S = 1.0
_CACHE_KIB = 32 * 1024
_SCRUB_BYTES = 8 * 1024 * 1024
"""Looked at in one go, while others wait to write: some milliseconds."""
_MERGE_S = 1.5
_SCRUB_S = 3.0
"""Both end within a store's deadline; the rest of a file of gigabytes is for the next clean-up."""


def store_error(error: sqlite3.Error) -> StoreError:
    """What an error of the library means to the core."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code in {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}:
        return DuplicateKey(str(error))
    if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        return MissingReference(str(error))
    if code == sqlite3.SQLITE_FULL:
        return StorageFull(str(error))
    if code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT}:
        return StoreUnavailable(str(error))
    return StoreFailed(str(error))


class SqliteTransaction:
    """A connection within a transaction, in its thread. Its methods wait for nothing, so that a
    unit of work runs through without a stop."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: Statement, *args: Any) -> Sequence[Row]:
        return self._run(sql, args).fetchall()

    async def fetchrow(self, sql: Statement, *args: Any) -> Row | None:
        rows = self._run(sql, args).fetchall()
        return rows[0] if rows else None

    async def execute(self, sql: Statement, *args: Any) -> int:
        return self._run(sql, args).rowcount

    async def executemany(self, sql: Statement, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            self._connection.executemany(words_of(sql), map(_arguments, rows))
        except sqlite3.IntegrityError as error:
            raise store_error(error) from error
        if self._connection.in_transaction:
            faults.maybe(Site.STORE_WRITE, sql.name)

    async def batch(self, writes: Sequence[Write]) -> None:
        for sql, args in writes:
            self._run(sql, args)

    def _run(self, sql: Statement, args: tuple[Any, ...]) -> sqlite3.Cursor:
        before = self._connection.total_changes
        try:
            cursor = self._connection.execute(words_of(sql), _arguments(args))
        except sqlite3.IntegrityError as error:
            raise store_error(error) from error
        if self._connection.total_changes != before:
            faults.maybe(Site.STORE_WRITE, sql.name)
        return cursor


class SqliteDatabase:
    """One open file. Asyncio-flavoured; made by `open_sqlite`, which also closes it."""

    def __init__(
        self, writer: aiosqlite.Connection, readers: Sequence["_Reader"], scrubber: PageScrubber
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._scrubber = scrubber
        self._index = WordIndex()
        self._tidying = asyncio.Lock()
        self._asked = 0
        self._tidied = 0
        self._untidy = True

    @property
    def dialect(self) -> Dialect:
        return DIALECT

    async def read(self, work: Work[R]) -> R:
        reader = min(self._readers, key=lambda each: each.pending)
        reader.submitted += 1
        return await _call(reader.connection, partial(reader.run, work))

    async def write(self, work: Work[R]) -> R:
        return await _call(self._writer, partial(_unit, self._writer, "BEGIN IMMEDIATE", work))

    async def tidy(self, *, deleted: bool = True) -> None:
        """Merge what the full-text index has removed, overwrite what `secure_delete` leaves, and
        empty the WAL, in which deleted text still stands. Put off while a reader stands in an older
        state. Those who ask at the same time share what comes after them."""
        self._asked += deleted
        mine = self._asked
        async with self._tidying:
            if self._tidied < mine or self._untidy:
                covered = self._asked
                if covered > self._tidied:
                    self._scrubber.begin()
                await self._tidy()
                self._tidied = covered

    async def _tidy(self) -> None:
        clock = asyncio.get_running_loop().time
        began, is_merged = clock(), False
        while not is_merged and clock() < began + _MERGE_S:
            is_merged = await _call(self._writer, partial(self._index.some, _native(self._writer)))
        is_clean = True
        while is_clean:
            is_clean = await _call(self._writer, partial(_tidied, self._writer, self._scrubber))
            if self._scrubber.done or clock() > began + _SCRUB_S:
                break
        self._untidy = not (is_merged and is_clean and self._scrubber.done)
        if self._untidy:
            log.info("tidying_put_off", index_is_merged=is_merged, wal_is_empty=is_clean)

    @property
    def untidy(self) -> bool:
        """Whether deleted text may still stand in the full-text index, in the WAL, or between the
        rows of a page."""
        return self._untidy

    @property
    def in_transaction(self) -> bool:
        return self._writer.in_transaction

    async def health(self) -> list[str]:
        def check(connection: sqlite3.Connection) -> list[str]:
            damage = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
            if damage != ["ok"]:
                return damage
            return problems(connection) + [
                f"a row of {table} refers to a missing row of {parent}"
                for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check")
            ]

        reader = self._readers[0].connection
        return await _call(reader, lambda: check(_native(reader)))


class _Reader:
    """A reading connection and how much waits for it. Each count has one writer: the loop, or the
    connection's thread."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self.connection = connection
        self.submitted = 0
        self._done = 0

    @property
    def pending(self) -> int:
        return self.submitted - self._done

    def run(self, work: Work[R]) -> R:
        try:
            return _unit(self.connection, "BEGIN", work)
        finally:
            self._done += 1


async def open_sqlite(
    path: Path, stack: AsyncExitStack, *, durability: Durability = "normal"
) -> SqliteDatabase:
    """Open or make the file; the stack closes it. Raises StoreFailed, StoreUnavailable."""
    _make_file(path)
    scrubber = PageScrubber(path)
    stack.callback(scrubber.close)  # the last one: see there
    writer = await _connect(path, stack, _WRITER_CLOSE_S)
    try:
        await _call(writer, partial(_prepare_writer, writer, durability))
    except StorageFull:
        raise
    except StoreFailed as error:  # it may be any file, which SQLite doesn't name
        raise StoreFailed(f"{path}: {error.reason}") from error
    readers = []
    for _ in range(_READERS):
        connection = await _connect(path, stack, _READER_CLOSE_S)
        await _call(connection, partial(_prepare_reader, connection))
        readers.append(_Reader(connection))
    return SqliteDatabase(writer, readers, scrubber)


def _make_file(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Conversations are nobody else's business; SQLite gives its other files the same mode.
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreFailed(f"{path}: {error.strerror}") from error


async def _connect(path: Path, stack: AsyncExitStack, patience_s: float) -> aiosqlite.Connection:
    # isolation_level None: transactions are begun and ended here, and by nobody else.
    connection = aiosqlite.connect(path, isolation_level=None, cached_statements=512)
    # Its thread isn't a daemon and would keep the interpreter alive (aiosqlite #290).
    stack.push_async_callback(_close, connection, patience_s)
    try:
        await connection
    except sqlite3.Error as error:
        raise store_error(error) from error
    return connection


async def _close(connection: aiosqlite.Connection, patience_s: float) -> None:
    """Let what runs end, or interrupt it; then the thread ends. Its last act doesn't await, so it
    is done also when the loop is being cancelled."""
    native, thread = connection._connection, connection._thread
    ended = connection.stop() if native is not None else None
    try:
        if ended is not None:
            await asyncio.wait_for(asyncio.shield(ended), patience_s)
    except TimeoutError:
        log.warning("interrupted_at_close")
    finally:
        if native is not None:
            with suppress(sqlite3.ProgrammingError):  # closed, as it should be
                native.interrupt()
        if thread.is_alive():
            thread.join(_JOIN_S)


def _native(connection: aiosqlite.Connection) -> sqlite3.Connection:
    return connection._conn


async def _call(connection: aiosqlite.Connection, function: Callable[[], R]) -> R:
    """Run it in the connection's thread. aiosqlite has no public name for that."""
    try:
        result: R = await connection._execute(function)  # type: ignore[no-untyped-call]
        return result
    except sqlite3.Error as error:
        raise store_error(error) from error
    except ValueError as error:
        if "onnection closed" in str(error) or "no active connection" in str(error):
            raise StoreUnavailable("the database is closed", refused=True) from error
        raise


def _unit(connection: aiosqlite.Connection, begin: str, work: Work[R]) -> R:
    """A whole transaction, in the connection's thread."""
    native = _native(connection)
    native.execute(begin)
    try:
        result = _driven(cast("Coroutine[Any, Any, R]", work(SqliteTransaction(native))))
        if begin != "BEGIN":
            faults.maybe(Site.STORE_COMMIT)
        native.execute("COMMIT")
    except BaseException:
        # A full disk has rolled back already.
        if native.in_transaction:
            native.execute("ROLLBACK")
        raise
    if begin != "BEGIN":
        faults.maybe(Site.STORE_COMMITTED)
    return result


def _driven(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that never stops to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("R", end.value)
    work.close()
    raise RuntimeError("a unit of work may await nothing but its transaction")


def _prepare_writer(connection: aiosqlite.Connection, durability: Durability) -> None:
    native = _native(connection)
    _prepare(native)
    native.execute(f"PRAGMA synchronous = {durability.upper()}")
    native.execute("PRAGMA journal_mode = WAL")
    native.execute("PRAGMA secure_delete = ON")
    native.execute(f"PRAGMA journal_size_limit = {64 * 1024 * 1024}")


def _prepare_reader(connection: aiosqlite.Connection) -> None:
    native = _native(connection)
    _prepare(native)
    native.execute("PRAGMA query_only = ON")


def _prepare(native: sqlite3.Connection) -> None:
    native.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    native.execute("PRAGMA foreign_keys = ON")
    native.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    native.execute("PRAGMA temp_store = MEMORY")


def _tidied(connection: aiosqlite.Connection, scrubber: PageScrubber) -> bool:
    """Empty the WAL and scrub some pages. False when somebody else was in the way."""
    native = _native(connection)
    native.execute(f"PRAGMA busy_timeout = {_TIDY_BUSY_MS}")
    try:
        busy, _, _ = native.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy and _scrubbed(native, scrubber)
    except sqlite3.OperationalError as error:
        if isinstance(store_error(error), StoreUnavailable):
            return False
        raise
    finally:
        native.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")


def _scrubbed(native: sqlite3.Connection, scrubber: PageScrubber) -> bool:
    """With its lock held and nothing in the WAL, no other process changes the file."""
    native.execute("BEGIN IMMEDIATE")
    try:
        if not scrubber.wal_is_empty():
            return False
        changed = scrubber.some(_SCRUB_BYTES)
    except OSError as error:
        raise StoreFailed(error.strerror or type(error).__name__) from error
    finally:
        native.execute("ROLLBACK")
    if changed:  # or the next write of a page that is remembered as it was brings it all back
        native.execute("PRAGMA shrink_memory")
    return True


def _arguments(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_argument(clean(arg)) for arg in args)


def _argument(value: Any) -> Any:
    """Arrays travel as JSON; see `translated`."""
    return to_json(value) if isinstance(value, list) else value
