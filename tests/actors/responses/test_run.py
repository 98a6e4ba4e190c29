"""A response from its acceptance to its stored end, whatever ends it."""

from dataclasses import replace

import pytest
import trio

from antiphon.actors.responses.run import CancelRun
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import (
    ActorCrashed,
    ConversationLocked,
    IdempotencyMismatch,
    QueueFull,
    RecordNotFound,
    StoreUnavailable,
)
from antiphon.events import CancelCause
from antiphon.ids import LOCAL_USER, ConversationId, NodeId, ResponseId, UserId
from antiphon.narration import (
    Ended,
    Opened,
    Queued,
    ResponseEvent,
    Started,
    decode_events,
)
from antiphon.records import Claim, ResponseStatus
from antiphon.testing.answers import (
    read_response,
    running_answers,
    slowly,
    some_text,
    status_of,
    stored_events,
    text_of,
)
from antiphon.testing.turn_store import Row

DOWN = StoreUnavailable("down")


async def test_an_answer_is_stored_as_it_was_shown(autojump_clock: object) -> None:
    async with running_answers() as answers:
        watcher = await answers.create("resp_1")

        events = await read_response(watcher)

        assert text_of(events) == "one two three four"
        assert status_of(events) is ResponseStatus.COMPLETED
        assert watcher.response.status is ResponseStatus.COMPLETED
        assert answers.store.texts(ResponseId("resp_1")) == ["one two three four"]
        assert stored_events(answers.store, "resp_1") == events


async def test_the_end_is_stored_before_it_is_shown(autojump_clock: object) -> None:
    async with running_answers() as answers:
        watcher = await answers.create("resp_1")
        await some_text(watcher)
        answers.store.gate = trio.Event()
        events: list[ResponseEvent] = []

        with trio.move_on_after(5.0):
            events += await read_response(watcher)

        assert not any(isinstance(event, Ended) for event in events)
        answers.store.gate.set()
        answers.store.gate = None
        assert status_of(await read_response(watcher)) is ResponseStatus.COMPLETED


async def test_a_later_turn_sees_what_was_said_before(autojump_clock: object) -> None:
    async with running_answers() as answers:
        await read_response(await answers.create("resp_1", text="a b c"))
        watcher = await answers.create("resp_2", text="d e", previous=ResponseId("resp_1"))

        await read_response(watcher)

        usage = watcher.response.usage
        assert usage is not None
        assert usage.input == 3 + 4 + 2


async def test_a_response_that_is_not_stored_leaves_nothing(autojump_clock: object) -> None:
    async with running_answers() as answers:
        await read_response(await answers.create("resp_1", text="a b c"))
        calls = len(answers.store.calls)
        watcher = await answers.create("resp_2", previous=ResponseId("resp_1"), stored=False)

        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.COMPLETED
        assert answers.store.calls[calls:] == ["context"]
        with pytest.raises(RecordNotFound):
            await answers.runs.watch(LOCAL_USER, ResponseId("resp_2"))


async def test_everybody_who_watches_sees_every_event(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        first = await answers.create("resp_1")
        events = await some_text(first)
        second = await answers.runs.watch(LOCAL_USER, ResponseId("resp_1"))
        await trio.sleep(3)
        third = await answers.runs.watch(LOCAL_USER, ResponseId("resp_1"))

        whole = [*events, *await read_response(first)]

        assert await read_response(second) == whole
        assert await read_response(third) == whole
        replayed = await answers.runs.watch(LOCAL_USER, ResponseId("resp_1"))
        assert await read_response(replayed) == whole


async def test_nobody_watches_somebody_elses_response(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")

        with pytest.raises(RecordNotFound):
            await answers.runs.watch(UserId("user_other"), ResponseId("resp_1"))
        with pytest.raises(RecordNotFound):
            await answers.runs.cancel(UserId("user_other"), ResponseId("resp_1"))

        assert status_of(await read_response(watcher)) is ResponseStatus.COMPLETED


async def test_the_last_reader_who_leaves_cancels_a_foreground_response(
    autojump_clock: object,
) -> None:
    async with running_answers(slowly()) as answers:
        first = await answers.create("resp_1")
        second = await answers.runs.watch(LOCAL_USER, ResponseId("resp_1"))
        await some_text(first)

        first.cancel(CancelCause.DISCONNECT)
        first.cancel(CancelCause.DISCONNECT)
        await trio.sleep(2)
        assert answers.runs.open_turns == 1
        second.cancel(CancelCause.DISCONNECT)
        await answers.runs.wait_idle()

        response = answers.store.rows[ResponseId("resp_1")].response
        assert response.status is ResponseStatus.CANCELLED
        assert response.error is None
        assert response.output[0].status == "incomplete"
        assert (
            text_of(stored_events(answers.store, "resp_1")) == answers.store.texts(response.id)[0]
        )
        await trio.sleep(1)
        assert answers.rig.running == 0


async def test_a_background_response_survives_its_client(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1", background=True)
        assert watcher.response.status is ResponseStatus.QUEUED

        watcher.cancel(CancelCause.DISCONNECT)
        await answers.runs.wait_idle()

        response = answers.store.rows[ResponseId("resp_1")].response
        assert response.status is ResponseStatus.COMPLETED
        events = stored_events(answers.store, "resp_1")
        assert events[:3] == [Opened(status=ResponseStatus.QUEUED), Queued(), Started()]


async def test_a_cancel_by_id_ends_any_response_and_returns_it(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1", background=True)
        await some_text(watcher)

        cancelled = await answers.runs.cancel(LOCAL_USER, ResponseId("resp_1"))

        assert cancelled.status is ResponseStatus.CANCELLED
        assert status_of(await read_response(watcher)) is ResponseStatus.CANCELLED
        again = await answers.runs.cancel(LOCAL_USER, ResponseId("resp_1"))
        assert again.status is ResponseStatus.CANCELLED
        assert answers.store.rows[ResponseId("resp_1")].ends == 1


async def test_a_cancel_asked_of_another_server_reaches_the_one_that_runs_it(
    autojump_clock: object,
) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")
        await some_text(watcher)

        await answers.store.request_cancel(LOCAL_USER, ResponseId("resp_1"))

        assert status_of(await read_response(watcher)) is ResponseStatus.CANCELLED


async def test_a_refusal_leaves_nothing_behind(autojump_clock: object) -> None:
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=30.0)
    async with running_answers(slowly(), bounds=bounds) as answers:
        running = [await answers.create(f"resp_{number}") for number in range(4)]
        await trio.sleep(1)
        waiting = await answers.create("resp_4")

        refused = await answers.create("resp_5", claim=Claim(key="k", fingerprint="f"))
        with pytest.raises(QueueFull):
            await refused.next_events()

        assert ResponseId("resp_5") not in answers.store.rows
        again = await answers.create("resp_6", claim=Claim(key="k", fingerprint="other"))
        for watcher in (*running, waiting, again):
            watcher.cancel(CancelCause.DISCONNECT)


async def test_a_long_wait_is_announced_and_a_later_refusal_is_stored(
    autojump_clock: object,
) -> None:
    bounds = QueueBounds(max_requests=8, max_tokens=10_000, deadline_s=3.0)
    async with running_answers(slowly(), bounds=bounds) as answers:
        running = [await answers.create(f"resp_{number}") for number in range(4)]
        waiting = await answers.create("resp_4")

        events = await read_response(waiting)

        assert events[:2] == [Opened(status=ResponseStatus.QUEUED), Queued()]
        assert status_of(events) is ResponseStatus.FAILED
        assert answers.store.rows[ResponseId("resp_4")].response.status is ResponseStatus.FAILED
        for watcher in running:
            watcher.cancel(CancelCause.DISCONNECT)


async def test_a_claim_made_before_attaches_to_its_first_response(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        claim = Claim(key="k", fingerprint="f")
        first = await answers.create("resp_1", claim=claim)
        again = await answers.create("resp_2", claim=claim)

        assert again.response.id == "resp_1"
        assert await read_response(again) == await read_response(first)
        assert list(answers.store.rows) == ["resp_1"]
        with pytest.raises(IdempotencyMismatch):
            await answers.create("resp_3", claim=Claim(key="k", fingerprint="g"))


async def test_a_conversation_has_one_turn_at_a_time(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        conversation = ConversationId("conv_1")
        first = await answers.create("resp_1", conversation=conversation)

        with pytest.raises(ConversationLocked):
            await answers.create("resp_2", conversation=conversation)

        await read_response(first)
        third = await answers.create("resp_3", conversation=conversation)
        await read_response(third)


async def test_a_stop_of_the_server_interrupts_and_stores(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")
        await some_text(watcher)
        store = answers.store

    response = store.rows[ResponseId("resp_1")].response
    assert response.status is ResponseStatus.FAILED
    assert response.error is not None
    assert "interrupted" in response.error.message
    assert store.texts(response.id)[0].startswith("w0")


async def test_a_crashed_run_is_ended_by_the_reaper(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_answers(slowly(), reaper=True) as answers:
        watcher = await answers.create("resp_1", conversation=ConversationId("conv_1"))
        await some_text(watcher)
        monkeypatch.setattr("antiphon.actors.responses.run.Run.handle", _crash)

        answers.runs.interrupt(ResponseId("resp_1"), CancelCause.REQUESTED)
        with pytest.raises(ActorCrashed):
            await read_response(watcher)
        await trio.sleep(10)

        response = answers.store.rows[ResponseId("resp_1")].response
        assert response.status is ResponseStatus.FAILED
        assert answers.store.texts(response.id)[0].startswith("w0")
        assert isinstance(stored_events(answers.store, "resp_1")[-1], Ended)
        assert answers.rig.running == 0


async def test_the_reaper_ends_what_another_server_left(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")
        events = await some_text(watcher)
        await trio.sleep(1)
        store = answers.store
    row = store.rows[ResponseId("resp_1")]
    left = _as_if_killed(row)

    async with running_answers(store=store, reaper=True) as answers:
        await trio.sleep(20)

        response = row.response
        assert response.status is ResponseStatus.FAILED
        assert response.error is not None
        seen = await read_response(await answers.runs.watch(LOCAL_USER, response.id))
        assert seen[: len(left)] == left
        assert status_of(seen) is ResponseStatus.FAILED
        assert text_of(left) == store.texts(response.id)[0] != ""
        assert events


def _crash(self: object, message: CancelRun) -> None:
    raise RuntimeError("a defect")


def _as_if_killed(row: Row) -> list[ResponseEvent]:
    """Undo what the stop wrote, and give it to a server that is gone."""
    del row.batches[max(row.batches)]
    row.owner = NodeId("node_gone")
    row.response = replace(row.response, status=ResponseStatus.IN_PROGRESS, output=())
    return [event for batch in row.batches.values() for event in decode_events(batch.body)]
