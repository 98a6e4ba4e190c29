"""What turns hold of their callers' limits is given back exactly once, whatever ends them."""

import trio
import trio.testing

from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.actors.sessions.charges import Charges, Tab
from antiphon.errors import ActorCrashed, QueueFull, RateLimited
from antiphon.events import Admit, CancelCause
from antiphon.supervision.root import run_tree
from antiphon.supervision.spec import ChildSpec, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.metering import ScriptedCharge, ScriptedMeter
from antiphon.testing.rig import MODEL, a_turn, read_all, read_next, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.telemetry import RecordingTelemetry
from antiphon.turn_events import RateLimit, TurnEnded, TurnFailed, TurnPlaced, Usage

LIMIT = RateLimit(name="requests", limit=10, remaining=9, reset_s=6.0)
NOTHING = Usage(prompt_tokens=0, completion_tokens=0)


def manual(slots: int = 1) -> ScriptedLauncher:
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), step_s=None)
    )


def closed(meter: ScriptedMeter) -> list[Usage | None]:
    """What became of each charge: its usage, or None for one that was released."""
    assert not any(charge.is_open for charge in meter.charges)
    assert all(len(charge.settled) + charge.released == 1 for charge in meter.charges)
    return [charge.settled[0] if charge.settled else None for charge in meter.charges]


async def test_an_answer_is_settled_for_what_is_told_before_it_is_told(autojump_clock):
    meter = ScriptedMeter(limits=(LIMIT,))
    async with running_rig(meter=meter) as rig:
        stream = await rig.open("a", choices=2)
        placed = await stream.next_event()
        while not isinstance(event := await stream.next_event(), TurnEnded):
            assert meter.charges[0].is_open
        at_the_end = closed(meter)

    assert placed == TurnPlaced(model=MODEL, limits=(LIMIT,))
    assert at_the_end == [event.usage] == [Usage(prompt_tokens=2, completion_tokens=8)]
    [charge] = meter.charges
    assert (charge.turn.model, charge.prompt_tokens, charge.max_tokens) == (MODEL, 2, 16)


async def test_who_is_over_a_limit_is_refused_before_any_work(autojump_clock):
    error = RateLimited("requests per minute", 10, 6.0, (LIMIT,))
    async with running_rig(meter=ScriptedMeter(error=error)) as rig:
        [failed] = await read_all(await rig.open("a"))
        sent = [each for each in rig.launcher.link.sent if isinstance(each, Admit)]

    assert failed == TurnFailed(error=error)
    assert sent == []
    assert rig.telemetry.named("admission_rejected") == [("rate_limited",)]


async def test_what_is_cancelled_costs_what_was_delivered(autojump_clock):
    meter = ScriptedMeter()
    async with running_rig(manual(), meter=meter) as rig:
        stream, waiting = await rig.open("a"), await rig.open("b")
        await trio.testing.wait_all_tasks_blocked()
        rig.launcher.link.step()
        await read_next(stream)
        stream.cancel(CancelCause.DISCONNECT)
        waiting.cancel(CancelCause.DISCONNECT)
        told = [(await read_all(each))[-1].usage for each in (stream, waiting)]
        await trio.testing.wait_all_tasks_blocked()

        assert told == [Usage(prompt_tokens=2, completion_tokens=1), NOTHING]
        assert closed(meter) == [told[0], None]


async def test_what_is_refused_by_a_full_queue_is_released(autojump_clock):
    meter = ScriptedMeter()
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=30.0)
    async with running_rig(manual(), meter=meter, bounds=bounds) as rig:
        rig.ttft_s[MODEL] = 0.1
        for name in ("a", "b"):
            await rig.open(name)
            await trio.testing.wait_all_tasks_blocked()
        [failed] = await read_all(await rig.open("c"))

        assert isinstance(failed.error, QueueFull)
        assert [charge.is_open for charge in meter.charges] == [True, True, False]
        assert meter.charges[2].released == 1


async def test_a_move_holds_one_charge_at_a_time(autojump_clock):
    meter = ScriptedMeter()
    bounds = QueueBounds(max_requests=1, max_tokens=10_000, deadline_s=30.0)
    async with running_rig(
        manual(),
        meter=meter,
        bounds=bounds,
        others={"other": ScriptedLauncher()},
        smaller={MODEL: "other"},
    ) as rig:
        rig.ttft_s[MODEL] = 0.1
        for name in ("a", "b"):
            await rig.open(name)
            await trio.testing.wait_all_tasks_blocked()
        events = await read_all(await rig.open("c"))

        refused, moved = meter.charges[2:]
        assert (refused.turn.model, refused.released) == (MODEL, 1)
        assert (moved.turn.model, moved.settled) == ("other", [events[-1].usage])


async def test_a_session_that_crashes_costs_what_it_delivered(autojump_clock):
    class Faulty(RecordingTelemetry):
        def tokens_generated(self, model, tokens, seconds):
            if seconds:
                raise RuntimeError("a bug in a session")

    meter = ScriptedMeter()
    async with running_rig(manual(), meter=meter, telemetry=Faulty()) as rig:
        stream = await rig.open("a")
        for _ in range(2):
            await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(0.1)
            rig.launcher.link.step()
        events = await read_all(stream)
        await trio.testing.wait_all_tasks_blocked()

        assert isinstance(events[-1].error, ActorCrashed)
        assert closed(meter) == [events[-1].usage] == [Usage(prompt_tokens=2, completion_tokens=1)]


async def test_a_stop_of_the_server_settles_what_it_interrupts(autojump_clock):
    meter = ScriptedMeter()
    async with running_rig(manual(), meter=meter) as rig:
        stream = await rig.open("a")
        await trio.testing.wait_all_tasks_blocked()
        rig.launcher.link.step()
        await read_next(stream)

    [failed] = await read_all(stream)
    assert closed(meter) == [failed.usage] == [Usage(prompt_tokens=2, completion_tokens=1)]


async def test_an_engine_that_dies_costs_what_came_before(autojump_clock):
    meter = ScriptedMeter()
    async with running_rig(manual(slots=2), meter=meter) as rig:
        stream, silent = await rig.open("a"), await rig.open("b")
        await trio.testing.wait_all_tasks_blocked()
        rig.launcher.link.step()
        await trio.testing.wait_all_tasks_blocked()
        rig.launcher.link.die()
        told = [(await read_all(each))[-1].usage for each in (stream, silent)]
        await trio.testing.wait_all_tasks_blocked()

        assert closed(meter) == told


async def test_a_store_that_hangs_holds_up_no_answer_for_long(autojump_clock):
    class Slow(ScriptedMeter):
        async def reserve(self, turn, *, prompt_tokens, max_tokens):
            charge = await super().reserve(turn, prompt_tokens=prompt_tokens, max_tokens=max_tokens)
            return SlowCharge(charge)

    class SlowCharge:
        limits = ()

        def __init__(self, charge: ScriptedCharge) -> None:
            self._charge = charge

        async def settle(self, usage: Usage) -> None:
            await trio.sleep(60)
            await self._charge.settle(usage)

        async def release(self) -> None:
            await self._charge.release()

    meter = Slow()
    async with running_rig(meter=meter) as rig:
        began = trio.current_time()
        ended = (await read_all(await rig.open("a")))[-1]
        seconds = trio.current_time() - began
        await trio.sleep(60)

        assert isinstance(ended, TurnEnded)
        assert 2.0 <= seconds < 3.0
        assert closed(meter) == [ended.usage]


async def test_what_is_closed_while_nobody_runs_is_closed_later(autojump_clock):
    meter, tab = ScriptedMeter(), Tab()
    charges = Charges(meter)
    await charges.reserve(tab, a_turn("a"), model=MODEL, prompt_tokens=1, max_tokens=1)
    done = charges.close(tab)
    charges.close(tab)
    before = done.is_set()

    tree = Supervisor(SupervisorSpec(), [ChildSpec(id="charges", start=charges.run)])
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: run_tree(tree, stop=stop, budget_s=5.0))
        await done.wait()
        stop.set()

    assert not before
    assert closed(meter) == [None]


async def test_a_close_that_is_cut_off_is_done_by_the_next_incarnation(autojump_clock):
    meter, tab = ScriptedMeter(), Tab()
    charges = Charges(meter)
    tree = Supervisor(SupervisorSpec(), [ChildSpec(id="charges", start=charges.run)])
    stop, ready = trio.Event(), trio.Event()

    class Torn:
        limits = ()
        tries = 0

        async def release(self) -> None:
            self.tries += 1
            if self.tries == 1:
                raise RuntimeError("a bug in the meter")
            await trio.lowlevel.checkpoint()

        settle = release

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: run_tree(tree, stop=stop, budget_s=5.0, on_ready=ready.set))
        await ready.wait()
        tab.charge = torn = Torn()
        await charges.close(tab).wait()
        stop.set()

    assert torn.tries == 2
