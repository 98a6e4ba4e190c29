"""A store that is away, slow or silent while a response runs: what is told, and what is stored."""

import pytest
import trio

from antiphon.errors import StoreUnavailable
from antiphon.ids import ResponseId
from antiphon.records import ResponseStatus
from antiphon.testing.answers import (
    read_response,
    running_answers,
    slowly,
    some_text,
    status_of,
    stored_events,
    text_of,
)

DOWN = StoreUnavailable("down")


async def test_a_store_that_is_away_pauses_the_end_and_not_the_text(
    autojump_clock: object,
) -> None:
    async with running_answers() as answers:
        watcher = await answers.create("resp_1")
        answers.store.failures.extend([DOWN] * 6)

        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.COMPLETED
        assert stored_events(answers.store, "resp_1") == events


async def test_a_batch_of_text_never_gets_ahead_of_an_end_that_waits(
    autojump_clock: object,
) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")
        answers.store.slow["finish_response"] = 0.4

        events = await read_response(watcher)

        assert stored_events(answers.store, "resp_1") == events


async def test_an_end_that_cannot_be_stored_is_a_failure(autojump_clock: object) -> None:
    async with running_answers(reaper=True) as answers:
        watcher = await answers.create("resp_1")
        answers.store.failures.extend([DOWN] * 500)

        events = await read_response(watcher)

        assert text_of(events) == "one two three four"
        assert status_of(events) is ResponseStatus.FAILED
        assert watcher.response.error is not None
        answers.store.failures.clear()
        await trio.sleep(20)
        assert status_of(stored_events(answers.store, "resp_1")) is ResponseStatus.FAILED
        assert answers.store.rows[ResponseId("resp_1")].response.status is ResponseStatus.FAILED


async def test_a_turn_whose_acceptance_is_unknown_is_undone(autojump_clock: object) -> None:
    async with running_answers(reaper=True) as answers:
        await trio.sleep(1)  # the reaper's first look
        answers.store.lost_answers.append(DOWN)

        with pytest.raises(StoreUnavailable):
            await answers.create("resp_1")
        assert ResponseId("resp_1") in answers.store.rows
        await trio.sleep(20)

        assert answers.store.rows == {}


async def test_an_answer_of_the_store_that_got_lost_doubles_nothing(
    autojump_clock: object,
) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")
        answers.store.lost_answers.extend([DOWN] * 5)
        await some_text(watcher)
        await trio.sleep(4)
        answers.store.lost_answers.extend([DOWN] * 3)

        await read_response(watcher)

        assert answers.store.rows[ResponseId("resp_1")].ends == 1
        assert (
            text_of(stored_events(answers.store, "resp_1"))
            == answers.store.texts(ResponseId("resp_1"))[0]
        )


async def test_a_store_that_is_down_at_acceptance_refuses(autojump_clock: object) -> None:
    async with running_answers() as answers:
        answers.store.failures.append(DOWN)

        with pytest.raises(StoreUnavailable):
            await answers.create("resp_1")

        assert answers.store.rows == {}
