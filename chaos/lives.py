"""What the attacks on background work have in common: the command, a server that lives again and
again on one database, and clients that ask whichever server lives until it has answered."""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx2

from antiphon.testing.databases import private_postgres
from antiphon.testing.models import models_folder
from antiphon.testing.process import ServerProcess, running_server

_TRY_FOR_S = 240.0
_WAIT_S = 0.2
_ANSWER_S = 60.0
_CHECK_S = 120.0


@dataclass(slots=True)
class Report:
    """What a run came to: in words, and what is wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    facts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def show(self) -> None:
        for how, count in sorted(self.kills.items()):
            print(f"killed {how}: {count}")
        for fact in self.facts:
            print(fact)
        for problem in self.problems:
            print("PROBLEM", problem)


class Client:
    """Asks until there is an answer. One thread's own, but for `base_url`."""

    def __init__(self) -> None:
        self.base_url: str | None = None

    def ask(self, path: str, **request: Any) -> dict[str, Any]:
        """A POST of what there is to be sent, or else a GET."""
        method = "POST" if request else "GET"
        deadline = time.monotonic() + _TRY_FOR_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx2.HTTPError, TypeError, ValueError):
                answer = httpx2.request(
                    method, f"{self.base_url}{path}", timeout=_ANSWER_S, **request
                )
                if answer.status_code == 200:
                    told: dict[str, Any] = answer.json()
                    return told
            time.sleep(_WAIT_S)
        raise RuntimeError(f"no answer from {path} in {_TRY_FOR_S:.0f} s")


class Worker(Protocol):
    """Who asks: `run` is a thread's work, until `finish` and what is at hand is done."""

    client: Client

    def run(self) -> None: ...

    def finish(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """Servers, one after another, all with this configuration, database and data. A life lasts so
    long; one that is to kill itself, and may never come to where it would, at most `longest_s`."""

    config: Path
    url: str
    life_s: tuple[float, float]
    longest_s: float

    def server(self, **environment: str) -> AbstractContextManager[ServerProcess]:
        return running_server(
            self.config,
            ANTIPHON_DATABASE_URL=self.url,
            ANTIPHON_DATA_DIR=str(self.data),
            **environment,
        )

    @property
    def data(self) -> Path:
        return self.config.parent / "data"

    @contextlib.contextmanager
    def attacked(
        self,
        workers: Sequence[Worker],
        report: Report,
        kills: int,
        dice: random.Random,
        sites: Sequence[str],
    ) -> Iterator[ServerProcess]:
        """Kill so many servers under these workers, which begin with the first one; every other
        server kills itself at one of the sites. The one that is yielded lives in peace, and the
        workers have finished with it."""
        threads = [threading.Thread(target=each.run, daemon=True) for each in workers]
        for number in range(kills):
            site = dice.choice(sites) if number % 2 else None
            report.kills[self._one(workers, dice, site)] += 1
            if number == 0:
                for thread in threads:
                    thread.start()
        for each in workers:
            each.finish()
        with self.server() as server:
            _lead(workers, server)
            for thread in threads:
                thread.join(_TRY_FOR_S)
                if thread.is_alive():
                    report.problems.append(f"{thread.name} hangs")
            yield server

    def _one(self, workers: Sequence[Worker], dice: random.Random, site: str | None) -> str:
        """One life; how it ended."""
        faults: Mapping[str, str] = {}
        how = "at any moment"
        if site is not None:
            faults = {"ANTIPHON_FAULTS": f"{site}=kill#{dice.randint(1, 4)}"}
            how = f"at {site}"
        try:
            with self.server(**faults) as server:
                _lead(workers, server)
                if site is None:
                    time.sleep(dice.uniform(*self.life_s))
                else:
                    try:
                        server.process.wait(self.longest_s)
                    except subprocess.TimeoutExpired:
                        how = "where it would not have come to it"
                server.process.kill()
                server.process.wait()
        except RuntimeError:
            if site is None:
                raise
            how += ", before it was ready"
        return how

    def checked(self) -> list[str]:
        """What the program's own check of the database finds."""
        checked = subprocess.run(
            [sys.executable, "-m", "antiphon", "--config", str(self.config), "db", "check"],
            env={**os.environ, "ANTIPHON_DATABASE_URL": self.url},
            capture_output=True,
            text=True,
            timeout=_CHECK_S,
            check=False,
        )
        return [] if checked.returncode == 0 else [f"db check: {checked.stdout}{checked.stderr}"]


def attack(
    what: str | None,
    settings: str,
    run: Callable[[Lives, int, random.Random], Report],
    *,
    life_s: tuple[float, float],
    longest_s: float,
) -> int:
    """The command: its exit status."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _database(options.database, folder) as url:
        config = Path(folder) / "antiphon.toml"
        config.write_text(settings, encoding="utf-8")
        lives = Lives(config=config, url=url, life_s=life_s, longest_s=longest_s)
        lives.data.mkdir()
        (lives.data / "models").symlink_to(models_folder())
        report = run(lives, options.kills, random.Random(options.seed))
        report.problems += lives.checked()
    report.show()
    return 1 if report.problems else 0


@contextlib.contextmanager
def _database(kind: str, folder: str) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{Path(folder) / 'chaos.db'}"
        return
    with private_postgres() as postgres:
        yield postgres.fresh()


def _lead(workers: Sequence[Worker], server: ServerProcess) -> None:
    for each in workers:
        each.client.base_url = server.base_url
