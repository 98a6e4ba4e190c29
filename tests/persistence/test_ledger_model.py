"""The ledger against a naive model: whatever is done in whatever order, both say the same.

The units of work run on SQLite in this thread, so that thousands of steps take seconds; that both
databases do the same is `test_quotas`' business.
"""

import sqlite3
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from antiphon.ids import ModelName, NodeId, ResponseId, UserId
from antiphon.persistence import bills, quotas
from antiphon.persistence.schema import MIGRATIONS
from antiphon.persistence.sqlite import SqliteTransaction
from antiphon.persistence.sqlite_dialect import table_definition
from antiphon.persistence.windows import DAY, EMPTY, MINUTE, Span, Windows
from antiphon.quotas import QuotaLimits, Reservation, UsedUp
from antiphon.records import TokenUsage

R = TypeVar("R")
START = 1_800_000_000_000
USERS = ("user_a", "user_b")
NODES = (NodeId("node_1"), NodeId("node_2"))
LEASE_MS = 10_000
LIMITS = QuotaLimits(
    requests_per_minute=6,
    tokens_per_minute=600,
    requests_per_day=20,
    tokens_per_day=2_000,
    concurrent=4,
)


@dataclass
class Entry:
    """One bill, as plain variables."""

    user: str
    owner: str
    at: int
    reserved: int
    lease: int
    cost: int | None = None
    settled: int | None = None
    lapsed: bool = False

    @property
    def counts(self) -> int:
        return self.reserved if self.cost is None else self.cost


def driven(work: Coroutine[Any, Any, R]) -> R:
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a unit of work waits for nothing on SQLite")


class Ledger(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        connection = sqlite3.connect(":memory:", isolation_level=None)
        for migration in MIGRATIONS:
            for text in migration.statements:
                connection.execute(table_definition(text))
        for user in USERS:
            connection.execute(
                "INSERT INTO users (id, tenant, name, created_ms, training) "
                "VALUES (?, '', '', 0, 1)",
                (user,),
            )
        self.connection = connection
        self.tx = SqliteTransaction(connection)
        self.now = START
        self.entries: dict[str, Entry] = {}
        self.made = 0

    def teardown(self) -> None:
        self.connection.close()

    def in_window(self, user: str, span: Span) -> tuple[int, int]:
        """What a window holds, from all that ever was."""
        held = [
            entry
            for entry in self.entries.values()
            if entry.user == user
            and (entry.at // span.width_ms + 1) * span.width_ms + span.length_ms > self.now
        ]
        return len(held), sum(entry.counts for entry in held)

    def running(self, user: str) -> int:
        return sum(e.cost is None for e in self.entries.values() if e.user == user)

    def fits(self, user: str, tokens: int) -> bool:
        minute, day = self.in_window(user, MINUTE), self.in_window(user, DAY)
        return (
            minute[0] < LIMITS.requests_per_minute
            and minute[1] + tokens <= LIMITS.tokens_per_minute
            and day[0] < LIMITS.requests_per_day
            and day[1] + tokens <= LIMITS.tokens_per_day
            and self.running(user) < LIMITS.concurrent
        )

    def some(self, pick: int) -> str:
        return sorted(self.entries)[pick % len(self.entries)]

    @rule(user=st.sampled_from(USERS), node=st.sampled_from(NODES), tokens=st.integers(0, 700))
    def reserve(self, user: str, node: NodeId, tokens: int) -> None:
        self.made += 1
        id = f"r{self.made:05}"
        wanted = Reservation(
            id=ResponseId(id),
            user=UserId(user),
            model=ModelName("m"),
            tokens=tokens,
            now_ms=self.now,
            owner=node,
            lease_ms=self.now + LEASE_MS,
            limits=LIMITS,
        )

        verdict = driven(quotas.reserve(self.tx, wanted))

        assert isinstance(verdict, UsedUp) is not self.fits(user, tokens)
        if not isinstance(verdict, UsedUp):
            self.entries[id] = Entry(user, node, self.now, tokens, self.now + LEASE_MS)

    @precondition(lambda self: self.entries)
    @rule(pick=st.integers(0, 10**6), input=st.integers(0, 300), output=st.integers(0, 300))
    def settle(self, pick: int, input: int, output: int) -> None:
        id = self.some(pick)
        entry = self.entries[id]

        cost = TokenUsage(input=input, output=output)
        done = driven(quotas.settle(self.tx, ResponseId(id), cost, self.now))

        assert done is (entry.cost is None or entry.lapsed)
        if done:
            entry.cost, entry.settled, entry.lapsed = input + output, self.now, False

    @precondition(lambda self: self.entries)
    @rule(pick=st.integers(0, 10**6))
    def release(self, pick: int) -> None:
        id = self.some(pick)

        done = driven(quotas.release(self.tx, ResponseId(id)))

        assert done is (self.entries[id].cost is None)
        if done:
            del self.entries[id]

    @rule(picks=st.lists(st.integers(0, 10**6), max_size=4))
    def renew(self, picks: list[int]) -> None:
        ids = {self.some(pick) for pick in picks if self.entries}
        renewed = {id for id in ids if self.entries[id].cost is None}

        until = self.now + LEASE_MS
        assert driven(quotas.renew(self.tx, [ResponseId(i) for i in sorted(ids)], until)) == len(
            renewed
        )
        for id in renewed:
            self.entries[id].lease = until

    @rule(node=st.sampled_from(NODES), alone=st.booleans())
    def lapse(self, node: NodeId, alone: bool) -> None:
        gone = [
            entry
            for entry in self.entries.values()
            if entry.cost is None and (entry.lease <= self.now or (alone and entry.owner != node))
        ]

        assert driven(quotas.lapse(self.tx, self.now, node, alone=alone, limit=1000)) == len(gone)
        for entry in gone:
            entry.cost, entry.settled, entry.lapsed = 0, self.now, True

    @rule(
        by=st.one_of(
            st.integers(0, 2_000), st.integers(0, 70_000), st.integers(0, 2 * DAY.length_ms)
        )
    )
    def wait(self, by: int) -> None:
        self.now += by

    @invariant()
    def the_books_are_the_models(self) -> None:
        rows = self.connection.execute(
            "SELECT response_id, user_id, input_tokens + output_tokens, settled_ms "
            "FROM usage_entries"
        ).fetchall()
        assert {row[0]: row[1:] for row in rows} == {
            id: (e.user, e.cost, e.settled) for id, e in self.entries.items()
        }
        kept = {
            user: (Windows.decode(windows).since(self.now), running)
            for user, windows, running in self.connection.execute(
                "SELECT user_id, windows, running FROM user_quotas"
            )
        }
        for user in USERS:
            windows, running = kept.get(user, (EMPTY, 0))
            assert running == self.running(user)
            assert (windows.minute.requests, windows.minute.tokens) == self.in_window(user, MINUTE)
            assert (windows.day.requests, windows.day.tokens) == self.in_window(user, DAY)
            sums = driven(bills.sums(self.tx, UserId(user), 0, 2**60))
            total = sum(each.input + each.output for each in sums)
            assert total == sum(e.cost or 0 for e in self.entries.values() if e.user == user)


Ledger.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLedger = Ledger.TestCase
