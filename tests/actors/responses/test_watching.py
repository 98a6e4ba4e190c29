"""Reading responses from afar, and attaching to what was accepted before."""

from dataclasses import replace

import pytest
import structlog.testing
import trio

from antiphon.actors.responses.watching import StoredWatcher
from antiphon.errors import QueueFull, RecordNotFound, StoreFailed, StoreUnavailable
from antiphon.events import CancelCause
from antiphon.ids import LOCAL_USER, ConversationId, NodeId, ResponseId
from antiphon.narration import (
    Ended,
    Opened,
    ResponseEvent,
    Started,
    encode_events,
)
from antiphon.records import Claim, EventBatch, FinalState, ResponseStatus, TokenUsage
from antiphon.testing.answers import (
    a_response,
    an_answer,
    read_response,
    running_answers,
    status_of,
    text_of,
)
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink
from antiphon.testing.turn_store import Row, TurnStore

DOWN = StoreUnavailable("down")
ELSEWHERE = NodeId("node_elsewhere")
ID = ResponseId("resp_1")
CLAIM = Claim(key="k", fingerprint="f")
BEGUN = (Opened(status=ResponseStatus.IN_PROGRESS), Started())
FINAL = FinalState(
    response=ID,
    owner=ELSEWHERE,
    status=ResponseStatus.COMPLETED,
    completed_ms=9,
    output=(),
    usage=TokenUsage(input=1, output=2),
    events=EventBatch(
        first=2, last=2, body=encode_events([Ended(status=ResponseStatus.COMPLETED)])
    ),
)


def running_elsewhere(store: TurnStore, *, begun: bool = True) -> Row:
    claim = (LOCAL_USER, CLAIM.key, CLAIM.fingerprint)
    row = Row(a_response("resp_1"), an_answer("resp_1").input, ELSEWHERE, 10**9, claim)
    if begun:
        row.batches[0] = EventBatch(first=0, last=1, body=encode_events(BEGUN))
    store.rows[ID] = row
    return row


async def test_the_last_event_comes_with_the_response_as_it_ended(autojump_clock: object) -> None:
    """It ends between the look at the response and the look at its events."""
    store = TurnStore()
    row = running_elsewhere(store)
    watcher = StoredWatcher(row.response, store)
    store.slow["events"] = 1.0

    async with trio.open_nursery() as nursery:

        async def end() -> None:
            await trio.sleep(0.5)
            await store.finish_response(FINAL)

        nursery.start_soon(end)
        events = list(await watcher.next_events())

    while not isinstance(events[-1], Ended):
        events += await watcher.next_events()
    assert watcher.response.status is ResponseStatus.COMPLETED
    assert watcher.response.usage == FINAL.usage
    assert events == [*BEGUN, Ended(status=ResponseStatus.COMPLETED)]


async def test_giving_up_a_wait_loses_no_event(autojump_clock: object) -> None:
    """As a heartbeat does, at every moment."""
    for wait_s in (0.1, 0.3, 0.6, 0.8, 1.1, 1.3):
        store = TurnStore()
        row = running_elsewhere(store)
        watcher = StoredWatcher(row.response, store)
        store.slow = {"events": 0.5, "response": 0.25}
        events: list[ResponseEvent] = []

        async with trio.open_nursery() as nursery:

            async def end(store: TurnStore = store) -> None:
                await trio.sleep(0.6)
                await store.finish_response(FINAL)

            nursery.start_soon(end)
            with trio.move_on_after(wait_s):
                events += await watcher.next_events()
        events += await read_response(watcher)

        assert events == [*BEGUN, Ended(status=ResponseStatus.COMPLETED)]
        assert watcher.response.status is ResponseStatus.COMPLETED


async def test_an_end_without_its_event_ends_the_reading(autojump_clock: object) -> None:
    store = TurnStore()
    row = running_elsewhere(store)
    row.response = replace(row.response, status=ResponseStatus.FAILED, completed_ms=9)

    assert await read_response(StoredWatcher(row.response, store)) == [*BEGUN]


async def test_a_log_that_cannot_be_read_is_the_stores_failure(autojump_clock: object) -> None:
    store = TurnStore()
    row = running_elsewhere(store)
    row.batches[0] = replace(row.batches[0], body=b'[["from a newer program"]]')

    with pytest.raises(StoreFailed):
        await StoredWatcher(row.response, store).next_events()


async def test_a_turn_sent_again_while_its_first_try_is_unknown_runs(
    autojump_clock: object,
) -> None:
    """The store wrote the first one, and its answer got lost: nobody works on that."""
    async with running_answers(reaper=True) as answers:
        await trio.sleep(1)
        answers.store.lost_answers.append(DOWN)
        with pytest.raises(StoreUnavailable):
            await answers.create("resp_1", claim=CLAIM)
        assert ID in answers.store.rows

        again = await answers.create("resp_2", claim=CLAIM)

        assert status_of(await read_response(again)) is ResponseStatus.COMPLETED
        assert again.response.id == "resp_2"
        assert list(answers.store.rows) == ["resp_2"]
        await trio.sleep(120)
        assert list(answers.store.rows) == ["resp_2"]
        assert not answers.runs.debts


async def test_a_turn_sent_again_while_its_first_try_is_withdrawn_runs(
    autojump_clock: object,
) -> None:
    async with running_answers() as answers:
        running_elsewhere(answers.store, begun=False)
        answers.store.slow["response"] = 1.0

        async with trio.open_nursery() as nursery:

            async def withdraw() -> None:
                await trio.sleep(0.5)
                assert await answers.store.withdraw_turn(ID, ELSEWHERE)

            nursery.start_soon(withdraw)
            again = await answers.create("resp_2", claim=CLAIM)

        assert again.response.id == "resp_2"
        assert status_of(await read_response(again)) is ResponseStatus.COMPLETED


@pytest.mark.parametrize("after_s", [0.0, 5.0])
async def test_an_sdk_that_lost_its_connection_gets_a_whole_answer(
    autojump_clock: object, after_s: float
) -> None:
    """Its disconnect has cancelled the first try, or is about to."""

    def make() -> ScriptedLink:
        return ScriptedLink(answer=lambda _: ["a ", "b ", "c "], step_s=0.5)

    async with running_answers(ScriptedLauncher(make=make)) as answers:
        conversation = ConversationId("conv_1")
        first = await answers.create("resp_1", claim=CLAIM, conversation=conversation)
        await trio.sleep(0.7)
        first.cancel(CancelCause.DISCONNECT)
        await trio.sleep(after_s)

        again = await answers.create(
            "resp_2", claim=CLAIM, conversation=conversation, is_retry=True
        )

        events = await read_response(again)
        assert status_of(events) is ResponseStatus.COMPLETED
        assert text_of(events) == "a b c "
        assert list(answers.store.rows) == ["resp_2"]


async def test_a_retry_of_a_background_response_attaches_at_once(autojump_clock: object) -> None:
    async with running_answers(ScriptedLauncher(make=lambda: ScriptedLink(step_s=5.0))) as answers:
        first = await answers.create("resp_1", claim=CLAIM, background=True)
        first.cancel(CancelCause.DISCONNECT)

        with trio.fail_after(1.0):
            again = await answers.create("resp_2", claim=CLAIM, background=True, is_retry=True)

        assert again.response.id == ID


async def test_who_sends_a_cancelled_turn_again_by_hand_sees_how_it_ended(
    autojump_clock: object,
) -> None:
    async with running_answers(ScriptedLauncher(make=lambda: ScriptedLink(step_s=0.5))) as answers:
        await answers.create("resp_1", claim=CLAIM)
        await answers.runs.cancel(LOCAL_USER, ID)

        again = await answers.create("resp_2", claim=CLAIM)

        assert status_of(await read_response(again)) is ResponseStatus.CANCELLED


async def test_a_response_withdrawn_elsewhere_is_a_refusal_that_may_be_retried(
    autojump_clock: object,
) -> None:
    async with running_answers() as answers:
        row = running_elsewhere(answers.store, begun=False)
        attached = await answers.create("resp_2", claim=CLAIM)
        assert attached.response.id == "resp_1"

        async with trio.open_nursery() as nursery:

            async def withdraw() -> None:
                await trio.sleep(3)
                assert await answers.store.withdraw_turn(ID, ELSEWHERE)

            nursery.start_soon(withdraw)
            with pytest.raises(QueueFull):
                await attached.next_events()

        answers.store.rows[ID] = row
        row.response = replace(row.response, status=ResponseStatus.FAILED, completed_ms=9)
        watcher = await answers.runs.watch(LOCAL_USER, ID)
        del answers.store.rows[ID]
        with pytest.raises(RecordNotFound):
            await watcher.next_events()


async def test_a_batch_that_arrives_after_the_end_is_no_lost_lease(autojump_clock: object) -> None:
    """The run sends what was under way once more, and may overtake it."""

    def make() -> ScriptedLink:
        return ScriptedLink(answer=lambda _: ["a ", "b ", "c "], step_s=0.2)

    async with running_answers(ScriptedLauncher(make=make)) as answers:
        answers.store.slow["append_events"] = 5.0
        watcher = await answers.create("resp_1")
        other = await answers.create("resp_2", background=True)
        await trio.sleep(0.4)  # the recorder has sent what there was
        answers.store.slow.clear()

        with structlog.testing.capture_logs() as logs:
            await read_response(watcher)
            await read_response(other)
            third = await answers.create("resp_3", background=True)
            third.cancel(CancelCause.DISCONNECT)
            await trio.sleep(10)

        assert [line for line in logs if line["event"] == "response_lost"] == []
