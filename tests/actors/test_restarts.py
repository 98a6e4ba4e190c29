"""What becomes of turns, slots and figures when an engine or a scheduler is started anew."""

import pytest
import structlog
import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import EngineUnavailable, HostLost, QueueExpired
from antiphon.events import HostCommand, HostFrame, Stats, Step
from antiphon.ports import TurnStream
from antiphon.testing.rig import MODEL, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed


def manual(slots: int = 4) -> ScriptedLauncher:
    """An engine that steps only when the test says so."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


class Fragile(RecordingTelemetry):
    """Crashes the scheduler at the next thing that it reports."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def queue_left(self, model: str, seconds: float) -> None:
        if self.broken:
            self.broken = False
            raise RuntimeError("a bug in the scheduler")
        super().queue_left(MODEL, seconds)


async def test_a_scheduler_that_crashes_leaves_no_generation_behind_in_the_engine(
    autojump_clock: trio.testing.MockClock,
):
    telemetry = Fragile()
    launcher = ScriptedLauncher(make=lambda: ScriptedLink(answer=lambda _: ["w"] * 400))
    async with running_rig(launcher, telemetry=telemetry) as rig:
        before = [await rig.open(str(number), max_tokens=400) for number in range(3)]
        await trio.sleep(0.1)

        telemetry.broken = True
        poison = await rig.open("poison")
        ends = [(await read_all(stream))[-1] for stream in (*before, poison)]
        await trio.sleep(1)
        left = rig.launcher.link.live
        after = [await rig.open(f"after {number}", max_tokens=2) for number in range(4)]
        answers = [(await read_all(stream))[-1] for stream in after]
        await settle()

        assert all(isinstance(end, TurnFailed) for end in ends[:3])
        assert left == ()
        assert all(isinstance(answer, TurnEnded) for answer in answers)
        assert len(rig.launcher.links) == 1, "the engine had no part in it"
        assert (rig.running, rig.status.tokens) == (0, {})


async def test_a_turn_that_comes_while_a_dead_host_is_reaped_waits_for_the_next(
    autojump_clock: trio.testing.MockClock,
):
    class SlowToReap(ScriptedLink):
        async def aclose(self, *, grace_s: float) -> None:
            await trio.sleep(1)
            await super().aclose(grace_s=grace_s)

    async with running_rig(ScriptedLauncher(make=SlowToReap)) as rig:
        rig.launcher.link.die()
        await settle()

        events = await read_all(await rig.open("a"))

        assert isinstance(events[-1], TurnEnded)
        assert trio.current_time() >= 1.0


async def test_a_host_that_lives_but_never_steps_is_not_ready_and_then_replaced(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(), silence_s=20.0) as rig:
        stream = await rig.open("a")
        await settle()
        first = rig.launcher.link
        assert first.heartbeat_s == 1.0

        await trio.sleep(12)
        problem = rig.status.problem(trio.current_time())
        failed = (await read_all(stream))[-1]
        await settle()

        assert problem is not None
        assert "no step" in problem
        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, HostLost)
        assert trio.current_time() == pytest.approx(20, abs=1.5)
        assert first.killed
        assert len(rig.launcher.links) == 2


async def test_the_same_step_told_again_is_no_progress(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual(), silence_s=20.0) as rig:
        await rig.open("a")
        await settle()
        rig.launcher.link.step()
        for _ in range(12):
            await trio.sleep(1)
            rig.launcher.link.emit(Step(number=1, duration_s=0.01, texts=[]))
        await settle()

        assert rig.status.problem(trio.current_time()) is not None


async def test_an_idle_engine_need_not_step(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual(), silence_s=20.0) as rig:
        await trio.sleep(300)
        await rig.open("a")
        await settle()

        assert rig.status.problem(trio.current_time()) is None
        assert len(rig.launcher.links) == 1


async def test_a_slow_stop_is_not_taken_for_a_lost_engine(autojump_clock: trio.testing.MockClock):
    class SlowToHalt(ScriptedLink):
        async def aclose(self, *, grace_s: float) -> None:
            await trio.sleep(3)
            await super().aclose(grace_s=grace_s)

    async with running_rig(
        ScriptedLauncher(make=lambda: SlowToHalt(heartbeat_s=None)), silence_s=2.0
    ) as rig:
        with structlog.testing.capture_logs() as logs:
            rig.stop.set()
            await trio.sleep(4)

        assert rig.launcher.link.closed
        assert "engine_lost" not in [line["event"] for line in logs]


async def test_a_host_whose_death_a_command_notices_first_is_named_as_the_reason(
    autojump_clock: trio.testing.MockClock,
):
    class Deaf(ScriptedLink):
        """Its end of the socket is gone; what it sent before is still unread."""

        async def send(self, command: HostCommand) -> None:
            await trio.lowlevel.checkpoint()
            raise HostLost("killed by signal 11")

    launcher = ScriptedLauncher(make=Deaf)
    async with running_rig(launcher) as rig:
        launcher.make = ScriptedLink
        [failed] = await read_all(await rig.open("a"))

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, HostLost)
        assert failed.error.reason == "killed by signal 11"


async def test_figures_of_a_dead_engine_do_not_linger(autojump_clock: trio.testing.MockClock):
    class Never(ScriptedLink):
        async def receive(self) -> HostFrame:
            await trio.sleep_forever()

    async with running_rig() as rig:
        rig.launcher.link.emit(Stats(steps=1, live=0, kv_usage=0.75))
        await settle()
        await rig.open("a")
        rig.launcher.make = Never
        rig.launcher.link.die()
        await settle()

        assert rig.status.kv_usage == 0.0
        assert rig.telemetry.named("engine_stats")[-1] == (MODEL, 0.0)
        assert rig.telemetry.named("requests_in_flight")[-1] == (MODEL, 0, 0)


async def test_a_driver_that_is_killed_leaves_no_figures_behind(
    autojump_clock: trio.testing.MockClock,
):
    class Unstoppable(ScriptedLink):
        async def aclose(self, *, grace_s: float) -> None:
            await trio.sleep_forever()

    async with running_rig(ScriptedLauncher(make=Unstoppable)) as rig:
        rig.launcher.link.hang()
        await rig.open("a")
        await settle()
        seen = dict(rig.status.tokens)
        rig.stop.set()
        await trio.sleep(10)

        assert seen == {1: 0}
        assert (rig.status.ready, rig.status.pid, rig.status.tokens) == (False, None, {})


async def test_turns_beyond_what_a_restarting_schedulers_mailbox_holds_are_told_to_retry(
    autojump_clock: trio.testing.MockClock,
):
    class Loading(ScriptedLink):
        async def receive(self) -> HostFrame:
            if self.steps == 0 and not self.live:
                await trio.sleep(3)
            return await super().receive()

    bounds = QueueBounds(max_requests=1000, max_tokens=10**6, deadline_s=30.0)
    async with running_rig(bounds=bounds) as rig:
        rig.launcher.make = Loading
        rig.launcher.link.die()
        await settle()
        streams = [await rig.open(str(number), max_tokens=2) for number in range(80)]
        ends = [(await read_all(stream))[-1] for stream in streams]

        errors = [end.error for end in ends if isinstance(end, TurnFailed)]
        assert len(errors) == 16
        assert all(isinstance(error, EngineUnavailable) for error in errors)
        rejected = rig.telemetry.named("admission_rejected")
        assert rejected == [("engine_unavailable",)] * 16


async def test_a_second_death_during_the_restart_loses_no_waiting_turn(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(slots=1)) as rig:
        await rig.open("running")
        waiting = await rig.open("waiting")
        await settle()

        rig.launcher.refusals.append("no memory")
        rig.launcher.link.die()
        await trio.sleep(2)
        for _ in range(4):
            rig.launcher.link.step()

        assert isinstance((await read_all(waiting))[-1], TurnEnded)


async def test_a_waiting_turn_keeps_its_queue_deadline_over_a_restart(
    autojump_clock: trio.testing.MockClock,
):
    bounds = QueueBounds(max_requests=8, max_tokens=10_000, deadline_s=10.0)
    async with running_rig(manual(slots=1), bounds=bounds) as rig:
        await rig.open("running")
        await settle()
        waiting = [await rig.open(name) for name in ("b", "c")]
        await trio.sleep(6)

        rig.launcher.link.die()
        await trio.sleep(5)

        # One of them runs in the next engine; the other one has waited for ten seconds in all.
        assert (rig.running, rig.waiting) == (1, 0)
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                rig.launcher.link.step()
            ends: list[TurnEvent] = []

            async def read(stream: TurnStream) -> None:
                ends.append((await read_all(stream))[-1])

            for stream in waiting:
                nursery.start_soon(read, stream)
        errors = [end.error for end in ends if isinstance(end, TurnFailed)]
        assert len(ends) == 2
        assert [type(error) for error in errors] == [QueueExpired]


async def test_a_turn_that_waits_through_two_deaths_is_told_to_retry(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual(slots=1)) as rig:
        streams = []
        for name in ("running", "next", "last"):
            streams.append(await rig.open(name))
            await settle()

        rig.launcher.link.die()
        await settle()
        granted_again = rig.running
        rig.launcher.link.die()
        ends = [(await read_all(stream))[-1] for stream in streams]

        assert granted_again == 1
        errors = [type(end.error) for end in ends if isinstance(end, TurnFailed)]
        assert sorted(errors, key=str) == [EngineUnavailable, HostLost, HostLost]


async def test_a_window_smaller_than_the_card_says_counts(autojump_clock: trio.testing.MockClock):
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(window=64))
    )
    async with running_rig(launcher) as rig:
        [failed] = await read_all(await rig.open("a", max_tokens=100))

        assert isinstance(failed, TurnFailed)
        assert failed.error.window == 64
