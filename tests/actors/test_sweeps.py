"""The life of a turn, with something striking at every step of every task that has a part in it.

Whatever is struck, and when: slots and queue are empty afterwards, each stream has heard exactly
one end, no turn is open, and the next turn is answered.
"""

from collections.abc import Callable

import pytest
import trio

from antiphon.events import CancelCause
from antiphon.testing.rig import MODEL, Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.sweep import Fuse, Strike, crash, sweep
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed

SESSION = "root/shard-1/session-1"
OTHER_SESSION = "root/shard-0/session-2"
SUBMITTING = f"{SESSION}/.*"
SCHEDULER = "root/pool/scheduler"
DRIVER = "root/pool/driver(/.*)?"
READER = "reader"


class Reader:
    """A client's task, as an HTTP handler is: opens, reads, and gives back however it ends."""

    def __init__(self, rig: Rig, name: str, choices: int) -> None:
        self.scope = trio.CancelScope()
        self.events: list[TurnEvent] = []
        self.opened = False
        self.hung_up = False
        self._rig = rig
        self._name = name
        self._choices = choices

    async def run(self) -> None:
        with self.scope:
            stream = await self._rig.open(self._name, choices=self._choices)
            self.opened = True
            try:
                while not self.ended:
                    self.events.append(await stream.next_event())
            finally:
                self.hung_up = not self.ended
                stream.cancel(CancelCause.DISCONNECT)

    @property
    def ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], TurnEnded | TurnFailed)


async def a_turn_of_three_choices(
    fuse: Fuse, make_strike: Callable[[Rig, Reader], Strike], *, restarts: int
) -> None:
    """Two slots, so that one choice of three waits; another client's turn waits behind it."""
    launcher = ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=2))
    )
    async with running_rig(launcher) as rig:
        readers = [Reader(rig, "victim", 3), Reader(rig, "bystander", 1)]
        fuse.arm(make_strike(rig, readers[0]))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readers[0].run, name=READER)
            await trio.sleep(0.001)
            nursery.start_soon(readers[1].run, name="bystander")
        fuse.disarm()
        await trio.sleep(10)  # restarts and releases

        assert rig.view.schedule is not None
        assert rig.view.schedule.leases() == ()
        assert (rig.running, rig.waiting) == (0, 0)
        assert (rig.status.tokens, rig.launcher.link.live) == ({}, ())
        assert rig.directory.open_turns == 0
        assert [shard.which_children() for shard in rig.shards] == [(), ()]
        for reader in readers:
            ends = [event for event in reader.events if isinstance(event, TurnEnded | TurnFailed)]
            assert len(ends) == (0 if reader.scope.cancelled_caught else 1)
        opened = [reader for reader in readers if reader.opened]
        assert len(rig.telemetry.named("turn_finished")) == len(opened)
        assert rig.telemetry.named("requests_in_flight")[-1] == (MODEL, 0, 0)
        if not readers[0].hung_up:
            assert rig.telemetry.named("released_after_disconnect") == []
        assert len(rig.launcher.links) <= 1 + restarts
        assert isinstance((await read_all(await rig.open("next", choices=2)))[-1], TurnEnded)


def hang_up(rig: Rig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        reader.scope.cancel()
        return True

    return strike


def crash_it(rig: Rig, reader: Reader) -> Strike:
    return crash


def kill_the_host(rig: Rig, reader: Reader) -> Strike:
    def strike(task: trio.lowlevel.Task) -> bool:
        if not rig.launcher.links:
            return False
        rig.launcher.link.die("killed by signal 9")
        return True

    return strike


@pytest.mark.parametrize("victim", [READER, SESSION, SUBMITTING, SCHEDULER, DRIVER])
def test_a_reader_may_hang_up_at_any_step(victim: str):
    async def scenario(fuse: Fuse) -> None:
        await a_turn_of_three_choices(fuse, hang_up, restarts=0)

    assert sweep(scenario, victim=victim) > 1


@pytest.mark.parametrize("victim", [SESSION, SUBMITTING, OTHER_SESSION])
def test_a_session_may_crash_at_any_step(victim: str):
    async def scenario(fuse: Fuse) -> None:
        await a_turn_of_three_choices(fuse, crash_it, restarts=0)

    assert sweep(scenario, victim=victim) > 1


def test_a_session_may_be_stopped_at_any_step():
    def stop_it(rig: Rig, reader: Reader) -> Strike:
        def strike(task: trio.lowlevel.Task) -> bool:
            trio.lowlevel.spawn_system_task(stop_session, rig)
            return True

        return strike

    async def stop_session(rig: Rig) -> None:
        for shard in rig.shards:
            if any(id == "session-1" for id, _ in shard.which_children()):
                await shard.terminate_child("session-1")

    async def scenario(fuse: Fuse) -> None:
        await a_turn_of_three_choices(fuse, stop_it, restarts=0)

    assert sweep(scenario, victim=SESSION) > 1


def test_the_scheduler_may_crash_at_any_step():
    async def scenario(fuse: Fuse) -> None:
        await a_turn_of_three_choices(fuse, crash_it, restarts=0)

    assert sweep(scenario, victim=SCHEDULER) > 1


def test_the_driver_may_crash_at_any_step():
    async def scenario(fuse: Fuse) -> None:
        await a_turn_of_three_choices(fuse, crash_it, restarts=1)

    assert sweep(scenario, victim=DRIVER) > 1


@pytest.mark.parametrize("victim", [READER, SESSION, SUBMITTING, SCHEDULER, DRIVER])
def test_the_server_may_be_stopped_at_any_step_from_its_start(victim: str):
    async def scenario(fuse: Fuse) -> None:
        launcher = ScriptedLauncher()
        reader: Reader | None = None
        with trio.CancelScope() as server:

            def stop_the_server(task: trio.lowlevel.Task) -> bool:
                server.cancel()
                return True

            fuse.arm(stop_the_server)
            async with running_rig(launcher) as rig, trio.open_nursery() as nursery:
                reader = Reader(rig, "a", 3)
                # Clients outlive the server's will to serve them.
                reader.scope.shield = True
                nursery.start_soon(reader.run, name=READER)
        fuse.disarm()

        assert all(link.closed for link in launcher.links)
        if reader is not None and reader.opened:
            ends = [event for event in reader.events if isinstance(event, TurnEnded | TurnFailed)]
            assert len(ends) == 1
            assert rig.directory.open_turns == 0

    assert sweep(scenario, victim=victim) > 1


@pytest.mark.parametrize("victim", [READER, SESSION, SCHEDULER, DRIVER])
def test_the_host_may_die_at_any_step(victim: str):
    async def scenario(fuse: Fuse) -> None:
        await a_turn_of_three_choices(fuse, kill_the_host, restarts=1)

    assert sweep(scenario, victim=victim) > 1
