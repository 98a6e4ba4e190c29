"""What outlives a scheduler: what it had learned, and the order of those that waited."""

import math
from dataclasses import replace

import pytest
import trio
import trio.testing

from antiphon.actors.scheduling.schedule import Learned, QueueBounds, learned_from
from antiphon.errors import QueueFull
from antiphon.ports import TurnStream
from antiphon.testing.rig import Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed

BOUNDS = QueueBounds(max_requests=4, max_tokens=10_000, deadline_s=100.0)


def slow(slots: int = 1) -> ScriptedLauncher:
    """Four words take eight seconds."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=2.0)
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def advice_of_a_full_queue(rig: Rig) -> float:
    for number in range(5):
        await rig.open(str(number))
    await settle()
    [failed] = await read_all(await rig.open("refused"))
    assert isinstance(failed, TurnFailed)
    assert isinstance(failed.error, QueueFull)
    return failed.error.retry_after_s


async def test_a_new_scheduler_advises_as_the_former_one_had_learned_to(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(slow(), bounds=BOUNDS) as rig:
        untaught = 4 * Learned().mean_lease_s
        for number in range(6):
            await read_all(await rig.open(str(number)))

        rig.launcher.link.die()
        await settle()

        assert rig.scheduler.incarnation == 2
        assert await advice_of_a_full_queue(rig) > 1.5 * untaught


@pytest.mark.parametrize(
    "corrupt",
    [Learned(mean_lease_s=math.nan), Learned(mean_lease_s=-1.0), Learned(mean_lease_s=1e300), 7],
)
async def test_a_scheduler_that_is_left_nonsense_begins_as_the_first_one_did(
    autojump_clock: trio.testing.MockClock, corrupt: object
):
    async with running_rig(slow(), bounds=BOUNDS) as rig:
        rig.scheduler.handoff.save(rig.scheduler.path, corrupt)

        rig.launcher.link.die()
        await settle()

        assert rig.scheduler.incarnation == 2
        assert await advice_of_a_full_queue(rig) == 4 * Learned().mean_lease_s


@pytest.mark.parametrize(
    "value",
    [None, 7, "x", 2.0, Learned(mean_lease_s=0.0), Learned(mean_lease_s=math.inf)],
)
def test_only_a_sane_hand_over_is_taken(value: object):
    assert learned_from(value) == Learned()


def test_a_sane_hand_over_is_taken_as_it_is():
    assert learned_from(Learned(mean_lease_s=7.5)).mean_lease_s == 7.5


async def test_turns_that_waited_keep_their_order_over_a_restart_and_go_before_later_ones(
    autojump_clock: trio.testing.MockClock,
):
    names = [str(number) for number in range(30)]
    bounds = QueueBounds(max_requests=40, max_tokens=10_000, deadline_s=100.0)
    async with running_rig(slow(), bounds=bounds) as rig, trio.open_nursery() as nursery:
        ended: list[str] = []

        async def read(name: str, stream: TurnStream) -> None:
            events: list[TurnEvent] = await read_all(stream)
            if isinstance(events[-1], TurnEnded):
                ended.append(name)

        for name in ("running", *names):
            nursery.start_soon(read, name, await rig.open(name, max_tokens=1))
            await trio.sleep(0.01)
        rig.launcher.link.die()
        nursery.start_soon(read, "late", await rig.open("late", max_tokens=1))

        await trio.sleep(80)
        assert ended == [*names, "late"]


async def test_a_queue_bound_that_is_lowered_counts_for_the_next_turn(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(slow(), bounds=BOUNDS) as rig:
        for name in ("running", "waiting"):
            await rig.open(name)
        await settle()

        rig.limits.change(bounds=replace(BOUNDS, max_requests=1))
        [refused] = await read_all(await rig.open("refused"))

        assert isinstance(refused, TurnFailed)
        assert isinstance(refused.error, QueueFull)


async def test_a_queue_deadline_that_is_lowered_counts_for_who_waits_already(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(slow(), bounds=BOUNDS) as rig:
        await rig.open("running")
        waiting = await rig.open("waiting")
        await settle()

        rig.limits.change(bounds=replace(BOUNDS, deadline_s=3.0))
        [expired] = await read_all(waiting)

        assert isinstance(expired, TurnFailed)
        assert trio.current_time() == pytest.approx(3.0, abs=0.6)


async def test_a_changed_default_is_the_next_turns_longest_answer(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        rig.limits.change(default_max_tokens=2)

        events = await read_all(await rig.open("a", max_tokens=None))

        assert isinstance(events[-1], TurnEnded)
        assert events[-1].usage.completion_tokens == 2


async def test_a_turn_deadline_that_is_lowered_cuts_what_runs_already(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(slow()) as rig:
        stream = await rig.open("a")
        await trio.sleep(3)

        rig.limits.change(turn_deadline_s=2.0)
        ended = (await read_all(stream))[-1]

        assert isinstance(ended, TurnFailed)
        assert trio.current_time() < 4.0
