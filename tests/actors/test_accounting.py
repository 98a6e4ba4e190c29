"""The figures of a server: each turn, token, refusal and release counted once, under its name."""

import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.events import CancelCause
from antiphon.testing.rig import MODEL, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.turn_events import TurnEnded, TurnFailed, Usage


def manual(slots: int = 4) -> ScriptedLauncher:
    """An engine that steps only when the test says so."""
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_tokens_are_counted_exactly(autojump_clock: trio.testing.MockClock):
    async with running_rig() as rig:
        usages = []
        for number in range(5):
            [*_, end] = await read_all(await rig.open(str(number), choices=2, max_tokens=3))
            assert isinstance(end, TurnEnded)
            usages.append(end.usage)
        reports = rig.telemetry

        assert usages == [Usage(prompt_tokens=2, completion_tokens=6)] * 5
        assert sum(tokens for _, tokens, _ in reports.named("tokens_generated")) == 30
        # The engine is given the prompt once for each choice.
        assert reports.named("prompt_admitted") == [(MODEL, 2)] * 10
        assert len(reports.named("first_token")) == 10
        assert len(reports.named("queue_left")) == 10


async def test_every_turn_is_counted_once_under_how_it_ended(
    autojump_clock: trio.testing.MockClock,
):
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=5.0)
    async with running_rig(manual(slots=1), bounds=bounds) as rig:
        stopped = await rig.open("stop")
        await settle()
        for _ in range(4):
            rig.launcher.link.step()
        await read_all(stopped)
        cut = await rig.open("length", max_tokens=1)
        await settle()
        rig.launcher.link.step()
        await read_all(cut)
        left = await rig.open("abort")
        await settle()
        await rig.open("expires", choices=1)
        await settle()
        await read_all(await rig.open("queue is full"))
        await trio.sleep(6)
        left.cancel(CancelCause.DISCONNECT)
        left.cancel(CancelCause.DISCONNECT)
        await settle()
        rig.launcher.link.step()
        await settle()

        ways = [way for _, way, _ in rig.telemetry.named("turn_finished")]
        assert ways == ["stop", "length", "error", "error", "abort"]
        assert rig.telemetry.named("admission_rejected") == [("queue_full",), ("queue_deadline",)]
        assert rig.telemetry.named("turn_cancelled") == [(CancelCause.DISCONNECT,)]
        assert len(rig.telemetry.named("released_after_disconnect")) == 1


async def test_a_turn_of_many_choices_that_expires_is_one_refusal(
    autojump_clock: trio.testing.MockClock,
):
    bounds = QueueBounds(max_requests=9, max_tokens=10_000, deadline_s=5.0)
    async with running_rig(manual(slots=1), bounds=bounds) as rig:
        await rig.open("running")
        await settle()

        [failed] = await read_all(await rig.open("expires", choices=4))
        await settle()

        assert isinstance(failed, TurnFailed)
        assert rig.telemetry.named("admission_rejected") == [("queue_deadline",)]
        assert rig.waiting == 0


async def test_only_a_disconnect_counts_as_a_release_after_one(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        for cause in (CancelCause.SLOW_READER, CancelCause.OWNER_LOST):
            stream = await rig.open(cause.value)
            await settle()
            stream.cancel(cause)
            await settle()
            rig.launcher.link.step()
            await settle()

        assert rig.running == 0
        assert rig.telemetry.named("released_after_disconnect") == []


async def test_tokens_after_a_disconnect_are_those_that_the_client_could_not_see(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(manual()) as rig:
        stream = await rig.open("a")
        await settle()
        rig.launcher.link.step()
        await settle()

        stream.cancel(CancelCause.DISCONNECT)
        rig.launcher.link.step()  # it began before the abort came
        await settle()
        await trio.sleep(0.5)
        rig.launcher.link.step()
        await settle()

        [(seconds, tokens)] = rig.telemetry.named("released_after_disconnect")
        assert tokens == 1
        assert seconds == 0.5
