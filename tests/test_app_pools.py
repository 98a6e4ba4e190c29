"""The whole tree of one server with two pools of the default model, over scripted engines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from antiphon.alias_settings import AliasSettings
from antiphon.app import Server
from antiphon.errors import SettingsError
from antiphon.events import Message, Sampling, Turn
from antiphon.ids import ModelName, RequestId
from antiphon.live_settings import LiveSettings
from antiphon.pools import FIRST, host_pids, served_names
from antiphon.serving import listening
from antiphon.settings import PoolSettings, Settings
from antiphon.supervision.root import Outcome
from antiphon.supervision.tree import node_at
from antiphon.testing.contents import NoContents
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.models import prepared_default_model
from antiphon.testing.rig import read_all
from antiphon.testing.scripted import ScriptedLauncher, ScriptedLink, scripted_capabilities
from antiphon.testing.stores import ScriptedOpener
from antiphon.turn_events import TurnEnded, TurnPlaced

pytestmark = pytest.mark.engine
SETTINGS = msgspec.structs.replace(
    Settings(),
    bind="127.0.0.1:0",
    ops_bind="127.0.0.1:0",
    model_name="one",
    pools={"second": PoolSettings(model=Settings().model, model_name="two", cost=2.0)},
    aliases={"auto": AliasSettings(models=("one", "two"))},
)


def launcher(slots: int, pid: int) -> ScriptedLauncher:
    return ScriptedLauncher(
        make=lambda: ScriptedLink(capabilities=scripted_capabilities(slots=slots), pid=pid)
    )


@asynccontextmanager
async def running(
    first: ScriptedLauncher, second: ScriptedLauncher, outcomes: list[Outcome] | None = None
) -> AsyncIterator[Server]:
    live = LiveSettings(SETTINGS, lambda: SETTINGS)
    model = prepared_default_model()
    with listening(SETTINGS) as listeners:
        server = Server(
            live,
            {FIRST: model, "second": model},
            listeners,
            launchers={FIRST: first, "second": second},
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


def a_turn(name: str, model: str) -> Turn:
    return Turn(
        request=RequestId(name),
        model=ModelName(model),
        messages=(Message(role="user", content="hello"),),
        sampling=Sampling(seed=1),
        max_tokens=8,
    )


async def test_every_pool_is_in_the_tree_and_answers_by_its_name(
    autojump_clock: trio.testing.MockClock,
):
    first, second = launcher(3, 11), launcher(2, 22)
    async with running(first, second) as server:
        for name in ("pool:one", "pool:two"):
            assert node_at(server.overall.tree(), f"root/pools/{name}/scheduler") is not None
        places = []
        for model in ("one", "two", "auto"):
            stream = await server.directory.open_turn(a_turn(model, model))
            places.append(await stream.next_event())
            assert isinstance((await read_all(stream))[-1], TurnEnded)
        slots = [(slot.model, slot.slot) for slot in server.overall.slots()]
        pids = set(host_pids(server.pools))

    assert [(type(each), each.model) for each in places] == [
        (TurnPlaced, ModelName(name)) for name in ("one", "two", "one")
    ]
    assert slots == [("one", 0), ("one", 1), ("one", 2), ("two", 0), ("two", 1)]
    assert server.names == ("one", "two", "auto")
    assert pids == {11, 22}
    assert [pool.cost for pool in server.overall.pools()] == [1.0, 2.0]
    assert [each.name for each in server.overall.breakers() if "engine" in each.name] == [
        "engine one",
        "engine two",
    ]


async def test_a_server_is_ready_while_one_pool_can_serve_and_names_the_other(
    autojump_clock: trio.testing.MockClock,
):
    first, second = launcher(3, 11), launcher(2, 22)
    async with running(first, second) as server:
        assert (server.overall.not_ready(), server.overall.concerns()) == ((), ())

        server.pools[0].engine.status.ready = False
        assert server.overall.not_ready() == ()
        assert server.overall.concerns() == ("engine one: starting",)

        server.pools[1].engine.status.ready = False
        assert server.overall.not_ready() == ("engine one: starting", "engine two: starting")
        assert server.overall.concerns() == ()


async def test_a_pool_that_cannot_be_kept_running_leaves_the_others_alone(
    autojump_clock: trio.testing.MockClock,
):
    first, second = launcher(3, 11), launcher(2, 22)
    outcomes: list[Outcome] = []
    async with running(first, second, outcomes) as server:
        second.refusals += ["no memory"] * 10_000
        second.link.die()
        for number in range(60):
            await trio.sleep(30)
            stream = await server.directory.open_turn(a_turn(str(number), "auto"))
            assert isinstance((await read_all(stream))[-1], TurnEnded)

        assert server.overall.not_ready() == ()
        assert outcomes == []
        assert len(first.links) == 1


def test_names_that_only_the_models_tell_are_checked_again():
    model = prepared_default_model()
    settings = msgspec.structs.replace(SETTINGS, model="/some/where", model_name=None, aliases={})

    with pytest.raises(SettingsError) as refusal:
        served_names(
            msgspec.structs.replace(settings, pools={"second": PoolSettings(model="/else/where")}),
            {FIRST: model, "second": model},
        )

    assert refusal.value.key == "pools.second.model_name"
