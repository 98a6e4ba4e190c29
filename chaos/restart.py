"""`make chaos-kill`: a real server that is killed at random moments under load and started again.

    python -m chaos.restart --kills 100 --database sqlite

Clients hold conversations, send what failed again with the same idempotency key, and note what they
were told. Every other life of the server kills itself at a random write of its store; with
PostgreSQL, every third one sees the database killed and come back. At the end each note must be
true of what is stored. Ends with status 1 when one isn't.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from antiphon.testing.databases import PrivatePostgres, private_postgres
from antiphon.testing.process import ServerProcess, running_server
from chaos.notes import Note, judge
from chaos.talker import Talker

_TALKERS = 6
_LIFE_S = (0.2, 4.0)
_WRITES = 120
"""A life that kills itself does so at a write up to this one."""
_SETTLE_S = 15.0
"""Longer than a lease."""
_OUTAGE_S = (0.5, 4.0)
_NOTICED_S = 15.0
_GROWTH_MIB = 64.0
"""What an outage may cost in memory."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What the run came to; `problems` is empty when every note was true."""

    kills: Counter[str] = field(default_factory=Counter)
    outages_s: list[float] = field(default_factory=list)
    """From a database's return to readiness."""
    grown_mib: list[float] = field(default_factory=list)
    starts_s: list[float] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _database(options.database, folder) as database:
        report = _run(database, options.kills, random.Random(options.seed))
        report.problems += _checked(database.url)
    _print(report)
    return 1 if report.problems else 0


@dataclass(frozen=True, slots=True)
class _Database:
    """Where the conversations are, and the server that keeps them, if they have one."""

    url: str
    server: PrivatePostgres | None = None


@contextmanager
def _database(kind: str, folder: str) -> Iterator[_Database]:
    if kind == "sqlite":
        yield _Database(f"sqlite:///{Path(folder) / 'chaos.db'}")
        return
    with private_postgres() as postgres:
        yield _Database(postgres.fresh(), postgres)


def _run(database: _Database, kills: int, dice: random.Random) -> Report:
    report = Report()
    talkers = [Talker(f"talker{number}", dice.getrandbits(32)) for number in range(_TALKERS)]
    threads = [threading.Thread(target=talker.talk, daemon=True) for talker in talkers]
    for thread in threads:
        thread.start()
    for number in range(kills):
        if database.server is not None and number % 3 == 2:
            _outage(database.url, database.server, talkers, report, dice)
        else:
            _one_life(database.url, talkers, report, dice, by_itself=number % 2 == 1)
    for talker in talkers:
        talker.finish()
    with running_server(ANTIPHON_DATABASE_URL=database.url) as server:
        _lead(talkers, server)
        for thread in threads:
            thread.join(120)
            if thread.is_alive():
                report.problems.append(f"{thread.name} hangs")
        time.sleep(_SETTLE_S)
        report.notes = [note for talker in talkers for note in talker.notes]
        with httpx2.Client(base_url=server.base_url, timeout=30) as client:
            report.problems += judge(client, report.notes)
    return report


def _one_life(
    url: str, talkers: list[Talker], report: Report, dice: random.Random, *, by_itself: bool
) -> None:
    write = dice.randint(1, _WRITES)
    faults = {"ANTIPHON_FAULTS": f"store.write=kill#{write}"} if by_itself else {}
    began = time.monotonic()
    try:
        with running_server(ANTIPHON_DATABASE_URL=url, **faults) as server:
            report.starts_s.append(time.monotonic() - began)
            _lead(talkers, server)
            if by_itself:
                # Enough for that many writes, and a bound for a life in which they don't come.
                server.process.wait(_WRITES)
            else:
                time.sleep(dice.uniform(*_LIFE_S))
            server.process.kill()
            server.process.wait()
    except RuntimeError:
        # Migrations and sessions of its start write, too: it never became ready.
        report.kills["while it started"] += 1
        return
    except subprocess.TimeoutExpired:
        pass
    report.kills["at a write" if by_itself else "at any moment"] += 1


def _outage(
    url: str,
    postgres: PrivatePostgres,
    talkers: list[Talker],
    report: Report,
    dice: random.Random,
) -> None:
    """The database is killed under load and comes back; then the server is killed, too."""
    with running_server(ANTIPHON_DATABASE_URL=url) as server:
        _lead(talkers, server)
        time.sleep(dice.uniform(*_LIFE_S))
        before = _mib(server)
        postgres.stop("immediate")  # as a crash looks from outside; SIGKILL leaves memory behind
        if not _turns(server, 503):
            report.problems.append("ready without a database")
        time.sleep(dice.uniform(*_OUTAGE_S))
        grown = _mib(server) - before
        postgres.start()
        back = time.monotonic()
        if not _turns(server, 200):
            report.problems.append("not ready with the database back")
        report.outages_s.append(time.monotonic() - back)
        report.grown_mib.append(grown)
        if grown > _GROWTH_MIB:
            report.problems.append(f"an outage cost {grown:.0f} MiB")
        time.sleep(dice.uniform(*_LIFE_S))
        server.process.kill()
        server.process.wait()
    report.kills["database first"] += 1


def _turns(server: ServerProcess, status: int) -> bool:
    """Whether readiness becomes that in time."""
    deadline = time.monotonic() + _NOTICED_S
    while server.get("/health/ready")[0] != status:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _mib(server: ServerProcess) -> float:
    return psutil.Process(server.process.pid).memory_info().rss / 2**20


def _lead(talkers: list[Talker], server: ServerProcess) -> None:
    for talker in talkers:
        talker.base_url = server.base_url


def _checked(url: str) -> list[str]:
    """What the program's own check of the database finds."""
    checked = subprocess.run(
        [sys.executable, "-m", "antiphon", "db", "check"],
        env={**os.environ, "ANTIPHON_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return [] if checked.returncode == 0 else [f"db check: {checked.stdout}{checked.stderr}"]


def _print(report: Report) -> None:
    kills = ", ".join(f"{count} {how}" for how, count in report.kills.items())
    print(f"killed: {kills}")
    if report.outages_s:
        print(
            f"ready again {statistics.median(report.outages_s):.1f} s after the database, at most "
            f"{max(report.outages_s):.1f} s; an outage cost at most {max(report.grown_mib):.0f} MiB"
        )
    print(f"ready after {statistics.median(report.starts_s):.1f} s in the median")
    outcomes = Counter(note.outcome for note in report.notes)
    print("turns:", ", ".join(f"{count} {how}" for how, count in outcomes.most_common()))
    print(f"sent again {sum(note.attempts - 1 for note in report.notes)} times")
    for problem in report.problems:
        print("PROBLEM", problem)


if __name__ == "__main__":
    sys.exit(main())
