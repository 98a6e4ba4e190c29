"""The store's database as a PostgreSQL server, through a pool of asyncpg.

Writes run in READ COMMITTED: every race of the contract is about one row, which its statement both
tests and changes, and PostgreSQL tests again after waiting for another's change. So nothing has to
be repeated but what a deadlock undid. Reads run in one REPEATABLE READ snapshot. A connection whose
query was cancelled or timed out is closed, never used again (asyncpg #537, #784).
"""

import asyncio
import re
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]
import structlog

from antiphon import faults
from antiphon.errors import StorageFull, StoreError, StoreFailed, StoreUnavailable
from antiphon.fault_plan import Site
from antiphon.persistence.port import (
    Dialect,
    DuplicateKey,
    MissingReference,
    Row,
    Statement,
    Transaction,
    Work,
    Write,
    clean,
)

log = structlog.get_logger(__name__)

R = TypeVar("R")

_CONNECT_S = 5.0
_ACQUIRE_S = 5.0
"""How long a unit of work waits for a connection of the pool."""
_STATEMENT_S = 20.0
_LOCK_S = 5.0
_TRIES = 4
"""A deadlock has a victim each time; with more than three in a row something else is wrong."""
_LARGEST_BATCH = 24
"""More writes than that are sent statement by statement: each size is a statement to prepare."""
_PLACEHOLDER = re.compile(r"\$(\d+)")

_WRITE = "BEGIN"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# Classes and codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
_UNAVAILABLE = ("08", "57", "40", "53200", "53300", "53400", "55P03", "25006", "25P03")
_REPEATABLE = ("40001", "40P01")


def table_definition(text: str) -> str:
    """A migration's statement as PostgreSQL has it."""
    if text.startswith("{only sqlite}"):
        return ""
    for mark in ("{only postgresql}", "{strict}", "{clustered}"):
        text = text.replace(mark, "")
    return text


_NO_ANSWER = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

DIALECT = Dialect(
    name="postgresql",
    definition=table_definition,
    tables=Statement(
        "schema.tables", "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    ),
    # "anti" and "phon" in ASCII: a number that no other program's lock is likely to have.
    lock_schema=Statement("schema.lock", "SELECT pg_advisory_xact_lock(1634628713, 1885892462)"),
    mark=None,
)


def store_error(error: Exception) -> StoreError:
    """What an error of the library, the network or the server means to the core."""
    if not isinstance(error, asyncpg.PostgresError):
        # The library's own: closed connection or pool, broken protocol; or the network's.
        return StoreUnavailable(str(error) or type(error).__name__)
    code = error.sqlstate or ""
    message = f"{error.args[0] if error.args else type(error).__name__} ({code})"
    if code == "23505":
        return DuplicateKey(message)
    if code == "23503":
        return MissingReference(message)
    if code == "53100":
        return StorageFull(message)
    return StoreUnavailable(message) if code.startswith(_UNAVAILABLE) else StoreFailed(message)


class PostgresTransaction:
    """A connection within a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, sql: Statement, *args: Any) -> Sequence[Row]:
        rows: Sequence[Row] = await _told(self._connection.fetch(sql.text, *_arguments(args)))
        _written(sql)
        return rows

    async def fetchrow(self, sql: Statement, *args: Any) -> Row | None:
        row: Row | None = await _told(self._connection.fetchrow(sql.text, *_arguments(args)))
        _written(sql)
        return row

    async def execute(self, sql: Statement, *args: Any) -> int:
        status: str = await _told(self._connection.execute(sql.text, *_arguments(args)))
        _written(sql)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdecimal() else 0

    async def executemany(self, sql: Statement, rows: Sequence[tuple[Any, ...]]) -> None:
        await _told(self._connection.executemany(sql.text, [_arguments(row) for row in rows]))
        _written(sql)

    async def batch(self, writes: Sequence[Write]) -> None:
        if len(writes) > _LARGEST_BATCH:
            for sql, group in groupby(writes, key=lambda write: write[0]):
                await self.executemany(sql, [args for _, args in group])
        elif writes:
            text = _combined(tuple((sql.text, len(args)) for sql, args in writes))
            arguments = _arguments(arg for _, args in writes for arg in args)
            await _told(self._connection.execute(text, *arguments))
            _written(writes[0][0])


class PostgresDatabase:
    """A pool. Asyncio-flavoured; made by `open_postgres`, which also closes it."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @property
    def dialect(self) -> Dialect:
        return DIALECT

    async def read(self, work: Work[R]) -> R:
        return await self._unit(_READ, work)

    async def write(self, work: Work[R]) -> R:
        return await self._unit(_WRITE, work)

    async def tidy(self, *, deleted: bool = True) -> None:
        """Deleted rows can't be read any more; their bytes stay in the data files until VACUUM,
        which autovacuum runs, has freed their room and it was used again, and in the server's WAL
        and backups for as long as those are kept."""

    async def health(self) -> list[str]:
        """Nothing that a client may see: constraints are kept by the server, and its own checks
        (pg_amcheck, data checksums) belong to whoever runs it."""
        return []

    async def _unit(self, begin: str, work: Work[R]) -> R:
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._attempt(begin, work)
            except asyncpg.PostgresError as error:
                if error.sqlstate not in _REPEATABLE or attempt == _TRIES:
                    raise store_error(error) from error
                log.info("transaction_repeated", sqlstate=error.sqlstate, attempt=attempt)
            except _NO_ANSWER as error:
                raise store_error(error) from error
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, begin: str, work: Work[R]) -> R:
        try:
            connection = await self._pool.acquire(timeout=_ACQUIRE_S)
        except _NO_ANSWER as error:
            reason = str(error) or "no connection is free"
            raise StoreUnavailable(reason, refused=True) from error
        try:
            result = await _transaction(connection, begin, work)
        except BaseException as error:
            if not _reusable(connection, error):
                connection.terminate()
            raise
        finally:
            await self._pool.release(connection)
        if begin == _WRITE:
            faults.maybe(Site.STORE_COMMITTED)
        return result


async def open_postgres(
    dsn: str, stack: AsyncExitStack, *, connections: int, statement_s: float = _STATEMENT_S
) -> PostgresDatabase:
    """Connect once, to fail now rather than later; the stack closes the pool. Raises StoreFailed,
    StoreUnavailable."""
    try:
        pool = await asyncpg.create_pool(
            dsn,
            # With a minimum, asyncpg keeps a task that connects again by itself, and logs.
            min_size=0,
            max_size=connections,
            max_inactive_connection_lifetime=300.0,
            timeout=_CONNECT_S,
            command_timeout=statement_s + 5.0,
            statement_cache_size=512,
            server_settings={
                "application_name": "antiphon",
                "statement_timeout": str(round(statement_s * 1000)),
                "lock_timeout": str(round(_LOCK_S * 1000)),
                # The server must notice by itself when a client has vanished.
                "idle_in_transaction_session_timeout": str(round(statement_s * 1000)),
                "client_connection_check_interval": "2000",
                "jit": "off",
            },
        )
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as error:
        raise store_error(error) from error
    # Nobody works any more when the stack unwinds, or nobody who may finish.
    stack.callback(pool.terminate)
    database = PostgresDatabase(pool)
    await database.read(_nothing)
    return database


async def _nothing(tx: Transaction) -> None:
    """Connects, and begins and ends a transaction."""


async def _transaction(connection: Any, begin: str, work: Work[R]) -> R:
    await connection.execute(begin)
    try:
        result = await work(PostgresTransaction(connection))
        if begin == _WRITE:
            faults.maybe(Site.STORE_COMMIT)
        await connection.execute("COMMIT")
    except BaseException as error:
        if _reusable(connection, error):
            await connection.execute("ROLLBACK")
        raise
    return result


def _reusable(connection: Any, error: BaseException) -> bool:
    """Whether the server has answered all that was asked on it."""
    lost = (asyncio.CancelledError, TimeoutError, OSError, asyncpg.InterfaceError)
    return (
        isinstance(error, Exception) and not isinstance(error, lost) and not connection.is_closed()
    )


async def _told(answer: Awaitable[R]) -> R:
    """Units of work hear of broken constraints as the contract's errors."""
    try:
        return await answer
    except asyncpg.IntegrityConstraintViolationError as error:
        raise store_error(error) from error


def _written(sql: Statement) -> None:
    if not sql.text.startswith(("SELECT", "WITH")):
        faults.maybe(Site.STORE_WRITE, sql.name)


@lru_cache(maxsize=512)
def _combined(parts: tuple[tuple[str, int], ...]) -> str:
    """Several writes as one statement, each a common table expression of its own."""
    texts, offset = [], 0
    for index, (text, count) in enumerate(parts):
        texts.append(f"w{index} AS ({_shifted(text, offset)})")
        offset += count
    return f"WITH {', '.join(texts)} SELECT 1"


def _shifted(text: str, by: int) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + by}", text)


def _arguments(args: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(map(clean, args))
