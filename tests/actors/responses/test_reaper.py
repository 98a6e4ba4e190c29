"""What the reaper ends, pays and leaves alone: whatever one row or one database does to it."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from antiphon.errors import AntiphonError, InvalidRequest, StoreFailed, StoreUnavailable
from antiphon.ids import ItemId, NodeId, ResponseId
from antiphon.narration import (
    Ended,
    ItemOpened,
    Opened,
    PartOpened,
    Started,
    TextAdded,
    decode_events,
    encode_events,
)
from antiphon.records import EventBatch, ResponseStatus
from antiphon.testing.answers import (
    NODE,
    a_response,
    an_answer,
    read_response,
    running_answers,
    status_of,
)
from antiphon.testing.turn_store import Row, TurnStore

DOWN = StoreUnavailable("down")
ELSEWHERE = NodeId("node_elsewhere")
HOUR_MS = 3_600_000
BEGUN = (
    Opened(status=ResponseStatus.IN_PROGRESS),
    Started(),
    ItemOpened(index=0, item=ItemId("msg_0")),
    PartOpened(index=0),
    TextAdded(index=0, text="so far"),
)


def running_elsewhere(store: TurnStore, name: str, *bodies: bytes, **fields: Any) -> Row:
    """A response of another server, with its log so far."""
    row = Row(a_response(name), an_answer(name).input, ELSEWHERE, 0, None)
    row = replace(row, **fields)
    for body in bodies:
        first = max((batch.last + 1 for batch in row.batches.values()), default=0)
        row.batches[first] = EventBatch(first=first, last=first + len(BEGUN) - 1, body=body)
    store.rows[row.response.id] = row
    return row


async def test_a_log_that_cannot_be_read_is_ended_and_holds_up_nobody(
    autojump_clock: object,
) -> None:
    store = TurnStore()
    damaged = running_elsewhere(store, "resp_1", b'[["from a newer program"]]')
    half = running_elsewhere(store, "resp_2", encode_events(BEGUN), b"not even JSON")
    good = running_elsewhere(store, "resp_3", encode_events(BEGUN))

    async with running_answers(store=store, reaper=True):
        await trio.sleep(30)

    rows = (damaged, half, good)
    assert [row.response.status for row in rows] == [ResponseStatus.FAILED] * 3
    assert [row.ends for row in rows] == [1] * 3
    assert [store.texts(row.response.id) for row in rows] == [[], ["so far"], ["so far"]]
    assert list(half.batches) == [0, 5, 10]
    assert decode_events(half.batches[10].body)[-1] == Ended(status=ResponseStatus.FAILED)


@pytest.mark.parametrize("refusal", [StoreFailed("damaged page"), InvalidRequest("duplicate")])
async def test_a_response_that_cannot_be_ended_holds_up_no_other(
    autojump_clock: object, refusal: AntiphonError
) -> None:
    store = TurnStore()
    store.refusals[ResponseId("resp_1")] = refusal
    running_elsewhere(store, "resp_1")
    good = running_elsewhere(store, "resp_2")

    async with running_answers(store=store, reaper=True):
        await trio.sleep(30)

    assert good.response.status is ResponseStatus.FAILED


@pytest.mark.parametrize("refusal", [StoreFailed("damaged page"), InvalidRequest("duplicate")])
async def test_a_debt_that_cannot_be_paid_stays_and_holds_up_no_other(
    autojump_clock: object, refusal: AntiphonError
) -> None:
    async with running_answers(reaper=True) as answers:
        await trio.sleep(1)
        answers.store.refusals[ResponseId("resp_1")] = refusal
        await read_response(await answers.create("resp_1"))
        answers.store.refusals[ResponseId("resp_2")] = refusal
        await read_response(await answers.create("resp_2"))
        del answers.store.refusals[ResponseId("resp_2")]

        await trio.sleep(30)

        assert list(answers.runs.debts) == ["resp_1"]
        assert answers.store.rows[ResponseId("resp_2")].response.status is ResponseStatus.FAILED
        answers.store.refusals.clear()
        await trio.sleep(30)
        assert not answers.runs.debts
        assert answers.store.rows[ResponseId("resp_1")].ends == 1


async def test_a_store_that_certainly_wrote_nothing_leaves_no_debt(autojump_clock: object) -> None:
    async with running_answers(reaper=True) as answers:
        await trio.sleep(1)
        for number, error in enumerate(
            (StoreUnavailable("overloaded", refused=True), StoreFailed("disk full"))
        ):
            answers.store.failures.append(error)
            with pytest.raises(type(error)):
                await answers.create(f"resp_{number}")

        assert not answers.runs.debts


async def test_a_turn_that_is_written_late_is_undone_too(autojump_clock: object) -> None:
    """A COMMIT that PostgreSQL had received goes on when its client has given up on it."""
    async with running_answers(reaper=True) as answers:
        await trio.sleep(1)
        answers.store.failures.append(DOWN)
        with pytest.raises(StoreUnavailable):
            await answers.create("resp_1")
        await trio.sleep(15)  # the reaper has looked, and found nothing

        new = an_answer("resp_1")
        answers.store.rows[new.response.id] = Row(new.response, new.input, NODE, 10**9, None)
        await trio.sleep(15)

        assert answers.store.rows == {}
        await trio.sleep(120)
        assert not answers.runs.debts


async def test_alone_nobodys_lease_is_waited_for_whatever_the_clock_says(
    autojump_clock: object,
) -> None:
    """The clock was set back by an hour while the server was down."""
    store = TurnStore()
    left = running_elsewhere(store, "resp_1", lease_ms=HOUR_MS)

    async with running_answers(store=store, reaper=True, alone=True):
        await trio.sleep(1)

    assert left.response.status is ResponseStatus.FAILED


async def test_after_an_outage_others_get_the_time_to_renew_their_leases(
    autojump_clock: object,
) -> None:
    store = TurnStore()
    alive = running_elsewhere(store, "resp_1", lease_ms=4_000)
    store.failures.extend([DOWN] * 2)  # the first looks: for orphans, and for what is too old

    async with running_answers(store=store, reaper=True):
        await trio.sleep(9)
        ends = [alive.ends]
        alive.lease_ms = 19_000
        await trio.sleep(8)
        ends.append(alive.ends)
        await trio.sleep(8)  # and now it is gone

    assert [*ends, alive.ends] == [0, 0, 1]


async def test_what_is_too_old_goes_however_much_it_is(autojump_clock: object) -> None:
    store = TurnStore()
    store.old_claims = 1_200

    async with running_answers(store=store, reaper=True):
        await trio.sleep(1)

    assert store.old_claims == 0
    assert store.calls.count("expire") == 3


async def test_what_is_left_of_a_large_removal_is_gone_on_with_at_once(
    autojump_clock: object,
) -> None:
    store = TurnStore()
    store.unfinished = 2

    async with running_answers(store=store, reaper=True):
        await trio.sleep(1)

    assert store.calls.count("expire") == 3


async def test_what_is_ended_late_is_billed_for_what_it_used(autojump_clock: object) -> None:
    async with running_answers(reaper=True) as answers:
        watcher = await answers.create("resp_1")
        answers.store.failures.extend([DOWN] * 500)
        assert status_of(await read_response(watcher)) is ResponseStatus.FAILED
        answers.store.failures.clear()

        await trio.sleep(20)

        usage = answers.store.rows[ResponseId("resp_1")].response.usage
        assert usage is not None
        assert usage.output == 4
