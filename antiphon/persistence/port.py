"""What a unit of work may ask of a database, whichever it is: a port inside this room.

SQL is written once, in PostgreSQL's words; every statement is made by `statement`, so that all of
them can be listed. A unit of work awaits nothing but its transaction.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from antiphon.errors import InvalidRequest, StoreFailed

R = TypeVar("R")

Row = Sequence[Any]
"""Columns in the order of the statement."""

_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with `$1` for its first argument, and a name to talk about it."""

    name: str
    text: str
    sqlite: str | None = None
    """Where SQLite needs other words: these, with the same arguments."""


STATEMENTS: dict[str, Statement] = {}
"""Every statement that units of work run, by name."""


def statement(name: str, text: str, *, sqlite: str | None = None) -> Statement:
    """The only way to make one. Raises ValueError when the name is taken by another text."""
    made = Statement(
        name, " ".join(text.split()), None if sqlite is None else " ".join(sqlite.split())
    )
    if STATEMENTS.setdefault(name, made) != made:
        raise ValueError(f"two statements are called {name}")
    return made


Write = tuple[Statement, tuple[Any, ...]]


class Transaction(Protocol):
    """One unit of work's hold on the database. Raises what the contract's Store raises."""

    async def fetch(self, sql: Statement, *args: Any) -> Sequence[Row]: ...

    async def fetchrow(self, sql: Statement, *args: Any) -> Row | None: ...

    async def execute(self, sql: Statement, *args: Any) -> int:
        """How many rows it changed."""

    async def executemany(self, sql: Statement, rows: Sequence[tuple[Any, ...]]) -> None: ...

    async def batch(self, writes: Sequence[Write]) -> None:
        """Writes of which none depends on another one's effect, and no two change the same row: in
        one round trip where there is such a thing."""


Work = Callable[[Transaction], Awaitable[R]]
"""A unit of work. It may be run more than once, when a database asks for a repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the two databases don't share."""

    name: str
    definition: Callable[[str], str]
    """Makes a migration's statement its own; nothing of one that is the other's."""
    tables: Statement
    """The names of all tables in reach."""
    lock_schema: Statement | None
    """Waits until no other program migrates; None where a writing transaction is alone anyway."""
    mark: Statement | None
    """Says in the database that it is ours."""


class Database(Protocol):
    """An open database: each call is one transaction, done entirely or not at all."""

    @property
    def dialect(self) -> Dialect: ...

    async def read(self, work: Work[R]) -> R:
        """The work sees one state of the whole and changes nothing."""

    async def write(self, work: Work[R]) -> R: ...

    async def tidy(self, *, deleted: bool = True) -> None:
        """Make sure that what was deleted leaves the disk, as far as this database can. Without
        anything `deleted` since the last time, only what was put off then."""

    async def health(self) -> list[str]:
        """What the database itself finds wrong with its files."""


class DuplicateKey(StoreFailed):
    """A row with that key exists."""


class MissingReference(StoreFailed):
    """The row refers to one that isn't there."""


def clean(value: Any) -> Any:
    """The one gate for every argument: U+0000, which PostgreSQL can't hold, becomes U+FFFD. Raises
    InvalidRequest for text that is no Unicode, and numbers that don't fit."""
    if isinstance(value, str):
        if not value.isascii():
            checked(value)
        return value.replace("\0", "\ufffd") if "\0" in value else value
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidRequest(f"Number out of range: {value:.5e}")
    if isinstance(value, list):
        return [clean(each) for each in value]
    return value


def checked(value: str) -> str:
    """Raises InvalidRequest when it holds a lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"Text is not valid Unicode: lone surrogate at character {error.start}."
        ) from error
    return value
