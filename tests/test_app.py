"""The whole tree of one server, with the default model's tokenizer and a scripted engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from antiphon.app import Server
from antiphon.events import CancelCause, Message, Sampling, Turn
from antiphon.ids import RequestId
from antiphon.serving import listening
from antiphon.settings import EngineSettings, Settings
from antiphon.supervision.exits import Stopped
from antiphon.supervision.root import Outcome
from antiphon.testing.models import prepared_default_model
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities

pytestmark = pytest.mark.engine
SETTINGS = msgspec.structs.replace(Settings(), bind="127.0.0.1:0", ops_bind="127.0.0.1:0")


@asynccontextmanager
async def running(
    settings: Settings, launcher: ScriptedLauncher, outcomes: list[Outcome] | None = None
) -> AsyncIterator[Server]:
    with listening(settings) as listeners:
        server = Server(settings, prepared_default_model(), listeners, launcher=launcher)
        stop, ready = trio.Event(), trio.Event()
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                outcome = await server.run(stop, ready.set)
                if outcomes is not None:
                    outcomes.append(outcome)

            nursery.start_soon(run)
            await ready.wait()
            yield server
            stop.set()


def manual() -> ScriptedLauncher:
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=3), step_s=None)
    )


def a_turn(server: Server, name: str) -> Turn:
    return Turn(
        request=RequestId(name),
        model=server.name,
        messages=(Message(role="user", content="hello"),),
        sampling=Sampling(seed=1),
        max_tokens=8,
    )


async def test_a_server_is_ready_once_engine_and_scheduler_are(
    autojump_clock: trio.testing.MockClock,
):
    async with running(SETTINGS, manual()) as server:
        assert server.not_ready() == ()

        server.schedule.schedule = None
        assert server.not_ready() == (f"scheduler {server.name}: starting",)
        server.status.ready = False
        assert server.not_ready() == (f"engine {server.name}: starting",)


async def test_slots_show_the_life_of_a_request(autojump_clock: trio.testing.MockClock):
    launcher = manual()
    async with running(SETTINGS, launcher) as server:
        streams = []
        for name in ("a", "b"):
            streams.append(await server.directory.open_turn(a_turn(server, name)))
            await trio.testing.wait_all_tasks_blocked()
        before = [(slot.state, slot.request_id) for slot in server.slots()]
        launcher.link.step()
        await trio.testing.wait_all_tasks_blocked()
        streams[1].cancel(CancelCause.DISCONNECT)
        await trio.testing.wait_all_tasks_blocked()
        after = [(slot.state, slot.tokens) for slot in server.slots()]
        streams[0].cancel(CancelCause.DISCONNECT)

    assert before == [("prefill", "a"), ("prefill", "b"), ("free", None)]
    assert after == [("decode", 1), ("releasing", 1), ("free", 0)]


async def test_an_engine_that_takes_its_whole_grace_to_end_is_not_stuck(
    autojump_clock: trio.testing.MockClock,
):
    class SlowToEnd(ScriptedLink):
        async def aclose(self, *, grace_s: float) -> None:
            with trio.move_on_after(grace_s + 1, shield=True):
                await trio.sleep(grace_s)
            await super().aclose(grace_s=grace_s)

    settings = msgspec.structs.replace(SETTINGS, engine=EngineSettings(stop_grace_s=12.0))
    outcomes: list[Outcome] = []
    async with running(settings, ScriptedLauncher(make=SlowToEnd), outcomes):
        pass

    assert [(outcome.exit, outcome.stuck) for outcome in outcomes] == [(Stopped(), ())]
