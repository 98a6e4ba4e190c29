"""What a turn notes on its way, for the operations page: in order, once, and no word of it."""

import msgspec
import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.events import CancelCause, EndReason
from antiphon.moments import (
    Arrived,
    CancelAsked,
    Ended,
    FirstShown,
    FirstToken,
    Freed,
    Granted,
    Moment,
    Paused,
    Placed,
    Queued,
    Unplaced,
)
from antiphon.testing.rig import Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities


def manual(slots: int = 4) -> ScriptedLauncher:
    """An engine that steps only when the test says so."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def noted(rig: Rig, request: str) -> list[Moment]:
    return [moment for turn, moment in rig.telemetry.named("turn_noted") if turn == request]


async def test_a_turn_notes_every_step_of_its_way(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        await read_all(await rig.open("a", response="resp_1", user="u"))
        await settle()
        moments = noted(rig, "a")

    assert [type(moment) for moment in moments] == [
        *(Arrived, Placed, Queued, Granted, FirstToken, FirstShown, Ended, Freed)
    ]
    arrived, placed, queued, granted, *_, ended, freed = moments
    assert (arrived.response, arrived.user, arrived.messages) == ("resp_1", "u", 1)
    assert (placed.prompt_tokens, placed.max_tokens) == (2, 16)
    assert (queued.slots, queued.running, queued.waiting) == (4, 0, 0)
    assert granted.slot == freed.slot
    assert (freed.reason, freed.tokens) == (EndReason.STOP, 4)
    assert (ended.reason, ended.prompt_tokens, ended.completion_tokens) == ("stop", 2, 4)
    assert ended.longest_gap_s > 0


async def test_nothing_of_what_was_said_is_noted(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        await read_all(await rig.open("a"))
        said = msgspec.json.encode(noted(rig, "a")).decode()

    assert "hello" not in said
    assert "three" not in said


async def test_who_waits_notes_behind_how_many(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual(slots=1)) as rig:
        for name in ("a", "b", "c"):
            await rig.open(name)
            await settle()

        *_, queued = noted(rig, "c")

    assert queued == Queued(lane=queued.lane, generations=1, slots=1, running=1, waiting=1), (
        "it waits behind one that waits, and has no slot"
    )


async def test_each_choice_has_a_slot_of_its_own(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        await read_all(await rig.open("a", choices=2))
        await settle()
        moments = noted(rig, "a")

    granted = [moment for moment in moments if isinstance(moment, Granted)]
    assert len({moment.slot for moment in granted}) == 2
    assert [type(moment) for moment in moments].count(Freed) == 2
    assert [type(moment) for moment in moments].count(Ended) == 1


async def test_a_client_that_leaves_is_noted_before_the_end_and_the_slot_after_it(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        rig.launcher.link.step()
        await settle()
        stream.cancel(CancelCause.DISCONNECT)
        await settle()
        rig.launcher.link.step()
        await settle()
        moments = noted(rig, "a")

    assert moments[-3] == CancelAsked(cause=CancelCause.DISCONNECT)
    assert (moments[-2].reason, moments[-2].error) == ("abort", "TurnInterrupted")
    assert moments[-1].reason is EndReason.CANCELLED


async def test_a_refusal_is_noted_with_its_class(autojump_clock: trio.testing.MockClock):
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=30.0)
    async with running_rig(manual(slots=1), bounds=bounds) as rig:
        for name in ("a", "b", "c"):
            await rig.open(name)
            await settle()
        moments = noted(rig, "c")

    assert [type(moment) for moment in moments][-2:] == [Unplaced, Ended]
    assert (moments[-1].reason, moments[-1].error) == ("error", "QueueFull")


async def test_a_pause_is_noted_and_so_is_going_on(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual(slots=1)) as rig:
        await rig.open("job", background=True)
        await settle()
        rig.launcher.link.step()
        await settle()
        await rig.open("person", max_tokens=1)
        while not any(isinstance(moment, Ended) for moment in noted(rig, "job")):
            rig.launcher.link.step()
            await settle()
            if rig.running == 0:
                break
        kinds = [type(moment) for moment in noted(rig, "job")]
        resumed = [moment for moment in noted(rig, "job") if isinstance(moment, Granted)]

    assert kinds.index(Paused) > kinds.index(FirstToken)
    assert [moment.resumed for moment in resumed] == [False, True]


async def test_a_lost_host_is_an_end_with_an_error(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual()) as rig:
        await rig.open("a")
        await settle()
        rig.launcher.link.step()
        await settle()
        rig.launcher.link.die()
        await settle()
        moments = noted(rig, "a")

    assert isinstance(moments[-1], Ended)
    assert (moments[-1].reason, moments[-1].error) == ("error", "HostLost")
