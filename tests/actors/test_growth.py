"""What a server keeps of turns that are over: nothing."""

import gc

import trio
import trio.testing

from antiphon.events import CancelCause
from antiphon.testing.rig import Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink
from antiphon.testing.telemetry import NullTelemetry

_WARM_UP = 100
_TURNS = 600


async def some_turns(rig: Rig, count: int) -> None:
    """A third is read to the end, a third is cancelled, a third is never read."""
    for number in range(count):
        stream = await rig.open(str(number), max_tokens=2)
        match number % 3:
            case 0:
                await read_all(stream)
            case 1:
                await trio.testing.wait_all_tasks_blocked()
                stream.cancel(CancelCause.DISCONNECT)
            case _:
                pass
        await rig.directory.wait_idle()
    rig.launcher.link.forget()


def objects() -> int:
    """Objects of ours that are alive. Others' are none of a turn's business: pytest keeps log
    lines, and Trio up to a thousand deadlines that are over."""
    gc.collect()
    # Some built-in types have no plain string for their module.
    return sum(str(type(it).__module__).startswith("antiphon.") for it in gc.get_objects())


async def test_turns_that_are_over_leave_nothing_behind(autojump_clock: trio.testing.MockClock):
    launcher = ScriptedLauncher(make=lambda: ScriptedLink(step_s=0.001, heartbeat_s=None))
    async with running_rig(launcher, telemetry=NullTelemetry()) as rig:
        await some_turns(rig, _WARM_UP)
        before = objects()

        await some_turns(rig, _TURNS)
        grown = objects() - before

    assert grown < _TURNS / 4
