"""The circuit breaker between sessions and their engine: when turns stop waiting for an engine that
doesn't come back, and how they find out that it did."""

import structlog.testing
import trio
import trio.testing

from antiphon.errors import ContextLengthExceeded, EngineUnavailable
from antiphon.events import CancelCause, HostFrame
from antiphon.ports import TurnStream
from antiphon.testing.rig import Rig, read_all, running_rig
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.turn_events import TurnEnded, TurnEvent, TurnFailed

PATIENCE_S = 15.0
"""Of a turn whose engine is down."""


class Never(ScriptedLink):
    """A host that never reports Ready; the driver gives it up after ten seconds."""

    async def receive(self) -> HostFrame:
        await trio.sleep_forever()


class Large(ScriptedLink):
    """A host that takes longer to load than a turn waits."""

    loaded = False

    async def receive(self) -> HostFrame:
        if not self.loaded:
            self.loaded = True
            await trio.sleep(20)
        return await super().receive()


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def lose(rig: Rig, make: type[ScriptedLink] = Never) -> None:
    """The host dies, and its successors are of that kind."""
    rig.launcher.make = make
    rig.launcher.link.die()


async def ends_of(streams: list[TurnStream]) -> list[TurnEvent]:
    return [(await read_all(stream))[-1] for stream in streams]


async def opened(rig: Rig) -> None:
    """The engine is lost for good and five turns have waited for it in vain."""
    lose(rig)
    await settle()
    streams = [await rig.open(f"in vain {number}") for number in range(5)]
    for end in await ends_of(streams):
        assert isinstance(end, TurnFailed)
        assert isinstance(end.error, EngineUnavailable)
    assert rig.breaker.statistics().circuit == "open"


async def refused_at_once(rig: Rig) -> EngineUnavailable:
    now = trio.current_time()
    [failed] = await read_all(await rig.open("refused"))
    assert trio.current_time() == now
    assert isinstance(failed, TurnFailed)
    assert isinstance(failed.error, EngineUnavailable)
    return failed.error


async def test_after_turns_in_a_row_waited_in_vain_the_next_is_refused_at_once(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        with structlog.testing.capture_logs() as logs:
            began = trio.current_time()
            await opened(rig)
            waited_s = trio.current_time() - began

            error = await refused_at_once(rig)

        assert waited_s == PATIENCE_S
        assert error.retry_after_s == 1.0
        assert rig.breaker.statistics().refused == 1
        [line] = [line for line in logs if line["event"] == "circuit_opened"]
        assert (line["name"], line["failures_in_row"]) == ("engine scripted", 5)
        assert line["next_try_s"] == 1.0


async def test_one_lost_host_opens_no_circuit_however_many_turns_it_keeps_waiting(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig(start_timeout_s=60.0) as rig:
        lose(rig, Large)
        await settle()
        ends = await ends_of([await rig.open(str(number)) for number in range(8)])

        patient = (await read_all(await rig.open("patient")))[-1]

        assert all(isinstance(end, TurnFailed) for end in ends)
        assert isinstance(patient, TurnEnded)
        statistics = rig.breaker.statistics()
        assert (statistics.circuit, statistics.opened, statistics.failed) == ("closed", 0, 0)


async def test_half_open_lets_one_of_many_turns_wait_and_its_success_lets_all_through(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await opened(rig)
        rig.launcher.make = ScriptedLink
        await trio.sleep(1.0)

        now = trio.current_time()
        streams = [await rig.open(f"at the door {number}") for number in range(10)]
        await settle()
        half_open = rig.breaker.statistics()
        with structlog.testing.capture_logs() as logs:
            ends = await ends_of(streams)

        assert (half_open.circuit, half_open.refused) == ("half_open", 9)
        answered = [end for end in ends if isinstance(end, TurnEnded)]
        assert len(answered) == 1
        assert 0 < trio.current_time() - now < PATIENCE_S
        assert rig.breaker.statistics().circuit == "closed"
        assert "circuit_closed" in [line["event"] for line in logs]
        after = await ends_of([await rig.open(f"after {number}") for number in range(4)])
        assert all(isinstance(end, TurnEnded) for end in after)


async def test_a_probe_that_waits_in_vain_opens_it_for_longer(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await opened(rig)
        await trio.sleep(1.0)

        await read_all(await rig.open("probe"))

        assert rig.breaker.statistics().circuit == "open"
        assert (await refused_at_once(rig)).retry_after_s == 2.0


async def test_a_turn_from_before_the_opening_that_is_taken_late_leaves_it_open(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig, trio.open_nursery() as nursery:
        late: list[TurnEvent] = []

        async def come_late() -> None:
            await trio.sleep(PATIENCE_S - 1)
            late.extend(await read_all(await rig.open("late")))

        nursery.start_soon(come_late)
        await opened(rig)
        rig.launcher.make = ScriptedLink
        await trio.sleep(10.0)

        assert isinstance(late[-1], TurnEnded)
        statistics = rig.breaker.statistics()
        assert (statistics.circuit, statistics.stale) == ("open", 1)
        assert isinstance((await read_all(await rig.open("probe")))[-1], TurnEnded)
        assert rig.breaker.statistics().circuit == "closed"


async def test_a_probe_whose_client_leaves_gives_its_place_to_the_next(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await opened(rig)
        rig.launcher.make = ScriptedLink
        await trio.sleep(1.0)
        leaving = await rig.open("leaves")
        await settle()

        leaving.cancel(CancelCause.DISCONNECT)
        await settle()

        assert isinstance((await read_all(await rig.open("next")))[-1], TurnEnded)
        assert rig.breaker.statistics().circuit == "closed"


async def test_a_probe_that_the_scheduler_refuses_shows_that_it_works(
    autojump_clock: trio.testing.MockClock,
):
    small = ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(kv_blocks=1))
    )
    make = small.make
    async with running_rig(small) as rig:
        await opened(rig)
        small.make = make
        await trio.sleep(1.0)

        [failed] = await read_all(await rig.open("too long", max_tokens=100))

        assert isinstance(failed, TurnFailed)
        assert isinstance(failed.error, ContextLengthExceeded)
        assert rig.breaker.statistics().circuit == "closed"


async def test_turns_that_find_the_pool_stopped_say_nothing_of_its_engine(
    autojump_clock: trio.testing.MockClock,
):
    async with running_rig() as rig:
        await rig.tree.terminate_child("pool")
        await ends_of([await rig.open(str(number)) for number in range(8)])
        await rig.tree.restart_child("pool")

        assert isinstance((await read_all(await rig.open("after")))[-1], TurnEnded)
        assert rig.breaker.statistics().opened == 0
