"""Brings a database to the schema that this program knows, and says where one stands.

All that is missing is applied in one transaction under a lock, so that of many servers that start
at once one migrates and the others find it done. A database that is newer, or changed, or of
another program, is refused.
"""

import time
from dataclasses import dataclass

import structlog

from antiphon.errors import SchemaMismatch
from antiphon.persistence.port import Database, Statement, Transaction
from antiphon.persistence.schema import MIGRATIONS, TABLES, Migration
from antiphon.progress import Told, telling, untold

log = structlog.get_logger(__name__)

LEDGER = "antiphon_schema"

_CREATE_LEDGER = Statement(
    "schema.create_ledger",
    f"""CREATE TABLE {LEDGER} (version BIGINT PRIMARY KEY, name TEXT NOT NULL,
        checksum TEXT NOT NULL, applied_ms BIGINT NOT NULL){{strict}}""",
)
_APPLIED = Statement(
    "schema.applied", f"SELECT version, name, checksum, applied_ms FROM {LEDGER} ORDER BY version"
)
_RECORD = Statement(
    "schema.record",
    f"INSERT INTO {LEDGER} (version, name, checksum, applied_ms) VALUES ($1, $2, $3, $4)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """Where a database stands: what was applied and when, and what is missing."""

    database: str
    """Its kind."""
    applied: tuple[tuple[int, str, int], ...]
    """Version, name and time in Unix milliseconds of each step."""
    missing: tuple[str, ...]

    @property
    def version(self) -> int:
        return self.applied[-1][0] if self.applied else 0


async def migrate(
    database: Database, migrations: tuple[Migration, ...] = MIGRATIONS, told: Told = untold
) -> tuple[str, ...]:
    """Apply what is missing; the names of what was. Raises SchemaMismatch."""
    status_before = await status(database, migrations)
    if status_before.applied and not status_before.missing:
        return ()  # the usual start takes no lock

    async def apply(tx: Transaction) -> tuple[str, ...]:
        dialect = database.dialect
        if dialect.lock_schema is not None:
            await tx.fetch(dialect.lock_schema)
        applied = await _applied(tx, dialect.tables, migrations)
        if applied is None:
            if dialect.mark is not None:
                await tx.execute(dialect.mark)
            ledger = Statement(_CREATE_LEDGER.name, dialect.definition(_CREATE_LEDGER.text))
            await tx.execute(ledger)
        missing = migrations[len(applied or ()) :]
        for migration in telling(missing, len(missing), told):
            for number, text in enumerate(migration.statements):
                name = f"schema.{migration.name}.{number}"
                if definition := dialect.definition(text):
                    await tx.execute(Statement(name, definition))
            now_ms = time.time_ns() // 1_000_000
            row = (migration.version, migration.name, migration.checksum, now_ms)
            await tx.execute(_RECORD, *row)
        return tuple(migration.name for migration in missing)

    names = await database.write(apply)
    if names:
        log.info("schema_migrated", database=database.dialect.name, steps=list(names))
    return names


async def status(
    database: Database, migrations: tuple[Migration, ...] = MIGRATIONS
) -> SchemaStatus:
    """Raises SchemaMismatch for a database that this program must not touch."""
    tables = database.dialect.tables
    applied = await database.read(lambda tx: _applied(tx, tables, migrations)) or ()
    return SchemaStatus(
        database=database.dialect.name,
        applied=applied,
        missing=tuple(migration.name for migration in migrations[len(applied) :]),
    )


async def require_current(database: Database) -> None:
    """Raises SchemaMismatch unless the schema is just the one that this program knows."""
    found = await status(database)
    if found.missing:
        raise SchemaMismatch(f"{found.version}", f"{MIGRATIONS[-1].version}")


async def _applied(
    tx: Transaction, list_tables: Statement, migrations: tuple[Migration, ...]
) -> tuple[tuple[int, str, int], ...] | None:
    """None where there is no schema of ours yet, nor anything in its way."""
    tables = {row[0] for row in await tx.fetch(list_tables)}
    known = f"{migrations[-1].version} ({migrations[-1].name})"
    if LEDGER not in tables:
        if taken := sorted(tables & {table.name for table in TABLES}):
            raise SchemaMismatch(f"of another program, with a table {taken[0]!r}", known)
        return None
    rows = await tx.fetch(_APPLIED)
    if len(rows) > len(migrations):
        raise SchemaMismatch(f"{rows[-1][0]} ({rows[-1][1]}), which is newer", known)
    for (version, name, checksum, _), migration in zip(rows, migrations, strict=False):
        if (version, checksum) != (migration.version, migration.checksum):
            raise SchemaMismatch(f"{version} ({name}) with other statements", known)
    return tuple((version, name, applied_ms) for version, name, _, applied_ms in rows)
