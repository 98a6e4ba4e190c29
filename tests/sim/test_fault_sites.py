"""Each fault site of the core forced on, one at a time: whatever goes wrong where, each turn hears
one end, nothing leaks, and the tree settles once the plan is lifted."""

from collections.abc import Iterator
from itertools import repeat

import pytest
import trio

from antiphon import faults
from antiphon.actors.scheduling.schedule import QueueBounds
from antiphon.errors import AntiphonError
from antiphon.events import CancelCause
from antiphon.fault_plan import Action, Fault, FaultPlan, Site
from antiphon.testing.history import TurnRecord, check_one_ending
from antiphon.testing.rig import Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.turn_events import TurnEnded

ROOMS = {"driver", "scheduler", "session"}
ACTORS = ("root/pool/driver", "root/pool/scheduler", "root/shard-*")
LONG = 8_000
PATIENCE_S = 600.0
"""Of virtual time, which costs nothing: a turn that never ends is a failure and no hang."""
PASSES = (1, 2, 3, 7)
"""Of those that raise: at a probability of one the tree would give up, as it should."""


def cases() -> Iterator[Fault]:
    for site in Site:
        room = site.label.partition(".")[0]
        ats = ACTORS if room == "actor" else ("*",) if room in ROOMS else ()
        for at in ats:
            # Between two hosts there is one start and one end of a driver to strike at.
            is_rare = at != "root/shard-*" and site in {Site.ACTOR_START, Site.ACTOR_TERMINATE}
            once = is_rare or site is Site.DRIVER_LAUNCHED
            for nth in PASSES[:1] if once else PASSES:
                yield Fault(site, Action.RAISE, nth=nth, at=at)
            if Action.SLOW in site.actions:
                yield Fault(site, Action.SLOW, probability=1.0, at=at, pause_s=0.05)
                yield Fault(site, Action.SLOW, nth=1, at=at, pause_s=4.0)


CASES = tuple(cases())


async def a_client(rig: Rig, number: int, records: list[TurnRecord]) -> None:
    """Three turns, one after the other; the second one, which would take minutes, is left early."""
    for turn in range(3):
        record = TurnRecord(
            name=f"{number}-{turn}", choices=1 + number % 2, opened_at=trio.current_time()
        )
        records.append(record)
        try:
            stream = await rig.open(
                record.name, choices=record.choices, max_tokens=30 if turn != 1 else LONG
            )
        except AntiphonError as error:
            record.refused = type(error).__name__
            continue
        with trio.move_on_after(0.02 if turn == 1 else float("inf")):
            while not record.terminal:
                record.add(await stream.next_event(), trio.current_time())
        record.hung_up = not record.terminal
        stream.cancel(CancelCause.DISCONNECT)
        await trio.sleep(0.5)


@pytest.mark.parametrize("fault", CASES, ids=str)
async def test_every_turn_ends_once_and_the_tree_settles(fault, autojump_clock):
    capabilities = scripted_capabilities(slots=2, kv_blocks=2_000, window=2 * LONG)
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=capabilities, answer=lambda _: repeat("word "))
    )
    records: list[TurnRecord] = []
    with trio.fail_after(PATIENCE_S):
        await turns_under(fault, launcher, records)


async def turns_under(fault: Fault, launcher: ScriptedLauncher, records: list[TurnRecord]) -> None:
    bounds = QueueBounds(max_requests=32, max_tokens=20 * LONG, deadline_s=30.0)
    async with running_rig(launcher, bounds=bounds) as rig:
        with faults.injected(FaultPlan((fault,))) as injector:
            async with trio.open_nursery() as nursery:
                for number in range(6):
                    nursery.start_soon(a_client, rig, number, records)
                await trio.sleep(0.7)
                # While some run and others wait; an end and a new start are passed then, too.
                launcher.link.die("killed by signal 9")
            await trio.sleep(5)
        await trio.sleep(30)

        assert injector.struck[fault.site] > 0
        assert len(records) == 18
        assert [broken for record in records for broken in check_one_ending(record)] == []
        assert rig.view.schedule is not None
        assert rig.view.schedule.leases() == ()
        assert (rig.running, rig.waiting) == (0, 0)
        assert (rig.status.tokens, rig.launcher.link.live) == ({}, ())
        assert rig.directory.open_turns == 0
        assert [shard.which_children() for shard in rig.shards] == [(), ()]
        assert all(link.closed for link in launcher.links[:-1])
        assert isinstance((await read_all(await rig.open("next", choices=2)))[-1], TurnEnded)
