"""Reservations and bills on both databases: what is held, by how many at once, and how it ends."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from antiphon.errors import RecordNotFound
from antiphon.ids import ModelName, NodeId, ResponseId, new_node_id, new_response_id, new_user_id
from antiphon.persistence.bridge import open_store
from antiphon.persistence.check import check_database
from antiphon.persistence.port import Statement
from antiphon.persistence.store import SqlStore
from antiphon.quotas import QuotaLimits, Reservation, Reserved, UsageSum, UsedUp
from antiphon.records import ResponseStatus, TokenUsage
from antiphon.testing.specimens import Writer

MODEL = ModelName("smollm2")
NODE = new_node_id()
LIMITS = QuotaLimits(requests_per_minute=10, tokens_per_day=10_000, concurrent=8)
NOW = 1_800_000_000_000
USED = TokenUsage(input=7, output=3)
LEASE_MS = 10_000


@pytest.fixture
async def other(store: SqlStore, url: str, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """A second server's store on the same database."""
    async with open_store(url=url, data_dir=tmp_path) as other:
        yield other


@pytest.fixture
async def sound(store: SqlStore) -> AsyncIterator[None]:
    """The books are right when the test is over."""
    yield
    report = await check_database(store.database)
    assert report.sound, report.problems


def wanted(writer: Writer, **fields: Any) -> Reservation:
    made: dict[str, Any] = {
        "id": new_response_id(),
        "user": writer.user,
        "model": MODEL,
        "tokens": 100,
        "now_ms": NOW,
        "owner": NODE,
        "lease_ms": NOW + LEASE_MS,
        "limits": LIMITS,
    } | fields
    return Reservation(**made)


async def running(store: SqlStore) -> int:
    row = Statement("test", "SELECT COALESCE(SUM(running), 0) FROM user_quotas")
    return int((await store.database.read(lambda tx: tx.fetch(row)))[0][0])


async def remaining(store: SqlStore, writer: Writer, unit: str, now_ms: int = NOW) -> int:
    """What a look that takes nothing would find: one that is refused for its size."""
    look = wanted(writer, tokens=10**9, now_ms=now_ms)
    verdict = await store.reserve(replace(look, limits=replace(LIMITS, concurrent=99)))
    assert isinstance(verdict, UsedUp)
    return next(each.remaining for each in verdict.standings if each.unit == unit)


@pytest.mark.usefixtures("sound")
async def test_of_200_at_once_from_two_servers_just_as_many_pass_as_there_is_room_for(
    store: SqlStore, other: SqlStore, writer: Writer
):
    verdicts: list[Reserved | UsedUp] = []
    limits = QuotaLimits(requests_per_minute=10)

    async def reserve(server: SqlStore) -> None:
        verdicts.append(await server.reserve(wanted(writer, limits=limits)))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(reserve, store)
                nursery.start_soon(reserve, other)

    assert sum(isinstance(verdict, Reserved) for verdict in verdicts) == 10
    assert len(verdicts) == 200
    assert {v.unit for v in verdicts if isinstance(v, UsedUp)} == {"requests per minute"}
    assert len(await store.usage(writer.user)) == 10
    assert await running(store) == 10


@pytest.mark.parametrize(
    "limits",
    [
        QuotaLimits(tokens_per_minute=1000),
        QuotaLimits(tokens_per_day=1000),
        QuotaLimits(requests_per_day=10),
        QuotaLimits(concurrent=10),
    ],
)
async def test_every_limit_holds_against_many_at_once(
    store: SqlStore, other: SqlStore, writer: Writer, limits: QuotaLimits
):
    passed: list[Reserved] = []

    async def reserve(server: SqlStore) -> None:
        verdict = await server.reserve(wanted(writer, limits=limits))
        if isinstance(verdict, Reserved):
            passed.append(verdict)

    async with trio.open_nursery() as nursery:
        for _ in range(15):
            nursery.start_soon(reserve, store)
            nursery.start_soon(reserve, other)

    assert len(passed) == 10


async def test_one_users_limits_are_not_anothers(store: SqlStore, writer: Writer):
    another = await Writer.new(store)
    limits = QuotaLimits(requests_per_minute=1)

    assert isinstance(await store.reserve(wanted(writer, limits=limits)), Reserved)
    assert isinstance(await store.reserve(wanted(another, limits=limits)), Reserved)
    assert isinstance(await store.reserve(wanted(writer, limits=limits)), UsedUp)


@pytest.mark.usefixtures("sound")
async def test_a_refusal_writes_nothing(store: SqlStore, writer: Writer):
    full = wanted(writer, limits=QuotaLimits(tokens_per_minute=99))

    assert isinstance(await store.reserve(full), UsedUp)

    assert await store.usage(writer.user) == ()
    assert await running(store) == 0


@pytest.mark.usefixtures("sound")
async def test_a_bill_is_settled_once_and_what_was_not_used_is_there_again(
    store: SqlStore, writer: Writer
):
    held = wanted(writer)
    await store.reserve(held)
    assert await remaining(store, writer, "tokens per day") == 9_900

    assert await store.settle(held.id, USED, NOW + 5)
    assert not await store.settle(held.id, TokenUsage(input=99), NOW + 6)
    assert not await store.release(held.id)

    (entry,) = await store.usage(writer.user)
    assert (entry.response, entry.usage, entry.settled_ms) == (held.id, USED, NOW + 5)
    assert entry.reserved_tokens == 100
    assert await remaining(store, writer, "tokens per day") == 9_990
    assert await remaining(store, writer, "requests per minute") == 9
    assert await running(store) == 0


@pytest.mark.usefixtures("sound")
async def test_what_is_released_was_never_there(store: SqlStore, writer: Writer):
    held = wanted(writer)
    await store.reserve(held)

    assert await store.release(held.id)
    assert not await store.release(held.id)
    assert not await store.settle(held.id, USED, NOW)

    assert await store.usage(writer.user) == ()
    assert await remaining(store, writer, "requests per minute") == 10
    assert await remaining(store, writer, "tokens per day") == 10_000
    assert await running(store) == 0


@pytest.mark.usefixtures("sound")
async def test_who_has_no_limit_has_a_bill_all_the_same(store: SqlStore, writer: Writer):
    held = wanted(writer, limits=QuotaLimits())

    assert await store.reserve(held) == Reserved()
    assert await store.settle(held.id, USED, NOW)

    (entry,) = await store.usage(writer.user)
    assert entry.usage == USED


@pytest.mark.usefixtures("sound")
async def test_a_reservation_whose_server_is_gone_lapses_with_its_lease(
    store: SqlStore, other: SqlStore, writer: Writer
):
    held, kept = wanted(writer), wanted(writer)
    await store.reserve(held)
    await store.reserve(kept)
    survivor = new_node_id()
    until = NOW + 2 * LEASE_MS
    assert await store.renew_reservations([kept.id, new_response_id()], until) == 1

    assert await other.lapse_reservations(NOW + LEASE_MS - 1, owner=survivor) == 0
    assert await other.lapse_reservations(NOW + LEASE_MS, owner=survivor) == 1
    assert await other.lapse_reservations(NOW + LEASE_MS, owner=survivor) == 0

    entries = {entry.response: entry for entry in await store.usage(writer.user)}
    assert entries[held.id].usage == TokenUsage()
    assert entries[kept.id].usage is None
    assert await running(store) == 1
    assert await remaining(store, writer, "tokens per day") == 9_900


async def test_one_that_its_own_server_does_not_know_lapses_there_too(
    store: SqlStore, writer: Writer
):
    """Its answer was lost on the way: nobody renews it."""
    await store.reserve(wanted(writer))

    assert await store.lapse_reservations(NOW + LEASE_MS, owner=NODE) == 1


@pytest.mark.usefixtures("sound")
async def test_alone_no_lease_of_anybody_else_means_anything(store: SqlStore, writer: Writer):
    await store.reserve(wanted(writer))
    mine = wanted(writer, owner=NodeId("node_mine"))
    await store.reserve(mine)

    assert await store.lapse_reservations(NOW, owner=mine.owner, alone=True) == 1

    assert {e.response for e in await store.usage(writer.user) if e.usage is None} == {mine.id}


@pytest.mark.usefixtures("sound")
async def test_a_server_that_slept_past_its_lease_still_bills_what_it_told(
    store: SqlStore, writer: Writer
):
    held = wanted(writer)
    await store.reserve(held)
    assert await store.lapse_reservations(NOW + LEASE_MS, owner=new_node_id()) == 1

    assert await store.settle(held.id, USED, NOW + LEASE_MS + 1)
    assert not await store.settle(held.id, USED, NOW + LEASE_MS + 2)

    (entry,) = await store.usage(writer.user)
    assert entry.usage == USED
    assert await remaining(store, writer, "tokens per day") == 9_990
    assert await running(store) == 0


@pytest.mark.usefixtures("sound")
async def test_the_bill_of_a_stored_response_is_counted_with_it_and_not_twice(
    store: SqlStore, writer: Writer
):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    held = wanted(writer, id=turn.response.id, lease_ms=None, model=ModelName("larger"))

    assert isinstance(await store.reserve(held), Reserved)
    assert await store.lapse_reservations(NOW * 2, owner=new_node_id()) == 0, "it has no lease"
    assert await running(store) == 1
    assert await store.finish_response(writer.final(turn.response.id, "Ho"))

    (entry,) = await store.usage(writer.user)
    assert entry.usage == TokenUsage(input=7, cached=2, output=3, reasoning=1)
    assert await running(store) == 0
    assert await remaining(store, writer, "tokens per day") == 9_990


@pytest.mark.usefixtures("sound")
async def test_a_withdrawn_turn_gives_back_what_it_held(store: SqlStore, writer: Writer):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    await store.reserve(wanted(writer, id=turn.response.id, lease_ms=None))

    assert await store.withdraw_turn(turn.response.id, writer.node)

    assert await store.usage(writer.user) == ()
    assert await running(store) == 0
    assert await remaining(store, writer, "requests per minute") == 10


@pytest.mark.usefixtures("sound")
async def test_a_stored_turn_that_moves_is_counted_anew_and_its_bill_stays(
    store: SqlStore, writer: Writer
):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    held = wanted(writer, id=turn.response.id, lease_ms=None)
    await store.reserve(held)

    assert await store.uncount(held.id, NOW)
    assert not await store.uncount(held.id, NOW)
    assert await running(store) == 0
    await store.reserve(replace(held, model=ModelName("smaller"), tokens=50))

    assert await remaining(store, writer, "tokens per day") == 9_950
    assert await remaining(store, writer, "requests per minute") == 9
    (entry,) = await store.usage(writer.user)
    assert entry.model == "smaller"


@pytest.mark.usefixtures("sound")
async def test_a_reservation_for_a_response_that_is_gone_holds_nothing(
    store: SqlStore, writer: Writer
):
    await store.reserve(wanted(writer, lease_ms=None))

    assert await running(store) == 0
    assert await store.usage(writer.user) == ()


@pytest.mark.usefixtures("sound")
async def test_an_orphan_that_is_ended_gives_back_what_it_held(store: SqlStore, writer: Writer):
    turn = writer.turn("Hi")
    await writer.accept(turn)
    await store.reserve(wanted(writer, id=turn.response.id, lease_ms=None))
    reaper = new_node_id()
    await store.orphans(turn.lease_ms, owner=reaper)

    final = writer.final(turn.response.id, owner=reaper, status=ResponseStatus.FAILED)
    assert await store.finish_response(replace(final, usage=TokenUsage()))

    assert await running(store) == 0
    assert await remaining(store, writer, "tokens per day") == 10_000


@pytest.mark.usefixtures("sound")
async def test_an_erased_user_leaves_no_quota_and_bills_without_a_name(
    store: SqlStore, writer: Writer
):
    held = wanted(writer)
    await store.reserve(held)
    turn = writer.turn("Hi")
    await writer.accept(turn)
    await store.reserve(wanted(writer, id=turn.response.id, lease_ms=None))

    assert await store.erase_user(writer.user, NOW) is not None
    assert await store.settle(held.id, USED, NOW)

    (bill,) = [each for each in await everything(store) if each.response == held.id]
    assert (bill.user, bill.input, bill.output) == (None, 7, 3)
    with pytest.raises(RecordNotFound):
        await store.reserve(wanted(writer))
    with pytest.raises(RecordNotFound):
        await store.reserve(wanted(writer, limits=QuotaLimits()))


async def test_nobody_who_never_was_is_billed(store: SqlStore):
    stranger = Writer(store, new_user_id())

    with pytest.raises(RecordNotFound):
        await store.reserve(wanted(stranger))
    with pytest.raises(RecordNotFound):
        await store.reserve(wanted(stranger, limits=QuotaLimits()))


async def everything(store: SqlStore, until_ms: int = NOW * 2, limit: int = 2):
    """All bills, in pages."""
    found, after = [], (0, "")
    while page := await store.bills(after=after, until_ms=until_ms, limit=limit):
        found += page
        after = (page[-1].settled_ms, page[-1].response)
    return found


async def test_consecutive_exports_have_each_bill_once_also_one_that_was_open_meanwhile(
    store: SqlStore, writer: Writer
):
    early, late = wanted(writer), wanted(writer)
    for held in (early, late):
        await store.reserve(held)
    await store.settle(early.id, USED, NOW + 10)

    first = await everything(store, NOW + 100)
    await store.settle(late.id, USED, NOW + 200)
    second = [each for each in await everything(store) if each.settled_ms >= NOW + 100]

    assert [each.response for each in first] == [early.id]
    assert [each.response for each in second] == [late.id]


async def test_bills_come_in_order_whatever_the_page(store: SqlStore, writer: Writer):
    ids: list[ResponseId] = []
    for number in range(7):
        held = wanted(writer, limits=QuotaLimits())
        await store.reserve(held)
        await store.settle(held.id, USED, NOW + number // 3)
        ids.append(held.id)

    for limit in (1, 2, 3, 100):
        found = [each.response for each in await everything(store, limit=limit)]
        assert sorted(found) == sorted(ids)
    assert [e.settled_ms for e in await everything(store)] == [NOW + n // 3 for n in range(7)]


async def test_usage_is_summed_by_day_and_model(store: SqlStore, writer: Writer):
    day_ms = 86_400_000
    for at, model in ((NOW, "a"), (NOW, "b"), (NOW, "a"), (NOW + day_ms, "a")):
        held = wanted(writer, now_ms=at, model=ModelName(model), limits=QuotaLimits())
        await store.reserve(held)
        await store.settle(held.id, USED, at)
    await store.reserve(wanted(writer, now_ms=NOW, model=ModelName("b")))

    sums = await store.usage_sums(writer.user, since_ms=NOW, until_ms=NOW + 2 * day_ms)

    day = NOW // day_ms

    def row(day: int, model: str, requests: int, turns: int) -> UsageSum:
        return UsageSum(
            day=day,
            model=ModelName(model),
            requests=requests,
            input=7 * turns,
            cached=0,
            output=3 * turns,
            reasoning=0,
        )

    assert sums == (row(day, "a", 2, 2), row(day, "b", 2, 1), row(day + 1, "a", 1, 1))
    assert await store.usage_sums(writer.user, since_ms=NOW + 1, until_ms=NOW + 2) == ()


async def test_a_plan_and_a_suspension_are_stored_with_the_user(store: SqlStore, writer: Writer):
    assert (await store.set_plan(writer.user, "paid")).plan == "paid"
    assert (await store.suspend_user(writer.user, "unpaid bill")).suspended == "unpaid bill"
    user = await store.user(writer.user)
    assert (user.plan, user.suspended) == ("paid", "unpaid bill")

    assert (await store.suspend_user(writer.user, None)).suspended is None
    assert (await store.set_plan(writer.user, None)).plan is None
    assert await store.set_plan(new_user_id(), "paid") is None
    assert await store.suspend_user(new_user_id(), "x") is None


async def test_an_export_of_a_user_has_what_is_counted(store: SqlStore, writer: Writer):
    assert (await store.export_user(writer.user))["quota"] is None
    await store.reserve(wanted(writer))

    quota = (await store.export_user(writer.user))["quota"]

    assert quota["minute"] == [{"from_ms": NOW, "requests": 1, "tokens": 100}]
    assert quota["running"] == 1
