"""The whole database as JSON lines, out of one database and into another, of either kind.

The first line says what follows, the last one how much there was: half a file is refused. Secrets
aren't in it, only their hashes; conversations are, so guard it like the database.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from antiphon.errors import SchemaMismatch, StoreFailed
from antiphon.persistence.migrations import require_current
from antiphon.persistence.port import Database, Statement, Transaction, statement
from antiphon.persistence.schema import MIGRATIONS, TABLES, Table
from antiphon.progress import Told, untold

_FORMAT = "antiphon-export"
_PAGE = 200
"""Rows in memory at once; items can have megabytes."""


_COUNTS = frozenset({"position", "first", "version", "number", "place"})
"""Keys' columns that are no texts."""
_END_IN_BYTES = ("response_events", "document_vectors")
_MAY_BE_THERE = ("users", "facts")
"""A server's first start writes the local user; nothing else may precede an import."""


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    schema: int
    tables: dict[str, tuple[str, ...]]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str
    row: list[Any]


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    end: dict[str, int]


def _page(table: Table) -> Statement:
    key, marks = ", ".join(table.key), ", ".join(f"${n + 1}" for n in range(len(table.key)))
    return statement(
        f"transfer.{table.name}.page",
        f"""SELECT {", ".join(table.columns)} FROM {table.name}
            WHERE ({key}) > ({marks}) ORDER BY {key} LIMIT {_PAGE}""",
    )


def _insert(table: Table) -> Statement:
    marks = ", ".join(f"${n + 1}" for n in range(len(table.columns)))
    kept = f" ON CONFLICT ({table.key[0]}) DO NOTHING" if table.name in _MAY_BE_THERE else ""
    return statement(
        f"transfer.{table.name}.insert",
        f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks}){kept}",
    )


_PAGES = {table.name: _page(table) for table in TABLES}
_INSERTS = {table.name: _insert(table) for table in TABLES}
_HOW_MANY = {
    table.name: statement(f"transfer.{table.name}.rows", f"SELECT COUNT(*) FROM {table.name}")
    for table in TABLES
}
_ANY = {
    table.name: statement(f"transfer.{table.name}.any", f"SELECT 1 FROM {table.name} LIMIT 1")
    for table in TABLES
    if table.name not in _MAY_BE_THERE
}
_HEADER = _Header(
    format=_FORMAT,
    schema=MIGRATIONS[-1].version,
    tables={table.name: table.columns for table in TABLES},
)


async def export_database(database: Database, target: Path, told: Told = untold) -> dict[str, int]:
    """Write everything as it is at one moment, readable by the owner alone; rows by table. Raises
    StoreFailed when the file exists or can't be written, and SchemaMismatch."""
    await require_current(database)

    async def write(tx: Transaction) -> Counter[str]:
        try:
            with created(target) as file:
                return await _write(tx, file, told)
        except FileExistsError as error:
            raise StoreFailed(f"{target} exists already; name a new file") from error
        except OSError as error:
            raise StoreFailed(f"{target}: {error.strerror}") from error

    return dict(await database.read(write))


def created(target: Path) -> BinaryIO:
    """A new file for its owner alone. Raises OSError."""
    return os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def _write(tx: Transaction, file: BinaryIO, told: Told) -> Counter[str]:
    encode = msgspec.json.Encoder().encode
    counts: Counter[str] = Counter()
    total = sum([await _rows(tx, table) for table in TABLES]) or 1
    file.write(encode(_HEADER) + b"\n")
    for table in TABLES:
        # Every key is a text or a count from 0, so these come before all.
        after: list[Any] = [-1 if column in _COUNTS else "" for column in table.key]
        while rows := await tx.fetch(_PAGES[table.name], *after):
            for row in rows:
                file.write(encode(_Line(table.name, list(row))) + b"\n")
            counts[table.name] += len(rows)
            told(counts.total() / total)
            after = list(rows[-1])[: len(table.key)]
    file.write(encode(_End(dict(counts))) + b"\n")
    file.flush()
    os.fsync(file.fileno())
    return counts


async def _rows(tx: Transaction, table: Table) -> int:
    row = await tx.fetchrow(_HOW_MANY[table.name])
    return 0 if row is None else int(row[0])


async def import_database(database: Database, source: Path, told: Told = untold) -> dict[str, int]:
    """Fill an empty database, entirely or not at all; rows by table. Raises StoreFailed when it
    isn't empty or the file isn't whole, and SchemaMismatch."""
    await require_current(database)

    async def read(tx: Transaction) -> Counter[str]:
        for name, sql in _ANY.items():
            if await tx.fetchrow(sql) is not None:
                raise StoreFailed(f"the database is not empty: {name} has rows")
        try:
            with source.open("rb") as file:
                return await _read(tx, file, told)
        except OSError as error:
            raise StoreFailed(f"{source}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise StoreFailed(f"{source} is damaged: {error}") from error

    return dict(await database.write(read))


async def _read(tx: Transaction, file: BinaryIO, told: Told) -> Counter[str]:
    size = os.fstat(file.fileno()).st_size or 1
    header = msgspec.json.decode(file.readline(), type=_Header)
    if header.format != _FORMAT:
        raise StoreFailed("the file is no export of Antiphon")
    if header.schema != _HEADER.schema or header.tables != _HEADER.tables:
        raise SchemaMismatch(f"{header.schema} (in the file)", f"{_HEADER.schema}")
    counts: Counter[str] = Counter()
    lines = _lines(file)
    for name, group in groupby(lines, key=lambda line: line.table):
        if name not in _INSERTS:
            raise StoreFailed(f"the file has an unknown table {name[:40]!r}")
        while rows := [_row(line) for line in islice(group, _PAGE)]:
            await tx.executemany(_INSERTS[name], rows)
            counts[name] += len(rows)
            told(file.tell() / size)
    return counts


def _lines(file: BinaryIO) -> Iterator[_Line]:
    """All up to the last line, which must tell their number."""
    decode = msgspec.json.Decoder(_Line).decode
    counts: Counter[str] = Counter()
    for text in file:
        if text.startswith(b'{"end":'):
            if msgspec.json.decode(text, type=_End).end != counts:
                raise StoreFailed("the file is not whole: its rows are not those it counts")
            return
        line = decode(text)
        counts[line.table] += 1
        yield line
    raise StoreFailed("the file is not whole: its last line is missing")


def _row(line: _Line) -> tuple[Any, ...]:
    row: Sequence[Any] = line.row
    if line.table in _END_IN_BYTES:
        *rest, body = row
        return (*rest, msgspec.convert(body, bytes))  # Base64 in JSON
    return tuple(row)
