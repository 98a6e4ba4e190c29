"""Lanes in a running pool: background work that gives way and goes on, and who hears what."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import HostLost, QueueExpired, QueueFull, TurnInterrupted
from antiphon.events import Abort, Admit, CancelCause, Pause, Resume, Sampling
from antiphon.ports import TurnStream
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.testing.rig import MODEL, Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.turn_events import Delta, TurnEnded, TurnEvent, TurnFailed, Usage
from antiphon.workload import WorkloadClass

_WORDS = 12
_BOUNDS = QueueBounds(max_requests=2, max_tokens=10_000, deadline_s=30.0)


def counting(admit: Admit) -> Iterable[str]:
    return (f"{number} " for number in range(admit.max_tokens))


def one_slot() -> ScriptedLauncher:
    """Steps only when the test says so."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(
            capabilities=scripted_capabilities(slots=1), answer=counting, step_s=None
        )
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def step(rig: Rig, times: int = 1) -> None:
    for _ in range(times):
        rig.launcher.link.step()
        await settle()


async def job(rig: Rig, name: str = "job", **fields: object) -> TurnStream:
    return await rig.open(name, background=True, max_tokens=_WORDS, **fields)


@asynccontextmanager
async def paused_job() -> AsyncIterator[tuple[Rig, TurnStream, TurnStream]]:
    """A job that gave its slot to a chat after three words."""
    async with running_rig(one_slot(), bounds=_BOUNDS) as rig:
        background = await job(rig)
        await settle()
        await step(rig, 3)
        chat = await rig.open("chat", max_tokens=2)
        await settle()
        await step(rig)
        yield rig, background, chat


def text_of(events: Iterable[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


async def test_a_background_answer_gives_way_and_loses_no_word(
    autojump_clock: trio.testing.MockClock,
):
    async with paused_job() as (rig, background, chat):
        await step(rig, 2)
        chat_events = await read_all(chat)
        await step(rig, _WORDS - 3)
        events = await read_all(background)

        assert text_of(chat_events) == "0 1 "
        assert text_of(events) == "".join(f"{number} " for number in range(_WORDS))
        assert events[-1] == TurnEnded(usage=Usage(prompt_tokens=2, completion_tokens=_WORDS))
        commands = [type(command) for command in rig.launcher.link.sent]
        assert commands == [Admit, Pause, Admit, Resume]


async def test_what_was_paused_is_counted_once(autojump_clock: trio.testing.MockClock):
    async with paused_job() as (rig, background, chat):
        await step(rig, 2 + _WORDS - 3)
        await read_all(chat)
        await read_all(background)

        reports = rig.telemetry
        assert reports.named("generation_paused") == [(MODEL,)]
        assert reports.named("prompt_admitted") == [(MODEL, 2)] * 2
        assert len(reports.named("queue_left")) == 2
        assert len(reports.named("first_token")) == 2
        assert sum(tokens for _, tokens, _ in reports.named("tokens_generated")) == 2 + _WORDS


async def test_lanes_are_told_apart_in_the_figures(autojump_clock: trio.testing.MockClock):
    async with paused_job() as (rig, _background, _chat):
        latest = {lane: figures for _, lane, *figures in rig.telemetry.named("lane_in_flight")}

        assert latest[WorkloadClass.INTERACTIVE] == [1, 0, 0]
        assert latest[WorkloadClass.BACKGROUND] == [0, 1, 2 + _WORDS]
        assert rig.waiting == 1


async def test_a_paused_answer_that_nobody_wants_any_more_is_forgotten_by_its_engine(
    autojump_clock: trio.testing.MockClock,
):
    async with paused_job() as (rig, background, chat):
        background.cancel(CancelCause.REQUESTED)
        await settle()

        assert rig.waiting == 0
        assert isinstance(rig.launcher.link.sent[-1], Abort)
        assert rig.status.paused == 0
        await step(rig, 2)
        assert text_of(await read_all(chat)) == "0 1 "
        assert rig.running == 0


async def test_a_job_that_is_cancelled_while_it_is_being_paused_frees_its_slot_once(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(one_slot()) as rig:
        background = await job(rig)
        await settle()
        await step(rig, 3)
        chat = await rig.open("chat", max_tokens=2)
        await settle()
        background.cancel(CancelCause.REQUESTED)
        await settle()

        await step(rig, 3)

        assert text_of(await read_all(chat)) == "0 1 "
        assert (rig.running, rig.waiting, rig.status.paused) == (0, 0, 0)


async def test_a_job_that_ends_while_it_is_to_be_paused_has_ended(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(one_slot()) as rig:
        background = await job(rig)
        await settle()
        await step(rig, _WORDS - 1)
        # The last word is said before the engine hears that it is to pause.
        link = rig.launcher.link
        chat = await rig.open("chat", max_tokens=2)
        link.step()
        await settle()

        assert isinstance((await read_all(background))[-1], TurnEnded)
        await step(rig, 2)
        assert text_of(await read_all(chat)) == "0 1 "
        assert rig.status.paused == 0


async def test_prompts_of_jobs_and_of_a_tenant_that_crowds_others_are_patient(
    autojump_clock: trio.testing.MockClock,
):
    def four_slots() -> ScriptedLink:
        return ScriptedLink(capabilities=scripted_capabilities(slots=4), answer=counting)

    async with running_rig(ScriptedLauncher(make=four_slots)) as rig:
        await read_all(await job(rig))
        await read_all(await rig.open("small", max_tokens=1, user="small"))
        large = [await rig.open(name, max_tokens=4, user="large") for name in ("1", "2", "3")]
        for turn in large:
            await read_all(turn)
        small = await rig.open("again", max_tokens=1, user="small")
        await read_all(small)

        patient = [command.patient for command in rig.launcher.link.sent]
        assert patient == [True, False, False, True, True, False]


async def test_a_paused_answer_is_lost_with_its_host(autojump_clock: trio.testing.MockClock):
    async with paused_job() as (rig, background, chat):
        rig.launcher.link.die()

        for stream in (background, chat):
            [*_, failed] = await read_all(stream)
            assert isinstance(failed, TurnFailed)
            assert isinstance(failed.error, HostLost)
        assert rig.status.paused == 0


async def test_a_paused_answer_expires_as_what_waits_does(
    autojump_clock: trio.testing.MockClock,
):
    async with paused_job() as (rig, background, _chat):
        rig.limits.change(scheduling=SchedulingSettings(background_deadline_s=5.0))
        rig.launcher.link.heartbeat_s = 1.0

        [*_, failed] = await read_all(background)

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, QueueExpired)
        await settle()
        assert rig.status.paused == 0


async def test_a_turns_deadline_counts_its_time_in_all_slots(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(one_slot(), turn_deadline_s=10.0, silence_s=100.0) as rig:
        background = await job(rig)
        await settle()
        await trio.sleep(7)
        await step(rig)
        chat = await rig.open("chat", max_tokens=1)
        await settle()
        await step(rig, 2)
        await read_all(chat)
        resumed_at = trio.current_time()

        [*_, failed] = await read_all(background)

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, TurnInterrupted)
        assert trio.current_time() - resumed_at == pytest.approx(3.0, abs=0.6)


async def test_an_answer_by_a_schema_is_not_paused(autojump_clock: trio.testing.MockClock):
    async with running_rig(one_slot()) as rig:
        background = await job(rig, sampling=Sampling(seed=1, json_schema="{}"))
        await settle()
        await step(rig, 3)
        chat = await rig.open("chat", max_tokens=2)
        await settle()
        await step(rig, _WORDS - 3 + 2)

        assert [type(command) for command in rig.launcher.link.sent] == [Admit, Admit]
        assert isinstance((await read_all(background))[-1], TurnEnded)
        assert isinstance((await read_all(chat))[-1], TurnEnded)


async def test_an_engine_that_can_not_pause_is_not_asked_to(
    autojump_clock: trio.testing.MockClock,
):
    fixed = msgspec.structs.replace(scripted_capabilities(slots=1), pausable=False)
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=fixed, answer=counting, step_s=None)
    )
    async with running_rig(launcher) as rig:
        await job(rig)
        await settle()
        await rig.open("chat", max_tokens=2)
        await settle()

        assert [type(command) for command in rig.launcher.link.sent] == [Admit]


async def test_whose_place_is_taken_hears_that_the_queue_is_full(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(one_slot(), bounds=_BOUNDS) as rig:
        await rig.open("running")
        await settle()
        flood = [await rig.open(str(number), user="flood") for number in range(2)]
        await settle()

        await rig.open("single", user="single")
        await settle()
        [failed] = await read_all(flood[1])

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, QueueFull)
        assert failed.error.retry_after_s >= 1.0
        assert rig.waiting == 2


async def test_a_first_token_is_compared_with_what_was_predicted_of_it(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await read_all(await rig.open("a"))

        [(model, predicted_s, actual_s)] = rig.telemetry.named("first_token_predicted")

        assert model == MODEL
        assert predicted_s >= 0
        assert actual_s == pytest.approx(0.01)
