"""Suspensions on servers that share a store, through restarts and outages; the clock jumps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec
import pytest
import structlog.testing
import trio
import trio.testing

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.signals import Action, Kind, Subject
from antiphon.actors.accounts.accounts import FOUND_S, Accounts
from antiphon.actors.accounts.keys import hash_secret, new_secret, shown_prefix
from antiphon.brake_settings import BrakeSettings
from antiphon.errors import KeySuspended, StoreFailed, StoreUnavailable
from antiphon.http.abuse import AbuseGate
from antiphon.ids import TenantId, UserId, new_key_id
from antiphon.records import ApiKey, Principal, Scope, User
from antiphon.supervision.spec import ChildSpec, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.abuse import JAILBREAK, Direct
from antiphon.testing.probes import Tree
from antiphon.testing.stores import ScriptedStore
from antiphon.testing.telemetry import RecordingTelemetry

MALLORY = User(id=UserId("user_m"), tenant=TenantId("acme"), name="mallory", created_ms=0)
SUBJECT = Subject(Kind.USER, MALLORY.id)
SECRET = new_secret()
HOME = "203.0.113.9"
EPOCH_MS = 1_800_000_000_000


def wall_ms() -> int:
    return EPOCH_MS + round(trio.current_time() * 1000)


class Shared(ScriptedStore):
    """With one user, who has one key."""

    def __init__(self) -> None:
        super().__init__()
        self.people[MALLORY.id] = MALLORY
        self.by_hash[hash_secret(SECRET)] = ApiKey(
            id=new_key_id(),
            user=MALLORY.id,
            prefix=shown_prefix(SECRET),
            name="",
            scopes=frozenset({Scope.USER}),
            created_ms=0,
        )

    @property
    def mallory(self) -> User:
        return self.people[MALLORY.id]

    def fail(self, error: Exception) -> None:
        async def fail() -> None:
            raise error

        self.before = fail

    def mend(self) -> None:
        self.before = None


@dataclass
class Replica:
    """What of one server has to do with it."""

    store: Shared
    settings: AbuseSettings = field(default_factory=AbuseSettings)

    def __post_init__(self) -> None:
        way = Direct(self.store)
        self.accounts = Accounts(way, is_local=False, now_ms=wall_ms)
        self.abuse = Abuse(way, lambda: self.settings, now_ms=wall_ms, forget=self.accounts.forget)
        self.gate = AbuseGate(self.abuse, lambda: BrakeSettings().proxies, RecordingTelemetry())

    async def request(self, *, rule: str | None = None) -> Principal:
        """Raises KeySuspended, RateLimited."""
        principal = await self.accounts.authenticate(SECRET)
        self.gate.admit(principal, HOME)
        self.gate.came(principal, HOME)
        if rule is not None:
            self.gate.prompt_blocked(principal.user, HOME, rule, None)
        return principal

    async def refusal(self) -> str | None:
        try:
            await self.request()
        except KeySuspended as error:
            return error.reason
        return None

    def attack(self, times: int = 11) -> None:
        for _ in range(times):
            self.gate.prompt_blocked(MALLORY.id, None, JAILBREAK, None)


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    children = [
        ChildSpec(id=f"abuse-{number}", start=replica.abuse.run)
        for number, replica in enumerate(replicas)
    ]
    async with trio.open_nursery() as nursery:
        tree = await Tree(Supervisor(SupervisorSpec(), children)).begin(nursery)
        yield
        await tree.end()


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
def store() -> Shared:
    return Shared()


async def test_a_suspension_on_one_server_is_seen_by_the_other_within_seconds(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here, there = Replica(store), Replica(store)
    async with running(here, there):
        await here.request()
        await there.request()
        here.attack()
        at_once = await here.refusal()
        await settled()
        await trio.sleep(FOUND_S + 0.1)
        elsewhere = await there.refusal()

    assert at_once is not None
    assert elsewhere == at_once
    assert "automatically" in at_once
    assert "until 2027-01-15T09:00" in at_once
    assert store.mallory.suspended_until_ms == EPOCH_MS + 3_600_000


async def test_it_holds_after_a_restart_and_ends_by_itself(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    before = Replica(store)
    async with running(before):
        before.attack()
        await settled()

    after = Replica(store)
    async with running(after):
        await settled()
        seen = [user.id for user in after.abuse.suspended]
        held = await after.refusal()
        await trio.sleep(3_601)
        ended = await after.refusal()

    assert held is not None
    assert (seen, ended) == ([MALLORY.id], None)


async def test_while_the_store_is_away_it_holds_here_and_is_written_later(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        await here.request()
        await settled()
        store.fail(StoreUnavailable("gone"))
        here.attack()
        held = [await here.refusal() for _ in range(3)]
        await trio.sleep(60)
        unwritten, owed = store.mallory.suspended, here.abuse.statistics().owed
        store.mend()
        await trio.sleep(6)

    assert None not in held
    assert (unwritten, owed) == (None, 1)
    assert store.mallory.suspended == held[0]
    assert here.abuse.owed == 0


async def test_what_the_store_refuses_for_good_holds_here_and_holds_up_nothing(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        await here.request()
        await settled()
        store.fail(StoreFailed("constraint"))
        here.attack()
        await settled()
        owed = here.abuse.owed
        store.mend()
        await trio.sleep(60)
        held = await here.refusal()

    assert owed == 0
    assert held is not None


async def test_what_is_owed_at_a_stop_is_written_before_the_end(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        store.fail(StoreUnavailable("gone"))
        here.attack()
        await settled()
        store.mend()

    assert store.mallory.suspended is not None


async def test_forgiving_serves_again_at_once_here_and_within_seconds_elsewhere(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here, there = Replica(store), Replica(store)
    async with running(here, there):
        here.attack()
        await settled()
        before = await here.refusal(), await there.refusal()
        written = await here.abuse.forgive(SUBJECT)
        at_once = await here.refusal()
        await trio.sleep(FOUND_S + 0.1)
        later = await there.refusal()

    assert None not in before
    assert (written, at_once, later) == (True, None, None)
    assert here.abuse.suspended == ()
    assert here.abuse.detection.score(SUBJECT) == 0.0


async def test_who_is_forgiven_on_another_server_is_forgiven_on_the_one_that_suspended(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here, there = Replica(store), Replica(store)
    async with running(here, there):
        here.attack()
        await settled()
        await trio.sleep(60)
        await there.abuse.forgive(SUBJECT)
        await trio.sleep(FOUND_S + 0.1)
        with structlog.testing.capture_logs() as logs:
            served = await here.refusal()

    assert served is None
    assert here.abuse.detection.score(SUBJECT) == 0.0
    assert [line["event"] for line in logs] == ["abuse_lifted"]


async def test_a_store_that_still_remembers_the_time_before_lifts_nothing(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    """A look at the key that began before the suspension was written may land after it."""
    here = Replica(store)
    async with running(here):
        here.attack()
        await settled()
        principal = Principal(
            user=MALLORY.id, tenant=MALLORY.tenant, scopes=frozenset(), key=new_key_id()
        )
        with pytest.raises(KeySuspended):
            here.gate.admit(principal, HOME)


async def test_while_the_store_is_away_forgiving_counts_here_and_is_written_later(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        here.attack()
        await settled()
        store.fail(StoreUnavailable("gone"))
        written = await here.abuse.forgive(SUBJECT)
        store.mend()
        await trio.sleep(6)
        served = await here.refusal()

    assert (written, served) == (False, None)


async def test_an_operators_suspension_is_neither_replaced_nor_lifted(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    store.people[MALLORY.id] = replace(MALLORY, suspended="unpaid bill")
    here = Replica(store)
    async with running(here):
        here.attack()
        await settled()
        suspended = await here.refusal()
        await here.abuse.forgive(SUBJECT)
        await trio.sleep(6)
        forgiven = await here.refusal()

    assert (suspended, forgiven) == ("unpaid bill", "unpaid bill")


async def test_a_pardon_serves_again_and_keeps_serving(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        here.attack()
        await settled()
        await here.abuse.pardon(SUBJECT, wall_ms() + 3_600_000)
        here.attack(100)
        served = await here.refusal()

    assert served is None
    assert store.mallory.suspended is None


async def test_the_end_of_a_pardon_lifts_nothing(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        here.attack()
        await settled()
        await here.abuse.pardon(SUBJECT, wall_ms())
        await trio.sleep(60)
        held = await here.refusal()

    assert held is not None


async def test_watching_counts_and_tells_and_does_nothing(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store, AbuseSettings(mode="watch"))
    async with running(here):
        with structlog.testing.capture_logs() as logs:
            here.attack()
        served = await here.refusal()

    seen = [(line["event"], line["action"]) for line in logs]
    assert seen == [
        ("abuse_seen", Action.WARN),
        ("abuse_seen", Action.SLOW),
        ("abuse_seen", Action.SUSPEND),
    ]
    assert served is None
    assert store.mallory.suspended is None
    assert here.abuse.statistics().actions["user", "suspend"] == 1


async def test_off_counts_nothing(store: Shared, autojump_clock: trio.testing.MockClock):
    here = Replica(store, AbuseSettings(mode="off"))
    async with running(here):
        here.attack()
        here.gate.key_failed(HOME)
        here.gate.flooded(HOME, "address_flood")
        await here.request()

    assert len(here.abuse.detection) == 0


async def test_switching_it_off_serves_whom_this_server_alone_refused(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    here.attack(7)
    slowed = here.abuse.user(MALLORY.id).action
    here.settings = msgspec.structs.replace(here.settings, mode="watch")

    assert (slowed, here.abuse.user(MALLORY.id).action) == (Action.SLOW, Action.NONE)


async def test_a_line_says_who_and_what_for_and_another_that_it_is_over(
    store: Shared, autojump_clock: trio.testing.MockClock
):
    here = Replica(store)
    async with running(here):
        with structlog.testing.capture_logs() as logs:
            here.attack()
            await trio.sleep(3_700)

    acted = [line for line in logs if line["event"] == "abuse_acted"][-1]
    assert acted["subject"] == MALLORY.id
    assert (acted["kind"], acted["action"]) == ("user", "suspend")
    assert (acted["score"], acted["threshold"]) == (30.0, 30.0)
    assert acted["signals"] == ["jailbreak"]
    assert [line["subject"] for line in logs if line["event"] == "abuse_ended"] == [MALLORY.id]
