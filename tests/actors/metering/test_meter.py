"""The meter over a store that the test scripts and a clock that jumps."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import pytest
import trio
from trio.testing import MockClock

from antiphon.actors.metering.books import LEASE_S
from antiphon.actors.metering.meter import StoreMeter
from antiphon.actors.metering.plans import Plans
from antiphon.errors import KeySuspended, RateLimited, StoreUnavailable
from antiphon.events import Sampling, Turn
from antiphon.ids import ModelName, NodeId, RequestId
from antiphon.plan_settings import PlanSettings
from antiphon.ports import Charge
from antiphon.quotas import Standing, UsedUp
from antiphon.records import TokenUsage
from antiphon.settings import Settings
from antiphon.storage import Store
from antiphon.testing.stores import ScriptedStore
from antiphon.turn_events import Usage

R = TypeVar("R")
NODE = NodeId("node_me")
USED = Usage(prompt_tokens=7, completion_tokens=3)


class Desk:
    """A meter, what it works with, and the way to the store between them."""

    def __init__(self, *, alone: bool = False, node: NodeId = NODE) -> None:
        self.store = ScriptedStore()
        self.settings = Settings(
            plans={"free": PlanSettings(requests_per_minute=3), "open": PlanSettings()},
            default_plan="free",
        )
        self.skew_s = 0.0
        plans = Plans(lambda: self.settings)
        self.meter = StoreMeter(self, plans, node=node, now_ms=self.now_ms, alone=alone)

    def now_ms(self) -> int:
        return round((trio.current_time() + self.skew_s) * 1000)

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        return await work(cast("Store", self.store))

    def lose_the_store(self, *, refused: bool = True) -> None:
        async def fail() -> None:
            raise StoreUnavailable("gone", refused=refused)

        self.store.before = fail

    def find_the_store(self) -> None:
        self.store.before = None

    async def reserve(
        self, prompt_tokens: int = 10, max_tokens: int = 20, **fields: object
    ) -> Charge:
        return await self.meter.reserve(
            a_turn(**fields), prompt_tokens=prompt_tokens, max_tokens=max_tokens
        )


def a_turn(**fields: object) -> Turn:
    made: dict[str, object] = {"user": "user_a", "plan": "free", "response": "chatcmpl-1"} | fields
    return Turn(
        request=RequestId("req_1"),
        model=ModelName("m"),
        messages=(),
        sampling=Sampling(),
        **made,  # type: ignore[arg-type]
    )


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def at_work(desk: Desk, nursery: trio.Nursery) -> trio.Event:
    stopping = trio.Event()
    nursery.start_soon(desk.meter.books.run, stopping)
    return stopping


async def test_the_local_user_is_free_and_touches_no_database(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve(user=None, plan=None)
    await charge.settle(USED)
    await charge.release()

    assert charge.limits == ()
    assert desk.store.asked == []


async def test_the_servers_own_work_is_free_and_touches_no_database(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve(upkeep=True)
    await charge.settle(USED)

    assert desk.store.asked == []


async def test_prompt_and_longest_answers_of_all_choices_are_held_before_any_work(
    desk: Desk, autojump_clock: MockClock
):
    desk.store.standings = (
        Standing(unit="requests per minute", limit=3, remaining=2, reset_ms=60_000),
    )

    charge = await desk.reserve(choices=3)

    (held,) = desk.store.bills.values()
    assert (held.tokens, held.user, held.model, held.owner) == (10 + 3 * 20, "user_a", "m", NODE)
    assert held.limits.requests_per_minute == 3
    assert held.lease_ms == desk.now_ms() + LEASE_S * 1000
    assert [(each.name, each.remaining) for each in charge.limits] == [("requests", 2)]


async def test_what_the_client_is_told_is_settled_once(desk: Desk, autojump_clock: MockClock):
    charge = await desk.reserve()

    await charge.settle(USED)
    await charge.settle(Usage(prompt_tokens=1, completion_tokens=1))
    await charge.release()

    assert desk.store.settled == {"chatcmpl-1": TokenUsage(input=7, output=3)}
    assert desk.store.bills == {}


async def test_what_is_released_is_not_settled_afterwards(desk: Desk, autojump_clock: MockClock):
    charge = await desk.reserve()

    await charge.release()
    await charge.settle(USED)

    assert (desk.store.bills, desk.store.settled) == ({}, {})


async def test_a_limit_that_is_used_up_is_a_refusal_with_advice(
    desk: Desk, autojump_clock: MockClock
):
    desk.store.refusal = UsedUp(unit="requests per minute", limit=3, wait_ms=2_000)

    with pytest.raises(RateLimited) as caught:
        await desk.reserve()

    assert caught.value.retry_after_s == 2.0


async def test_who_has_no_limit_has_a_bill_all_the_same(desk: Desk, autojump_clock: MockClock):
    charge = await desk.reserve(plan="open")
    assert not next(iter(desk.store.bills.values())).limits.any
    await charge.settle(USED)

    assert desk.store.settled


async def test_a_stored_answer_without_limits_costs_no_look(desk: Desk, autojump_clock: MockClock):
    """Its bill was opened when it was accepted, and is settled with its end."""
    charge = await desk.reserve(plan="open", stored=True)
    await charge.settle(USED)

    assert desk.store.asked == []


async def test_a_stored_answer_is_counted_and_its_bill_left_to_its_end(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve(stored=True)
    assert [each.lease_ms for each in desk.store.bills.values()] == [None]

    await charge.settle(USED)
    await charge.release()

    assert desk.store.settled == {}
    assert desk.store.asked == ["reserve"]


async def test_a_stored_answer_that_is_refused_later_is_not_counted(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve(stored=True)

    await charge.release()

    assert desk.store.bills == {}


async def test_a_plan_that_nobody_defines_is_refused_before_the_database(
    desk: Desk, autojump_clock: MockClock
):
    desk.settings = Settings()

    with pytest.raises(KeySuspended):
        await desk.reserve()

    assert desk.store.asked == []


async def test_without_a_store_nothing_is_begun(desk: Desk, autojump_clock: MockClock):
    desk.lose_the_store()

    with pytest.raises(StoreUnavailable):
        await desk.reserve()


async def test_what_may_have_been_reserved_all_the_same_is_released_later(
    desk: Desk, autojump_clock: MockClock
):
    async def lose_the_answer() -> None:
        if desk.store.asked[-1] == "reserve":
            desk.store.bills[a_turn().response] = None
            raise StoreUnavailable("no answer")

    desk.store.before = lose_the_answer
    with pytest.raises(StoreUnavailable):
        await desk.reserve()
    assert desk.store.bills

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel("seen enough")

    assert desk.store.bills == {}
    assert desk.meter.books.owed == 0


async def test_who_leaves_while_it_is_reserved_leaves_no_reservation(
    desk: Desk, autojump_clock: MockClock
):
    async def be_slow() -> None:
        await trio.sleep(1)

    desk.store.before = be_slow
    with trio.move_on_after(0.5):
        await desk.reserve()

    assert desk.meter.books.owed == 1


async def test_a_bill_that_cannot_be_written_is_owed_and_paid_when_the_store_is_back(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve()
    desk.lose_the_store()

    await charge.settle(USED)
    assert (desk.meter.books.owed, desk.store.settled) == (1, {})

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        await trio.sleep(3 * LEASE_S)
        assert desk.meter.books.owed == 1
        desk.find_the_store()
        await trio.sleep(LEASE_S)
        nursery.cancel_scope.cancel("seen enough")

    assert desk.meter.books.owed == 0
    assert desk.store.settled == {"chatcmpl-1": TokenUsage(input=7, output=3)}


async def test_the_end_of_an_answer_waits_only_so_long_for_a_store_that_hangs(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve()

    async def hang() -> None:
        await trio.sleep_forever()

    desk.store.before = hang
    began = trio.current_time()
    await charge.settle(USED)

    assert trio.current_time() - began == pytest.approx(2.0, abs=0.1)
    assert desk.meter.books.owed == 1


async def test_open_bills_are_kept_alive_as_long_as_they_are_open(
    desk: Desk, autojump_clock: MockClock
):
    charge = await desk.reserve()

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        await trio.sleep(10 * LEASE_S)
        assert list(desk.store.bills) == ["chatcmpl-1"]
        await charge.settle(USED)
        nursery.cancel_scope.cancel("seen enough")

    assert desk.store.settled == {"chatcmpl-1": TokenUsage(input=7, output=3)}


async def test_a_machine_that_slept_keeps_its_own_bills(desk: Desk, autojump_clock: MockClock):
    await desk.reserve()

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        await trio.sleep(5 * LEASE_S)
        desk.skew_s += 100 * LEASE_S
        await trio.sleep(LEASE_S)
        nursery.cancel_scope.cancel("seen enough")

    assert list(desk.store.bills) == ["chatcmpl-1"]


async def test_the_bills_of_a_server_that_is_gone_lapse_with_their_lease(
    desk: Desk, autojump_clock: MockClock
):
    gone = Desk()
    gone.store = desk.store
    await gone.reserve(response="chatcmpl-gone")

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        await trio.sleep(LEASE_S - 0.1)
        assert desk.store.bills
        await trio.sleep(LEASE_S)
        nursery.cancel_scope.cancel("seen enough")

    assert desk.store.bills == {}
    assert desk.store.settled == {"chatcmpl-gone": TokenUsage()}


async def test_after_an_outage_whoever_lives_may_renew_first(desk: Desk, autojump_clock: MockClock):
    gone = Desk()
    gone.store = desk.store
    await gone.reserve(response="chatcmpl-other")

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        desk.lose_the_store()
        await trio.sleep(5 * LEASE_S)
        desk.find_the_store()
        await trio.sleep(LEASE_S / 2)
        assert desk.store.bills, "its owner is given as long as a lease"
        await trio.sleep(LEASE_S)
        nursery.cancel_scope.cancel("seen enough")

    assert desk.store.bills == {}


async def test_alone_what_was_open_before_is_nobodys(autojump_clock: MockClock):
    desk, before = Desk(alone=True), Desk(node=NodeId("node_before"))
    before.store = desk.store
    await before.reserve()

    async with trio.open_nursery() as nursery:
        await at_work(desk, nursery)
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel("seen enough")

    assert desk.store.bills == {}


async def test_what_is_owed_at_the_stop_is_paid_before_it(desk: Desk, autojump_clock: MockClock):
    charge = await desk.reserve()

    async with trio.open_nursery() as nursery:
        stopping = await at_work(desk, nursery)
        await trio.sleep(1)
        desk.lose_the_store()
        await charge.settle(USED)
        desk.find_the_store()
        stopping.set()

    assert desk.store.settled == {"chatcmpl-1": TokenUsage(input=7, output=3)}
