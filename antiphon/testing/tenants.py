"""A real server that asks for keys, its people, and everything that it keeps or says of them."""

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from antiphon.testing.databases import PrivatePostgres
from antiphon.testing.models import models_folder
from antiphon.testing.process import ServerProcess, running_server

_PAGES = ("/metrics", "/ops/tree", "/ops/slots", "/ops/runtime", "/ops/breakers", "/ops")
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedServer:
    """A server with keys, and the whole of its memory within reach."""

    process: ServerProcess
    folder: Path
    environment: dict[str, str]
    tables: Callable[[], dict[str, bytes]]
    """Every row of every table, by table."""

    def person(self, *options: str) -> httpx2.Client:
        """Somebody with a new key, made by the command."""
        secret = antiphon("keys", "create", *options, **self.environment).strip()
        return httpx2.Client(
            base_url=self.process.base_url,
            headers={"authorization": f"Bearer {secret}"},
            timeout=_TIMEOUT_S,
        )

    def memory(self) -> dict[str, bytes]:
        """What is kept anywhere, and what was said in logs and on pages, by place."""
        files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and "models" not in path.relative_to(self.folder).parts
        }
        names = {f"names of files: {name}": name.encode() for name in files}
        pages = {page: self.process.get(page)[1] for page in _PAGES}
        log = {"log": self.process.log.text().encode()}
        return self.tables() | files | names | pages | log


def antiphon(*arguments: str, **environment: str) -> str:
    """What a command prints. Raises CalledProcessError."""
    return subprocess.run(
        [sys.executable, "-m", "antiphon", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
        env=os.environ | environment,
    ).stdout


@contextlib.contextmanager
def guarded_server(
    folder: Path, postgres: PrivatePostgres | None = None, **environment: str
) -> Iterator[GuardedServer]:
    """With a first key, so that all need one; its data is in `folder`."""
    (folder / "models").symlink_to(models_folder())
    environment |= {
        "ANTIPHON_DATA_DIR": str(folder),
        "ANTIPHON_DATABASE_URL": f"sqlite:///{folder}/antiphon.db",
    }
    if postgres is not None:
        environment["ANTIPHON_DATABASE_URL"] = postgres.another()
    antiphon("keys", "create", "--user", "first", **environment)

    def tables() -> dict[str, bytes]:
        if postgres is None:
            return sqlite_tables(folder / "antiphon.db")
        return postgres_tables(postgres, environment["ANTIPHON_DATABASE_URL"])

    with running_server(None, **environment) as process:
        yield GuardedServer(process=process, folder=folder, environment=environment, tables=tables)


def sqlite_tables(path: Path) -> dict[str, bytes]:
    """Every row of every table, beside whoever else uses the file. What a full-text index holds is
    in tables of its own."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
        return {
            f"table {name}": b"\n".join(
                value if isinstance(value, bytes) else str(value).encode()
                for row in connection.execute(f'SELECT * FROM "{name}"')
                for value in row
            )
            for (name,) in names.fetchall()
        }


def postgres_tables(postgres: PrivatePostgres, url: str) -> dict[str, bytes]:
    """The same, by one psql for all of them; what isn't text comes in hexadecimal."""
    name = urlsplit(url).path.removeprefix("/")
    listed = postgres.sql(
        "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
        database=name,
    )
    tables, between = listed.splitlines(), f"table {uuid4()}"
    commands = (
        each for table in tables for each in (f"\\echo {between}", f"SELECT * FROM {table}")
    )
    _, *told = postgres.sql(*commands, database=name).split(between)
    return {f"table {table}": rows.encode() for table, rows in zip(tables, told, strict=True)}
