"""`make chaos-quotas`: real servers, one key, and far more requests than its budget allows.

    python -m chaos.quotas --database postgres

With PostgreSQL two servers share the database. 200 requests at once, of every kind, must pass just
as often as the plan says. Then one server is killed with SIGKILL while it answers: no reservation
may outlive the lease, and the ledger must be what the clients were told, to the token. Ends with
status 1 when it isn't so.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import trio

from antiphon.ids import LOCAL_TENANT, ModelName, new_node_id, new_response_id, new_user_id
from antiphon.persistence.bridge import open_store
from antiphon.persistence.port import Statement
from antiphon.quotas import QuotaLimits, Reservation
from antiphon.records import TokenUsage, User
from antiphon.testing.databases import private_postgres
from antiphon.testing.process import ServerProcess, running_server
from chaos.asking import KINDS, LONG_KINDS, Asker, Told

_REQUESTS = 200
_BUDGET = 10
_LEASE_S = 10.0
_FREE_WITHIN_S = 2 * _LEASE_S + 5.0
"""The lease, then as long again in which a survivor of an outage lets others renew, and a look."""
_RESERVATIONS = 300
_SETTINGS = f"""
# Nothing is to be refused for the load that this makes.
[scheduling]
interactive_objective_s = 0

[queue]
deadline_s = 600

[plans.burst]
requests_per_minute = {_BUDGET}
tokens_per_day = 1000000

[plans.killed]
requests_per_day = {_BUDGET}
concurrent = {_BUDGET}
"""
_OPEN = Statement("chaos", "SELECT COUNT(*) FROM usage_entries WHERE settled_ms IS NULL")
_COUNTED = Statement(
    "chaos",
    "SELECT COUNT(*) FROM usage_entries WHERE user_id = $1 AND reserved_ms IS NOT NULL",
)
_RUNNING = Statement("chaos", "SELECT COALESCE(SUM(running), 0) FROM user_quotas")


@dataclass(slots=True, kw_only=True)
class Report:
    """What the run came to; `problems` is empty when every rule held."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def check(self, is_so: bool, problem: str) -> None:
        if not is_so:
            self.problems.append(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The database, the settings of all servers, and how many of them there are."""

    url: str
    config: Path
    servers: int

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ANTIPHON_DATABASE_URL": self.url,
            "ANTIPHON_ENGINE_SLOTS": "8",
            "ANTIPHON_ENGINE_KV_CACHE_MIB": "256",
        }

    def antiphon(self, *arguments: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "antiphon", "--config", str(self.config), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def key(self, user: str, plan: str) -> str:
        secret = self.antiphon("keys", "create", "--user", user)
        self.antiphon("users", "set-plan", user, plan)
        return secret


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder, _place(options.database, Path(folder)) as place:
        _run(place, report)
    print("\n".join(report.lines))
    for problem in report.problems:
        print("PROBLEM", problem)
    return 1 if report.problems else 0


@contextlib.contextmanager
def _place(database: str, folder: Path) -> Iterator[Place]:
    config = folder / "settings.toml"
    config.write_text(_SETTINGS)
    if database == "sqlite":
        yield Place(url=f"sqlite:///{folder}/quotas.db", config=config, servers=1)
        return
    with private_postgres() as postgres:
        yield Place(url=postgres.another(), config=config, servers=2)


def _run(place: Place, report: Report) -> None:
    burst, killed = place.key("burst", "burst"), place.key("killed", "killed")
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(running_server(place.config, **place.environment))
            for _ in range(place.servers)
        ]
        told = trio.run(_burst, servers, burst, report)
        trio.run(_compare, place, "burst", told, report)
        told = trio.run(_kill, servers, killed, report)
        if place.servers == 1:
            # Nobody else is there to see to what it held.
            stack.enter_context(running_server(place.config, **place.environment))
        trio.run(_wait_until_free, place, report)
        trio.run(_compare, place, "killed", told, report)
    trio.run(_measure, place, report)
    place.antiphon("db", "check")
    report.lines.append("antiphon db check: sound")


async def _burst(servers: list[ServerProcess], key: str, report: Report) -> list[Told]:
    """All at once, of every kind, over all servers."""
    asker = Asker([server.base_url for server in servers], key, KINDS, max_tokens=16)
    began = time.monotonic()
    told = await asker.all_at_once(_REQUESTS)
    seconds = time.monotonic() - began
    statuses = Counter(each.status for each in told)
    report.lines.append(
        f"{_REQUESTS} at once over {len(servers)} server(s), budget {_BUDGET}: "
        f"{_shown(told)}, in {seconds:.1f} s"
    )
    report.check(statuses == {200: _BUDGET, 429: _REQUESTS - _BUDGET}, "not just the budget passed")
    refused = [each for each in told if each.status == 429]
    report.check(all(each.is_good_refusal for each in refused), "a refusal lacks its headers")
    passed = [each for each in told if each.status == 200]
    report.check(all(each.remaining is not None for each in passed), "an answer lacks its headers")
    return told


async def _kill(servers: list[ServerProcess], key: str, report: Report) -> list[Told]:
    """One server dies while it answers."""
    asker = Asker([server.base_url for server in servers], key, LONG_KINDS, max_tokens=300)
    victim = servers[-1]

    async def strike() -> None:
        await asker.until_striking(victim.base_url)
        victim.process.kill()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(strike)
        # Else all that pass may by chance be at another server.
        told = await asker.all_at_once(_REQUESTS, after=victim.base_url)
        nursery.cancel_scope.cancel("all have ended")
    victim.process.kill()
    await trio.to_thread.run_sync(victim.process.wait)
    statuses = Counter(each.status for each in told)
    report.lines.append(f"one of {len(servers)} killed while it answered: {_shown(told)}")
    report.check(statuses[200] <= _BUDGET, "more than the budget passed")
    report.check(asker.struck(victim.base_url), "the kill hit nobody")
    return told


async def _wait_until_free(place: Place, report: Report) -> None:
    """Nothing is reserved any more once the lease has passed."""
    began = time.monotonic()
    async with open_store(url=place.url, data_dir=place.config.parent) as store:
        while True:
            seconds = time.monotonic() - began
            open_bills = (await store.database.read(lambda tx: tx.fetch(_OPEN)))[0][0]
            running = (await store.database.read(lambda tx: tx.fetch(_RUNNING)))[0][0]
            if not open_bills and not running:
                report.lines.append(f"nothing reserved any more {seconds:.1f} s later")
                return
            if seconds > _FREE_WITHIN_S:
                report.check(False, f"{open_bills} bills open, {running} counted as running")
                return
            await trio.sleep(0.1)


async def _compare(place: Place, name: str, told: list[Told], report: Report) -> None:
    """The ledger and what the clients were told: the same, turn by turn."""
    async with open_store(url=place.url, data_dir=place.config.parent) as store:
        (user,) = [user.id for user in await store.users() if user.name == name]
        ledger: dict[str, TokenUsage | None] = {
            entry.response: entry.usage for entry in await store.usage(user)
        }
        rows = await store.database.read(lambda tx: tx.fetch(_COUNTED, user))
        counted = rows[0][0]
    heard = {each.id or "": each.usage for each in told if each.usage is not None}
    wrong = {id: (ledger.get(id), usage) for id, usage in heard.items() if ledger.get(id) != usage}
    unheard = {id: usage for id, usage in ledger.items() if id not in heard}
    charged, sum_told = _total(ledger.values()), _total(heard.values())
    report.lines.append(
        f"{name}: {len(heard)} turns told {sum_told} tokens, the ledger has {charged} in "
        f"{len(ledger)} bills"
    )
    report.check(counted == _BUDGET, f"{counted} turns were counted, of a budget of {_BUDGET}")
    whole = [each for each in told if each.status == 200]
    report.check(all(each.usage is not None for each in whole), "an answer lacks usage")
    report.check(not wrong, f"the ledger has another usage than was told: {wrong}")
    charged_unheard = {id: usage for id, usage in unheard.items() if usage != TokenUsage()}
    report.check(not charged_unheard, f"charged, and told to nobody: {charged_unheard}")
    report.check(charged == sum_told, "the ledger is not the sum of what was told")


async def _measure(place: Place, report: Report) -> None:
    """What one reservation costs, one after another, of a user with a busy day behind them."""
    limits = QuotaLimits(requests_per_minute=10**6, tokens_per_day=10**12)
    now_ms = time.time_ns() // 1_000_000
    async with open_store(url=place.url, data_dir=place.config.parent) as store:
        user = User(id=new_user_id(), tenant=LOCAL_TENANT, name="measured", created_ms=now_ms)
        await store.add_user(user)
        took = []
        for number in range(_RESERVATIONS):
            at_ms = now_ms + (number - _RESERVATIONS) * 290_000
            wanted = Reservation(
                id=new_response_id(),
                user=user.id,
                model=ModelName("m"),
                tokens=1000,
                now_ms=at_ms if number < _RESERVATIONS // 2 else now_ms + number * 500,
                owner=new_node_id(),
                lease_ms=now_ms,
                limits=limits,
            )
            began = time.perf_counter()
            await store.reserve(wanted)
            took.append((time.perf_counter() - began) * 1000)
            await store.settle(wanted.id, TokenUsage(input=10), now_ms)
    late = sorted(took[_RESERVATIONS // 2 :])
    p50, p99 = statistics.median(late), late[-len(late) // 50]
    report.lines.append(f"a reservation costs {p50:.2f} ms in the median, {p99:.2f} ms at p98")


def _total(usages: Iterable[TokenUsage | None]) -> int:
    return sum(usage.total for usage in usages if usage is not None)


def _shown(told: list[Told]) -> str:
    outcomes = Counter(f"{each.status or 'no answer'} {each.code or ''}".strip() for each in told)
    return ", ".join(f"{count} x {outcome}" for outcome, count in outcomes.items())


if __name__ == "__main__":
    sys.exit(main())
