"""Who may end a turn, and that each ending is heard at once, said truly and counted once."""

import threading
from collections.abc import Sequence

import pytest
import structlog
import trio
import trio.testing

from antiphon.actors.watchman import Watchman
from antiphon.errors import ActorCrashed, GenerationFailed, TurnInterrupted
from antiphon.events import Abort, CancelCause, EndReason, HostFrame, Message, Released, Step
from antiphon.ids import ActorPath, ModelName
from antiphon.supervision.context import ChildContext
from antiphon.testing.rig import Rig, WordTokenizer, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.tools import Tool
from antiphon.turn_events import TurnFailed


def manual(slots: int = 4) -> ScriptedLauncher:
    """An engine that steps only when the test says so."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


class Loading(ScriptedLink):
    """A host that takes three seconds to report Ready."""

    async def receive(self) -> HostFrame:
        if self.steps == 0 and not self.live:
            await trio.sleep(3)
        return await super().receive()


async def lose_the_engine(rig: Rig) -> None:
    """Its host is dead; the next one takes three seconds."""
    rig.launcher.make = Loading
    rig.launcher.link.die()
    await settle()
    assert not rig.status.ready


async def test_a_disconnect_while_the_engine_restarts_ends_the_turn_at_once(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await lose_the_engine(rig)
        stream = await rig.open("a")
        await settle()

        stream.cancel(CancelCause.DISCONNECT)
        await settle()
        open_turns = rig.directory.open_turns
        await trio.sleep(5)

        assert open_turns == 0
        assert rig.status.ready
        assert rig.launcher.link.sent == []


async def test_a_drain_reaches_turns_that_wait_for_an_engine(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await lose_the_engine(rig)
        stream = await rig.open("a")
        await settle()

        rig.directory.cancel_all(CancelCause.SHUTDOWN)
        await settle()

        [failed] = await read_all(stream)
        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, TurnInterrupted)
        assert rig.directory.open_turns == 0


async def test_a_stop_reaches_turns_that_wait_for_an_engine(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        await lose_the_engine(rig)
        stream = await rig.open("a")
        await settle()
        began = trio.current_time()

        rig.stop.set()
        [failed] = await read_all(stream)

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, TurnInterrupted)
        assert trio.current_time() == began


class SlowTokenizer(WordTokenizer):
    """Tokenises until it is told that it may return."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.may_return = threading.Event()

    def encode_chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> list[int]:
        self.entered.set()
        self.may_return.wait(10)
        return super().encode_chat(messages)


async def test_a_disconnect_is_heard_while_a_long_prompt_is_tokenised():
    tokenizer = SlowTokenizer()
    long = (Message(role="user", content="word " * 10_000),)
    async with running_rig(tokenizer=tokenizer) as rig:
        with trio.fail_after(5):
            stream = await rig.open("a", messages=long)
            await trio.to_thread.run_sync(tokenizer.entered.wait)
            stream.cancel(CancelCause.DISCONNECT)
            await rig.directory.wait_idle()
        tokenizer.may_return.set()

        assert rig.telemetry.named("turn_cancelled") == [(CancelCause.DISCONNECT,)]


async def test_one_failed_choice_fails_the_turn_and_frees_the_others(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a", choices=3)
        await settle()
        link = rig.launcher.link
        link.step()

        with structlog.testing.capture_logs() as logs:
            link.fail(link.live[1], code="failed", detail="NaN")
            await settle()
            link.step()
            await settle()

        last = (await read_all(stream))[-1]
        assert isinstance(last, TurnFailed)
        assert isinstance(last.error, GenerationFailed)
        assert (rig.running, rig.status.tokens) == (0, {})
        assert len([command for command in link.sent if isinstance(command, Abort)]) == 2
        causes = [line["cause"] for line in logs if line["event"] == "lease_cancelled"]
        assert causes == ["failed", "failed"]
        assert rig.telemetry.named("released_after_disconnect") == []


async def test_a_slot_released_without_an_end_ends_its_turn(autojump_clock: trio.testing.MockClock):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        [request] = rig.launcher.link.live
        admit = rig.launcher.link.sent[-1]

        rig.launcher.link.emit(Step(number=1, duration_s=0.01, texts=[]))
        rig.launcher.link.emit(
            Released(slot=admit.slot, request=request, reason=EndReason.CANCELLED, tokens=0)
        )
        await settle()

        assert rig.directory.open_turns == 0
        [failed] = await read_all(stream)
        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, GenerationFailed)


async def test_a_crashed_session_says_so_and_not_that_the_server_stops(
    autojump_clock: trio.testing.MockClock,
):
    class Exploding(RecordingTelemetry):
        def first_token(self, model: ModelName, seconds: float) -> None:
            raise RuntimeError("a bug in a session")

    telemetry = Exploding()
    async with running_rig(manual(), telemetry=telemetry) as rig:
        stream = await rig.open("a")
        await settle()

        rig.launcher.link.step()
        [failed] = await read_all(stream)

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, ActorCrashed)
        assert [report[1] for report in telemetry.named("turn_finished")] == ["error"]


async def test_a_turn_past_its_deadline_counts_as_one_cancellation_by_deadline(
    autojump_clock: trio.testing.MockClock,
):
    launcher = ScriptedLauncher(make=lambda: ScriptedLink(answer=lambda _: ["w"] * 400, step_s=1.0))
    async with running_rig(launcher, turn_deadline_s=10.0) as rig:
        with structlog.testing.capture_logs() as logs:
            await read_all(await rig.open("a", max_tokens=400, choices=2))
            await trio.sleep(3)

        assert rig.telemetry.named("turn_cancelled") == [(CancelCause.DEADLINE,)]
        assert [report[1] for report in rig.telemetry.named("turn_finished")] == ["abort"]
        lines = [line for line in logs if line["event"] == "lease_cancelled"]
        assert [line["cause"] for line in lines] == ["deadline", "deadline"]
        assert all(line["tokens_after"] <= 2 for line in lines)


async def test_a_stopped_session_counts_as_a_cancellation_by_shutdown(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        rig.stop.set()
        await read_all(stream)

        assert rig.telemetry.named("turn_cancelled") == [(CancelCause.SHUTDOWN,)]
        assert [report[1] for report in rig.telemetry.named("turn_finished")] == ["abort"]


@pytest.mark.parametrize("released_first", [True, False])
async def test_a_release_and_a_withdrawal_free_once_in_either_order(
    autojump_clock: trio.testing.MockClock, released_first: bool
):
    async with running_rig(manual(slots=1)) as rig:
        stream = await rig.open("a", max_tokens=1)
        await settle()
        waiting = await rig.open("b", max_tokens=1)
        await settle()

        if released_first:
            rig.launcher.link.step()
            stream.cancel(CancelCause.DISCONNECT)
        else:
            stream.cancel(CancelCause.DISCONNECT)
            rig.launcher.link.step()
        await settle()
        held = (rig.running, rig.waiting)
        rig.launcher.link.step()
        await settle()

        assert held == (1, 0)
        assert (rig.running, rig.waiting, rig.status.tokens) == (0, 0, {})
        await read_all(waiting)
        assert len(rig.launcher.links) == 1


async def test_everybody_who_waits_for_an_idle_directory_is_told(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig, trio.open_nursery() as nursery:
        await rig.open("a")
        with trio.fail_after(5):
            nursery.start_soon(rig.directory.wait_idle)
            await rig.directory.wait_idle()


async def test_the_drain_lets_waiting_turns_finish_and_interrupts_what_is_left(
    autojump_clock: trio.testing.MockClock,
):
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(
            capabilities=scripted_capabilities(slots=1), answer=lambda _: ["w"] * 400, step_s=1.0
        )
    )
    async with running_rig(launcher) as rig, trio.open_nursery() as nursery:
        watchman = Watchman([rig.directory], drain_s=lambda: 6.0)
        context = ChildContext(
            path=ActorPath("root/watchman"),
            incarnation=1,
            notify_ready=lambda: None,
            notify_stuck=lambda _: None,
        )
        short = await rig.open("short", max_tokens=3)
        waiting = await rig.open("waiting", max_tokens=2)
        endless = await rig.open("endless", max_tokens=400)
        nursery.start_soon(watchman.run, context)
        await settle()

        with structlog.testing.capture_logs() as logs:
            context.order_stop(deadline=100.0, leaving=True)
            ends = [(await read_all(stream))[-1] for stream in (short, waiting, endless)]
            await settle()

        assert [type(end).__name__ for end in ends] == ["TurnEnded", "TurnEnded", "TurnFailed"]
        finished = logs[-1]
        assert (finished["event"], finished["interrupted"], finished["orphans"]) == (
            "drain_finished",
            1,
            0,
        )
        assert finished["duration_s"] == pytest.approx(6.0, abs=0.1)
