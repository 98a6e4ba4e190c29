"""Driver, scheduler and sessions together, over a scripted engine: the life of a turn."""

from collections.abc import Iterable

import pytest
import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import (
    ContextLengthExceeded,
    Draining,
    EngineUnavailable,
    GenerationFailed,
    HostLost,
    ModelNotFound,
    QueueExpired,
    QueueFull,
    TurnInterrupted,
)
from antiphon.events import Abort, Admit, CancelCause, EndReason, HostFrame, SlotText, Step
from antiphon.ids import ModelName
from antiphon.testing.rig import read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnFailed, Usage


def manual(slots: int = 4) -> ScriptedLauncher:
    """An engine that steps only when the test says so."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


def endless(admit: Admit) -> Iterable[str]:
    while True:
        yield "word "


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_a_turn_streams_its_text_and_ends_once(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        events = await read_all(await rig.open("a"))

    deltas = [event for event in events if isinstance(event, Delta)]
    assert "".join(delta.text for delta in deltas) == "one two three four"
    assert events[-2:] == [
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
        TurnEnded(usage=Usage(prompt_tokens=2, completion_tokens=4)),
    ]


async def test_an_answer_at_its_limit_ends_with_length(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        events = await read_all(await rig.open("a", max_tokens=2))

    assert events[-2] == ChoiceEnded(choice=0, finish_reason=FinishReason.LENGTH)


async def test_choices_get_slots_and_seeds_of_their_own(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        events = await read_all(await rig.open("a", choices=3))
        admits = [command for command in rig.launcher.link.sent if isinstance(command, Admit)]

    assert sorted(event.choice for event in events if isinstance(event, ChoiceEnded)) == [0, 1, 2]
    assert len({admit.slot for admit in admits}) == 3
    assert [admit.sampling.seed for admit in admits] == [7, 8, 9]
    assert events[-1] == TurnEnded(usage=Usage(prompt_tokens=2, completion_tokens=12))


async def test_no_more_requests_are_inside_the_engine_than_it_has_slots(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(slots=2)) as rig:
        streams = [await rig.open(str(number)) for number in range(5)]
        await settle()
        assert (rig.running, rig.waiting) == (2, 3)

        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(read_all, stream)
            while rig.running:
                rig.launcher.link.step()
                await settle()

        assert rig.waiting == 0


async def test_cancelling_a_waiting_turn_never_reaches_the_engine(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(slots=1)) as rig:
        await rig.open("running")
        waiting = await rig.open("waiting")
        await settle()

        waiting.cancel(CancelCause.DISCONNECT)
        await settle()

        assert (rig.running, rig.waiting) == (1, 0)
        assert not any(isinstance(command, Abort) for command in rig.launcher.link.sent)
        assert isinstance((await read_all(waiting))[-1], TurnFailed)


async def test_a_disconnect_aborts_and_frees_the_slot_within_one_step(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        rig.launcher.link.step()
        await settle()

        stream.cancel(CancelCause.DISCONNECT)
        await settle()
        aborts = [command for command in rig.launcher.link.sent if isinstance(command, Abort)]
        rig.launcher.link.step()
        await settle()

        assert len(aborts) == 1
        assert rig.running == 0
        [(_, tokens_after)] = rig.telemetry.named("released_after_disconnect")
        assert tokens_after == 0


async def test_a_disconnect_before_the_first_token_frees_the_slot(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()

        stream.cancel(CancelCause.DISCONNECT)
        await settle()
        rig.launcher.link.step()
        await settle()

        assert rig.running == 0
        assert rig.directory.open_turns == 0


async def test_a_disconnect_before_the_session_has_run_frees_everything(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        stream.cancel(CancelCause.DISCONNECT)
        await settle()
        while rig.running:
            rig.launcher.link.step()
            await settle()

        assert rig.directory.open_turns == 0


async def test_a_disconnect_in_the_tick_of_the_last_token_frees_once(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a", max_tokens=1)
        await settle()

        rig.launcher.link.step()
        stream.cancel(CancelCause.DISCONNECT)
        await settle()

        assert rig.running == 0
        assert rig.status.tokens == {}


async def test_a_finished_turn_sends_no_abort(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        await read_all(await rig.open("a"))
        await settle()

        assert not any(isinstance(command, Abort) for command in rig.launcher.link.sent)


async def test_a_turn_whose_slot_is_released_late_is_not_aborted(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        admit = rig.launcher.link.sent[-1]
        assert isinstance(admit, Admit)
        link = rig.launcher.link
        ended = SlotText(
            slot=admit.slot, request=admit.request, text="x", tokens=1, end=EndReason.STOP
        )

        link.emit(Step(number=1, duration_s=0.01, texts=[ended]))
        assert isinstance((await read_all(stream))[-1], TurnEnded)
        await settle()

        assert not any(isinstance(command, Abort) for command in link.sent)
        assert rig.running == 1


async def test_a_crashed_session_frees_its_slot_and_its_reader_hears_an_end(
    autojump_clock: trio.testing.MockClock,
):
    class Exploding(RecordingTelemetry):
        def first_token(self, model: ModelName, seconds: float) -> None:
            super().first_token(model, seconds)
            if len(self.named("first_token")) == 1:
                raise RuntimeError("a bug in one session")

    async with running_rig(manual(), telemetry=Exploding()) as rig:
        streams = [await rig.open("a"), await rig.open("b")]
        await settle()

        rig.launcher.link.step()
        await settle()
        running_after_crash = rig.running
        rig.launcher.link.step()
        await settle()

        assert (running_after_crash, rig.running) == (2, 1)
        assert rig.directory.open_turns == 1
        rig.launcher.link.step()
        rig.launcher.link.step()
        ends = [(await read_all(stream))[-1] for stream in streams]
        assert {type(end) for end in ends} == {TurnFailed, TurnEnded}


async def test_a_stopped_session_gives_its_slot_back(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        [shard] = [shard for shard in rig.shards if shard.which_children()]

        await shard.terminate_child("session-1")
        await settle()
        rig.launcher.link.step()
        await settle()

        assert isinstance((await read_all(stream))[-1], TurnFailed)
        assert rig.running == 0


async def test_the_queue_refuses_at_its_bound_and_says_when_to_retry(
    autojump_clock: trio.testing.MockClock,
):
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=30.0)
    async with running_rig(manual(slots=1), bounds=bounds) as rig:
        await rig.open("running")
        await rig.open("waiting")
        await settle()

        [failed] = await read_all(await rig.open("refused"))

    assert isinstance(failed, TurnFailed)
    assert isinstance(failed.error, QueueFull)
    assert failed.error.retry_after_s >= 1
    assert rig.telemetry.named("admission_rejected") == [("queue_full",)]


async def test_a_turn_that_waits_to_its_deadline_is_refused(autojump_clock: trio.testing.MockClock):
    bounds = QueueBounds(max_requests=8, max_tokens=10_000, deadline_s=5.0)
    async with running_rig(manual(slots=1), bounds=bounds) as rig:
        await rig.open("running")
        await settle()
        began = trio.current_time()

        [failed] = await read_all(await rig.open("waiting"))

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, QueueExpired)
        assert 5.0 <= trio.current_time() - began < 6.0


async def test_a_turn_past_its_deadline_is_cut_and_frees_its_slot(
    autojump_clock: trio.testing.MockClock,
):
    launcher = ScriptedLauncher(make=lambda: ScriptedLink(answer=lambda _: ["w"] * 400, step_s=1.0))
    async with running_rig(launcher, turn_deadline_s=10.0) as rig:
        events = await read_all(await rig.open("a", max_tokens=400))
        await trio.sleep(3)

        assert isinstance(events[-1], TurnFailed)
        assert isinstance(events[-1].error, TurnInterrupted)
        assert rig.running == 0


async def test_a_prompt_over_the_window_is_refused_with_the_numbers(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        [failed] = await read_all(await rig.open("a", max_tokens=600))

    assert isinstance(failed, TurnFailed)
    assert isinstance(failed.error, ContextLengthExceeded)
    assert (failed.error.window, failed.error.prompt_tokens) == (512, 2)


async def test_an_unknown_model_is_refused(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        with pytest.raises(ModelNotFound):
            await rig.open("a", model=ModelName("other"))


async def test_a_failed_generation_fails_its_turn_and_no_other(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        broken = await rig.open("broken")
        await settle()
        fine = await rig.open("fine")
        await settle()

        rig.launcher.link.fail(rig.launcher.link.live[0], code="capacity", detail="no blocks")
        for _ in range(4):
            rig.launcher.link.step()

        failed = (await read_all(broken))[-1]
        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, GenerationFailed)
        assert failed.error.code == "capacity"
        assert isinstance((await read_all(fine))[-1], TurnEnded)


async def test_a_dead_host_ends_every_stream_with_a_typed_error_and_the_next_turn_answers(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(slots=2)) as rig:
        streams = [await rig.open(str(number)) for number in range(2)]
        await settle()
        rig.launcher.link.step()
        await settle()

        rig.launcher.link.die("killed by signal 9")
        ends = [(await read_all(stream))[-1] for stream in streams]
        await settle()

        assert all(isinstance(end, TurnFailed) for end in ends)
        assert all(isinstance(end.error, HostLost) for end in ends if isinstance(end, TurnFailed))
        assert len(rig.launcher.links) == 2
        assert rig.running == 0
        after = await rig.open("after")
        await settle()
        for _ in range(4):
            rig.launcher.link.step()
        assert isinstance((await read_all(after))[-1], TurnEnded)


async def test_a_turn_that_had_only_waited_survives_the_host_it_never_reached(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(slots=1)) as rig:
        await rig.open("running")
        waiting = await rig.open("waiting")
        await settle()

        rig.launcher.link.die()
        await settle()
        for _ in range(4):
            rig.launcher.link.step()

        assert isinstance((await read_all(waiting))[-1], TurnEnded)


async def test_a_host_that_falls_silent_with_work_is_killed_and_replaced(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(), silence_s=20.0) as rig:
        stream = await rig.open("a")
        await settle()
        first = rig.launcher.link
        first.hang()

        failed = (await read_all(stream))[-1]
        await settle()

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, HostLost)
        assert first.killed
        assert len(rig.launcher.links) == 2


async def test_readiness_is_lost_while_the_engine_is_silent_and_returns(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(), silence_s=20.0) as rig:
        assert rig.status.problem(trio.current_time()) is None

        rig.launcher.link.hang()
        await trio.sleep(12)
        silent = rig.status.problem(trio.current_time())
        rig.launcher.link.resume()
        rig.launcher.link.stats()
        await settle()

        assert silent is not None
        assert "no frame" in silent
        assert rig.status.problem(trio.current_time()) is None


async def test_a_host_that_breaks_the_protocol_is_killed_and_replaced(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        first = rig.launcher.link

        first.break_protocol()
        failed = (await read_all(stream))[-1]
        await settle()

        assert isinstance(failed, TurnFailed)
        assert first.killed
        assert len(rig.launcher.links) == 2


async def test_turns_wait_for_an_engine_that_is_being_restarted(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        rig.launcher.make = _Slow
        rig.launcher.link.die()
        await settle()
        assert not rig.status.ready

        events = await read_all(await rig.open("a"))

        assert isinstance(events[-1], TurnEnded)
        assert trio.current_time() >= 3.0


class _Slow(ScriptedLink):
    """A host that takes three seconds to load."""

    async def receive(self) -> HostFrame:
        if self.steps == 0 and not self.live:
            await trio.sleep(3)
        return await super().receive()


async def test_a_turn_granted_to_a_driver_that_never_heard_of_it_is_not_lost(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        stream = await rig.open("a")
        # The host dies before the driver has read the Begin that waits in its mailbox.
        rig.launcher.link.die()

        last = (await read_all(stream))[-1]
        await settle()

        assert isinstance(last, TurnEnded | TurnFailed)
        assert rig.running == 0
        assert rig.status.tokens == {}


async def test_turns_are_told_to_retry_when_no_engine_comes_back(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        rig.launcher.make = _Never
        rig.launcher.link.die()
        await settle()

        [failed] = await read_all(await rig.open("a"))

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, EngineUnavailable)


class _Never(ScriptedLink):
    """A host that never reports Ready."""

    async def receive(self) -> HostFrame:
        await trio.sleep_forever()


async def test_a_draining_server_takes_no_new_turn(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        rig.directory.refuse_new_turns()

        with pytest.raises(Draining):
            await rig.open("a")


async def test_the_servers_stop_gives_open_turns_a_terminal_event(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        rig.stop.set()

        failed = (await read_all(stream))[-1]

    assert isinstance(failed, TurnFailed)
    assert isinstance(failed.error, TurnInterrupted)


async def test_a_slow_reader_gets_all_text_merged_and_slows_nobody(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        slow = await rig.open("slow")
        await read_all(await rig.open("fast"))
        await settle()

        events = await read_all(slow)

    assert events[0] == Delta(choice=0, text="one two three four")
