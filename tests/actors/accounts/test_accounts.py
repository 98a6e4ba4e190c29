"""Who a request is from, over a store that the test scripts and a clock that jumps."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import pytest
import trio
import trio.testing

from antiphon.actors.accounts.accounts import (
    FOUND_S,
    LOCAL_PRINCIPAL,
    MISSING_S,
    OUTAGE_S,
    Accounts,
)
from antiphon.actors.accounts.keys import hash_secret, new_secret, shown_prefix
from antiphon.actors.metering.plans import Plans
from antiphon.errors import KeySuspended, StoreUnavailable, Unauthenticated
from antiphon.ids import LOCAL_USER, KeyId, TenantId, UserId, new_key_id
from antiphon.plan_settings import PlanSettings
from antiphon.records import ApiKey, Scope, User
from antiphon.settings import Settings
from antiphon.storage import Store
from antiphon.supervision.spec import ChildSpec, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.probes import Tree
from antiphon.testing.stores import ScriptedStore

R = TypeVar("R")

ALICE = User(id=UserId("user_a"), tenant=TenantId("acme"), name="alice", created_ms=0)
NOW_MS = 1_000_000


class Direct:
    """A way to the store without an actor."""

    def __init__(self, store: ScriptedStore) -> None:
        self.store = store

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        return await work(cast("Store", self.store))


class Wall:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


class Desk:
    def __init__(self, *, is_local: bool = True) -> None:
        self.store = ScriptedStore()
        self.store.people[ALICE.id] = ALICE
        self.wall = Wall()
        self.settings = Settings(plans={"free": PlanSettings()}, default_plan="free")
        self.accounts = Accounts(
            Direct(self.store),
            is_local=is_local,
            now_ms=self.wall,
            plans=Plans(lambda: self.settings),
        )

    def make_key(self, **fields: object) -> str:
        secret = new_secret()
        self.replace(secret, **fields)
        return secret

    def replace(self, secret: str, **fields: object) -> None:
        base = {
            "id": new_key_id(),
            "user": ALICE.id,
            "prefix": shown_prefix(secret),
            "name": "",
            "scopes": frozenset({Scope.USER}),
            "created_ms": 0,
        }
        self.store.by_hash[hash_secret(secret)] = ApiKey(**{**base, **fields})  # type: ignore[arg-type]

    def lose_the_store(self) -> None:
        async def fail() -> None:
            raise StoreUnavailable("gone")

        self.store.before = fail

    async def refusal(self, secret: str | None) -> str:
        with pytest.raises(Unauthenticated) as caught:
            await self.accounts.authenticate(secret)
        return caught.value.problem


async def test_without_any_key_everybody_is_the_local_user_whatever_they_send(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk()

    for secret in (None, "unused", new_secret()):
        assert await desk.accounts.authenticate(secret) == LOCAL_PRINCIPAL
    assert desk.store.people[LOCAL_USER].created_ms == NOW_MS


async def test_without_any_key_nobody_comes_in_where_others_reach_the_api(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)

    assert "didn't provide an API key" in await desk.refusal(None)
    assert "Incorrect API key" in await desk.refusal(new_secret())


async def test_from_the_first_key_on_a_key_is_needed_within_seconds(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk()
    await desk.accounts.authenticate(None)
    secret = desk.make_key(id=KeyId("key_1"))
    await trio.sleep(MISSING_S + 0.1)

    assert "didn't provide an API key" in await desk.refusal(None)
    principal = await desk.accounts.authenticate(secret)
    assert (principal.user, principal.tenant) == (ALICE.id, ALICE.tenant)
    assert (principal.key, principal.scopes) == ("key_1", {Scope.USER})


async def test_a_server_that_has_known_keys_never_opens_again(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk()
    desk.make_key()
    await desk.refusal(None)
    desk.store.by_hash.clear()
    await trio.sleep(3600)

    await desk.refusal(None)


async def test_unknown_expired_and_revoked_keys_are_refused_in_the_same_words(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk()
    secrets = [
        desk.make_key(expires_ms=NOW_MS),
        desk.make_key(revoked_ms=5),
        new_secret(),
        "sk-something-else",
        "ключ",
    ]

    assert {await desk.refusal(secret) for secret in secrets} == {"Incorrect API key provided."}
    assert await desk.accounts.authenticate(desk.make_key(expires_ms=NOW_MS + 1))


async def test_a_key_expires_while_it_is_remembered(autojump_clock: trio.testing.MockClock):
    desk = Desk()
    secret = desk.make_key(expires_ms=NOW_MS + 1)
    await desk.accounts.authenticate(secret)
    desk.wall.ms += 1

    await desk.refusal(secret)


async def test_what_cannot_be_a_key_is_refused_without_a_look_at_the_store(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)

    for secret in ("unused", "", "sk-antiphon-short", new_secret() + "x"):
        await desk.refusal(secret)

    assert desk.store.asked == []


async def test_a_revoked_key_is_refused_after_a_few_seconds_and_a_known_one_asks_seldom(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    for _ in range(100):
        await desk.accounts.authenticate(secret)
    asked = desk.store.asked.count("find_key")
    desk.replace(secret, revoked_ms=1)
    await trio.sleep(FOUND_S + 0.1)

    await desk.refusal(secret)
    assert asked == 1


async def test_a_key_that_was_unknown_works_a_moment_after_it_was_made(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = new_secret()
    await desk.refusal(secret)
    await desk.refusal(secret)
    asked = desk.store.asked.count("find_key")
    desk.replace(secret)
    await trio.sleep(MISSING_S + 0.1)

    assert await desk.accounts.authenticate(secret)
    assert asked == 1


async def test_many_requests_with_one_key_are_one_look_at_the_store(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    users = []

    async def ask() -> None:
        users.append((await desk.accounts.authenticate(secret)).user)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(ask)

    assert users == [ALICE.id] * 100
    assert desk.store.asked == ["find_key"]


async def test_those_who_share_a_look_are_not_harmed_when_the_one_who_looks_leaves(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    desk.store.before = partial(trio.sleep, 3)
    users = []

    async def leave() -> None:
        with trio.move_on_after(1):
            await desk.accounts.authenticate(secret)

    async def stay() -> None:
        users.append((await desk.accounts.authenticate(secret)).user)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(stay)
        nursery.start_soon(stay)

    assert users == [ALICE.id] * 2
    assert trio.current_time() == pytest.approx(4, abs=0.01)


async def test_a_store_that_is_away_fails_all_who_share_a_look_at_once(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    errors = []

    async def late() -> None:
        await trio.sleep(10)
        raise StoreUnavailable("gone", 2.0, refused=True)

    async def ask() -> None:
        with pytest.raises(StoreUnavailable) as caught:
            await desk.accounts.authenticate(secret)
        errors.append((caught.value.reason, caught.value.retry_after_s, caught.value.refused))

    desk.store.before = late
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)

    assert errors == [("gone", 2.0, True)] * 5
    assert trio.current_time() == pytest.approx(10, abs=0.01)


async def test_a_known_key_outlives_an_outage_of_the_store_and_an_unknown_one_is_no_401(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret, other = desk.make_key(), desk.make_key()
    await desk.accounts.authenticate(secret)
    desk.lose_the_store()
    await trio.sleep(OUTAGE_S - 1)

    assert await desk.accounts.authenticate(secret)
    with pytest.raises(StoreUnavailable):
        await desk.accounts.authenticate(other)
    await trio.sleep(2)
    with pytest.raises(StoreUnavailable):
        await desk.accounts.authenticate(secret)


async def test_the_local_user_outlives_an_outage_too(autojump_clock: trio.testing.MockClock):
    desk = Desk()
    await desk.accounts.authenticate(None)
    desk.lose_the_store()
    await trio.sleep(OUTAGE_S - 1)
    during = await desk.accounts.authenticate(None)
    await trio.sleep(2)

    assert during == LOCAL_PRINCIPAL
    with pytest.raises(StoreUnavailable):
        await desk.accounts.authenticate(None)


async def test_a_store_that_hangs_costs_a_known_key_a_second_at_most(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    await desk.accounts.authenticate(secret)
    desk.store.before = trio.sleep_forever
    await trio.sleep(FOUND_S + 1)
    began = trio.current_time()

    assert await desk.accounts.authenticate(secret)
    assert trio.current_time() - began <= 1.01


async def test_guesses_do_not_push_out_known_keys(autojump_clock: trio.testing.MockClock):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    await desk.accounts.authenticate(secret)
    for _ in range(5000):
        await desk.refusal(new_secret())
    desk.store.asked.clear()

    await desk.accounts.authenticate(secret)
    assert desk.store.asked == []


async def test_times_of_use_are_written_every_minute_and_at_the_stop(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key(id=KeyId("key_1"))
    tree = Tree(Supervisor(SupervisorSpec(), [ChildSpec(id="accounts", start=desk.accounts.run)]))
    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        for _ in range(3):
            desk.wall.ms += 1
            await desk.accounts.authenticate(secret)
        before = list(desk.store.touched)
        await trio.sleep(61)
        after_a_minute = list(desk.store.touched)
        await trio.sleep(600)
        desk.wall.ms += 1
        await desk.accounts.authenticate(secret)
        await tree.end()

    assert LOCAL_USER in desk.store.people
    assert before == []
    assert after_a_minute == [{"key_1": NOW_MS + 3}]
    assert desk.store.touched[1:] == [{"key_1": NOW_MS + 4}]


async def test_times_of_use_that_could_not_be_written_are_written_later(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key(id=KeyId("key_1"))
    tree = Tree(Supervisor(SupervisorSpec(), [ChildSpec(id="accounts", start=desk.accounts.run)]))
    async with trio.open_nursery() as nursery:
        await tree.begin(nursery)
        await desk.accounts.authenticate(secret)
        desk.lose_the_store()
        await trio.sleep(61)
        desk.store.before = None
        await trio.sleep(61)
        written = list(desk.store.touched)
        await tree.end()

    assert written == [{"key_1": NOW_MS}]


async def test_a_key_known_to_be_gone_does_not_come_back_in_an_outage(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk(is_local=False)
    secret = desk.make_key()
    await desk.accounts.authenticate(secret)
    desk.store.by_hash.clear()
    await trio.sleep(FOUND_S + 1)
    await desk.refusal(secret)
    desk.lose_the_store()
    await trio.sleep(MISSING_S + 1)

    with pytest.raises(StoreUnavailable):
        await desk.accounts.authenticate(secret)


async def test_a_principal_has_the_plan_that_counts(autojump_clock: trio.testing.MockClock):
    desk = Desk()
    secret = desk.make_key()

    assert (await desk.accounts.authenticate(secret)).plan == "free"


async def test_a_suspended_user_or_key_is_told_why_within_seconds(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk()
    secret = desk.make_key()
    await desk.accounts.authenticate(secret)
    desk.store.people[ALICE.id] = replace(ALICE, suspended="unpaid bill")
    await trio.sleep(FOUND_S + 0.1)

    with pytest.raises(KeySuspended, match="unpaid bill"):
        await desk.accounts.authenticate(secret)

    desk.store.people[ALICE.id] = ALICE
    desk.replace(secret, suspended="leaked")
    await trio.sleep(FOUND_S + 0.1)
    with pytest.raises(KeySuspended, match="leaked"):
        await desk.accounts.authenticate(secret)


async def test_who_was_given_a_plan_that_is_gone_is_never_without_limits(
    autojump_clock: trio.testing.MockClock,
):
    desk = Desk()
    desk.store.people[ALICE.id] = replace(ALICE, plan="gold")
    secret = desk.make_key()

    assert (await desk.accounts.authenticate(secret)).plan == "free"
    desk.settings = Settings()
    with pytest.raises(KeySuspended):
        await desk.accounts.authenticate(secret)


async def test_a_key_is_remembered_while_it_is_good(autojump_clock: trio.testing.MockClock):
    desk = Desk()
    secret, unknown = desk.make_key(expires_ms=NOW_MS + 1), new_secret()
    assert not desk.accounts.remembers(secret)
    await desk.accounts.authenticate(secret)
    await desk.refusal(unknown)

    assert desk.accounts.remembers(secret)
    assert not desk.accounts.remembers(unknown)
    assert not desk.accounts.remembers("no key at all")
    desk.wall.ms += 1
    assert not desk.accounts.remembers(secret), "it has expired"
