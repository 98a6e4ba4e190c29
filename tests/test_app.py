"""The whole tree of one server, with the default model's tokenizer and a scripted engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import msgspec
import pytest
import trio
import trio.testing

from antiphon.actors.breaker import Permit
from antiphon.app import Server
from antiphon.errors import AskTimeout, QueueFull
from antiphon.events import Admit, CancelCause, Message, Sampling, Turn
from antiphon.ids import ActorPath, RequestId
from antiphon.live_settings import Effect, LiveSettings
from antiphon.pools import FIRST
from antiphon.serving import listening
from antiphon.settings import EngineSettings, GenerationSettings, QueueSettings, Settings
from antiphon.supervision.exits import Stopped
from antiphon.supervision.root import Outcome
from antiphon.testing.contents import NoContents
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.models import prepared_default_model
from antiphon.testing.rig import read_next
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.stores import ScriptedOpener
from antiphon.turn_events import TurnFailed

pytestmark = pytest.mark.engine
SETTINGS = msgspec.structs.replace(Settings(), bind="127.0.0.1:0", ops_bind="127.0.0.1:0")


@asynccontextmanager
async def running(
    settings: Settings | LiveSettings,
    launcher: ScriptedLauncher,
    outcomes: list[Outcome] | None = None,
) -> AsyncIterator[Server]:
    live = settings if isinstance(settings, LiveSettings) else LiveSettings(settings, Settings)
    with listening(live.current) as listeners:
        server = Server(
            live,
            {FIRST: prepared_default_model()},
            listeners,
            launchers={FIRST: launcher},
            open_store=ScriptedOpener(),
            files=NoContents(),
            judges=ScriptedJudges(),
        )
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
        assert server.overall.not_ready() == ()

        server.schedule.schedule = None
        assert server.overall.not_ready() == (f"scheduler {server.name}: starting",)
        server.status.ready = False
        assert server.overall.not_ready() == (f"engine {server.name}: starting",)


async def test_slots_show_the_life_of_a_request(autojump_clock: trio.testing.MockClock):
    launcher = manual()
    async with running(SETTINGS, launcher) as server:
        streams = []
        for name in ("a", "b"):
            streams.append(await server.directory.open_turn(a_turn(server, name)))
            await trio.testing.wait_all_tasks_blocked()
        before = [(slot.state, slot.request_id) for slot in server.overall.slots()]
        launcher.link.step()
        await trio.testing.wait_all_tasks_blocked()
        streams[1].cancel(CancelCause.DISCONNECT)
        await trio.testing.wait_all_tasks_blocked()
        after = [(slot.state, slot.tokens) for slot in server.overall.slots()]
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


async def test_readiness_names_an_open_circuit_until_its_next_try_is_due(
    autojump_clock: trio.testing.MockClock,
):
    async with running(SETTINGS, manual()) as server:
        for _ in range(5):
            admitted = server.breaker.admit()
            assert isinstance(admitted, Permit)
            with suppress(AskTimeout), admitted:
                raise AskTimeout(ActorPath("root/pools"), 15.0)
        named = server.overall.not_ready()
        await trio.sleep(1.0)
        due = server.overall.not_ready()

    assert named == (f"circuit engine {server.name}: open for 1.0 s",)
    assert due == ()


async def test_a_reload_counts_for_what_comes_next_and_a_restarted_driver_takes_the_rest():
    changed = msgspec.structs.replace(
        SETTINGS,
        queue=QueueSettings(max_requests=1),
        generation=GenerationSettings(default_max_tokens=3),
        engine=EngineSettings(silence_s=7.0),
        ops_token="a-token-nobody-guesses",
    )
    live = LiveSettings(SETTINGS, lambda: changed)
    launcher = manual()
    async with running(live, launcher) as server:
        changes = {change.key: change.needs for change in await live.reload("SIGHUP")}
        silence_before = server.status.silence_s
        streams = []
        for number in range(5):
            turn = replace(a_turn(server, str(number)), max_tokens=None)
            streams.append(await server.directory.open_turn(turn))
            await trio.testing.wait_all_tasks_blocked()
        admits = [command for command in launcher.link.sent if isinstance(command, Admit)]
        failed = await read_next(streams[-1])
        launcher.link.die()
        await trio.testing.wait_all_tasks_blocked()
        silence_after = server.status.silence_s

    assert changes == {
        "queue.max_requests": None,
        "generation.default_max_tokens": None,
        "ops_token": None,
        "engine.silence_s": Effect.ENGINE,
    }
    assert [admit.max_tokens for admit in admits] == [3, 3, 3]
    assert isinstance(failed, TurnFailed)
    assert isinstance(failed.error, QueueFull)
    assert (silence_before, silence_after) == (20.0, 7.0)
