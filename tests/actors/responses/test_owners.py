"""Who may end a response: its own server, until another one took it, and whoever asks either."""

from dataclasses import replace

import pytest
import trio

from antiphon.actors.watchman import Watchman
from antiphon.errors import Draining
from antiphon.events import CancelCause
from antiphon.ids import LOCAL_USER, ConversationId, NodeId, ResponseId
from antiphon.narration import Ended
from antiphon.records import Claim, ResponseStatus
from antiphon.supervision.spec import ChildSpec, Forever
from antiphon.testing.answers import (
    AnswerRig,
    read_response,
    running_answers,
    slowly,
    some_text,
    status_of,
    text_of,
)
from antiphon.testing.turn_store import TurnStore

ELSEWHERE = NodeId("node_elsewhere")
ID = ResponseId("resp_1")
CONVERSATION = ConversationId("conv_1")


def take(answers: AnswerRig) -> None:
    """As another server's reaper does, after this process stood still for longer than a lease."""
    row = answers.store.rows[ID]
    row.owner = ELSEWHERE
    row.response = replace(row.response, status=ResponseStatus.FAILED, completed_ms=9)
    row.ends += 1


async def test_a_response_that_another_server_ended_ends_here_as_failed(
    autojump_clock: object,
) -> None:
    async with running_answers(slowly(), reaper=True) as answers:
        watcher = await answers.create("resp_1")
        events = await some_text(watcher)

        take(answers)
        events += await read_response(watcher)

        assert status_of(events) is ResponseStatus.FAILED
        assert len([event for event in events if isinstance(event, Ended)]) == 1
        assert text_of(events).count("w") < 12, "it is not generated to its end for nobody"
        await trio.sleep(60)
        assert answers.store.rows[ID].ends == 1
        assert not answers.runs.debts
        assert (answers.rig.running, answers.runs.open_turns) == (0, 0)


async def test_an_end_that_comes_after_another_servers_is_not_written(
    autojump_clock: object,
) -> None:
    async with running_answers(recorder=False, reaper=True) as answers:
        watcher = await answers.create("resp_1")
        await some_text(watcher)
        take(answers)

        events = await read_response(watcher)

        assert status_of(events) is ResponseStatus.FAILED
        assert answers.store.rows[ID].ends == 1
        assert not answers.runs.debts


@pytest.mark.parametrize("background", [False, True])
async def test_a_client_that_leaves_before_its_turn_is_accepted(
    autojump_clock: object, background: bool
) -> None:
    async with running_answers(slowly()) as answers:
        answers.store.slow["accept_turn"] = 2.0

        with trio.move_on_after(1.0):
            await answers.create("resp_1", background=background, conversation=CONVERSATION)
        await answers.runs.wait_idle()

        wanted = ResponseStatus.COMPLETED if background else ResponseStatus.CANCELLED
        assert answers.store.rows[ID].response.status is wanted
        assert answers.rig.running == 0
        await read_response(await answers.create("resp_2", conversation=CONVERSATION))


async def test_two_cancels_at_once_and_one_after_the_end_agree(autojump_clock: object) -> None:
    async with running_answers(slowly()) as answers:
        watcher = await answers.create("resp_1")
        await some_text(watcher)
        told: list[ResponseStatus] = []

        async def cancel() -> None:
            told.append((await answers.runs.cancel(LOCAL_USER, ID)).status)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel)
            nursery.start_soon(cancel)
        await cancel()

        assert told == [ResponseStatus.CANCELLED] * 3
        assert status_of(await read_response(watcher)) is ResponseStatus.CANCELLED
        assert answers.store.rows[ID].ends == 1


async def test_a_cancel_of_a_dead_servers_response_waits_for_the_reaper(
    autojump_clock: object,
) -> None:
    store = TurnStore()
    async with running_answers(slowly(), store=store) as dead:
        await some_text(await dead.create("resp_1", background=True))
        row = store.rows[ID]
        row.owner = ELSEWHERE
        row.lease_ms = 3_000
        async with running_answers(store=store, reaper=True) as answers:
            ended = await answers.runs.cancel(LOCAL_USER, ID)

    assert ended.status is ResponseStatus.FAILED
    assert row.ends == 1


async def test_a_claim_of_a_response_that_failed_shows_that(autojump_clock: object) -> None:
    claim = Claim(key="k", fingerprint="f")
    async with running_answers(slowly()) as answers:
        first = await answers.create("resp_1", claim=claim)
        events = await some_text(first)
        answers.runs.interrupt(ID, CancelCause.SHUTDOWN)
        events += await read_response(first)
        assert status_of(events) is ResponseStatus.FAILED

        again = await answers.create("resp_2", claim=claim)

        assert again.response.id == ID
        assert await read_response(again) == events


async def test_a_drain_tells_every_reader_how_it_ended_and_stores_that(
    autojump_clock: object,
) -> None:
    async with running_answers(slowly()) as answers:
        watchman = Watchman((answers.runs, answers.rig.directory), drain_s=lambda: 2.0)
        await answers.rig.shards[1].start_child(
            ChildSpec(id="watchman", start=watchman.run, shutdown=Forever())
        )
        streamed = await answers.create("resp_1")
        background = await answers.create("resp_2", background=True)
        accepting: list[Exception] = []

        async def late() -> None:
            await trio.sleep(1.0)
            answers.store.slow["accept_turn"] = 1.0
            try:
                await read_response(await answers.create("resp_3"))
            except Draining as error:
                accepting.append(error)

        async def stop() -> None:
            await trio.sleep(1.5)
            await answers.rig.shards[1].terminate_child("watchman")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(late)
            nursery.start_soon(stop)
            events = await read_response(streamed)

        assert status_of(events) is ResponseStatus.FAILED
        assert 0 < text_of(events).count("w") < 12
        assert status_of(await read_response(background)) is ResponseStatus.FAILED
        assert len(accepting) == 1, "accepted after the drain began, so given back"
        assert set(answers.store.rows) == {"resp_1", "resp_2"}
        assert [row.ends for row in answers.store.rows.values()] == [1, 1]
        with pytest.raises(Draining):
            await answers.create("resp_4")


async def test_who_wants_to_know_hears_of_the_end_of_a_conversations_turn(
    autojump_clock: object,
) -> None:
    async with running_answers() as answers:
        ended = answers.runs.next_end()
        await read_response(await answers.create("resp_1"))
        await answers.runs.wait_idle()
        assert not ended.is_set()  # it is in no conversation

        await read_response(await answers.create("resp_2", conversation=CONVERSATION))
        await ended.wait()

        assert answers.store.rows[ResponseId("resp_2")].response.status.is_final
        assert not answers.runs.next_end().is_set()
