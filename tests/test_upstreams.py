"""A whole server in front of replicas: its pool, its readiness, its operations pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio

from antiphon.app import Server
from antiphon.check import examine
from antiphon.engine.models import SilentProgress
from antiphon.engine.upstream import prepare_upstream, survey
from antiphon.errors import InvalidRequest
from antiphon.events import Message, Sampling, Turn
from antiphon.http.openai.parse import parse_chat
from antiphon.http.openai.turns import make_turn
from antiphon.ids import ActorPath, RequestId
from antiphon.live_settings import LiveSettings
from antiphon.pools import FIRST
from antiphon.ports import SamplingDefaults
from antiphon.serving import listening
from antiphon.settings import EngineSettings, Settings
from antiphon.supervision.operator import Operator
from antiphon.supervision.tree import Node, node_at
from antiphon.testing.contents import NoContents
from antiphon.testing.judges import ScriptedJudges
from antiphon.testing.replicas import ScriptedReplica, serve_replica
from antiphon.testing.rig import read_all
from antiphon.testing.stores import ScriptedOpener
from antiphon.turn_events import Delta, TurnEnded, TurnEvent, TurnFailed, Usage
from antiphon.upstream_settings import UpstreamSettings


def settings_for(*urls: str, **upstream: object) -> Settings:
    given = {"urls": urls, "model": "m", "probe_s": 0.05, "wait_s": 0.2, **upstream}
    return msgspec.structs.replace(
        Settings(),
        bind="127.0.0.1:0",
        ops_bind="127.0.0.1:0",
        engine=EngineSettings(kind="upstream"),
        upstream=UpstreamSettings(**given),
    )


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Server]:
    model = prepare_upstream(settings, SilentProgress())
    with trio.fail_after(20), listening(settings) as listeners:
        server = Server(
            LiveSettings(settings, lambda: settings),
            {FIRST: model},
            listeners,
            open_store=ScriptedOpener(),
            files=NoContents(),
            judges=ScriptedJudges(),
        )
        stop, ready = trio.Event(), trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run, stop, ready.set)
            await ready.wait()
            yield server
            stop.set()


async def read(server: Server, name: str, **fields: object) -> list[TurnEvent]:
    turn = Turn(
        **{
            "request": RequestId(name),
            "model": server.name,
            "messages": (Message(role="user", content="hello"),),
            "sampling": Sampling(seed=1),
            "max_tokens": 8,
            **fields,
        }
    )
    return await read_all(await server.directory.open_turn(turn))


def paths(node: Node) -> list[str]:
    return [node.path, *(path for child in node.children for path in paths(child))]


async def until(server: Server, is_ready: bool) -> tuple[str, ...]:
    """The reasons once the server is, or isn't, ready; the replicas' news say when to look."""
    assert server.upstream is not None
    while (not server.overall.not_ready()) is not is_ready:
        fleet = server.upstream.fleet
        assert fleet is not None
        with trio.move_on_after(0.05):
            await fleet.news()
    return server.overall.not_ready()


async def test_a_server_answers_from_its_replicas_and_needs_no_model(nursery: trio.Nursery):
    url = await serve_replica(ScriptedReplica(), nursery)
    async with running(settings_for(url)) as server:
        events = await read(server, "t")

        last = events[-1]
        assert isinstance(last, TurnEnded)
        assert last.usage == Usage(prompt_tokens=11, completion_tokens=4)
        assert "".join(e.text for e in events if isinstance(e, Delta)) == "one two three four"
        assert server.overall.not_ready() == ()
        assert [
            path for path in paths(server.overall.tree()) if path.startswith("root/pools/")
        ] == [
            "root/pools/pool:m",
            "root/pools/pool:m/replicas",
            "root/pools/pool:m/driver",
            "root/pools/pool:m/scheduler",
        ]
        (replica,) = server.overall.replicas()
        assert (replica.state, replica.started) == ("up", 1)
        assert server.status.pid is None
        assert server.directory.capabilities(server.name).window == 4096


async def test_a_server_is_ready_while_a_replica_is_up(nursery: trio.Nursery):
    replica = ScriptedReplica()
    url = await serve_replica(replica, nursery)
    async with running(settings_for(url)) as server:
        assert await until(server, is_ready=True) == ()

        replica.health = 503
        reasons = await until(server, is_ready=False)
        assert reasons == (f"engine m: no replica is up ({url[7:-3]}: status 503)",)

        replica.health = 200
        assert await until(server, is_ready=True) == ()


async def test_what_the_replicas_cannot_do_is_refused_before_admission(nursery: trio.Nursery):
    url = await serve_replica(ScriptedReplica(), nursery)
    settings = settings_for(url, seed=False, logprobs=False, json_schema=False)
    async with running(settings) as server:
        capabilities = server.directory.capabilities(server.name)

    for field, value in (
        ("seed", "7"),
        ("logprobs", "true"),
        ("response_format", '{"type": "json_object"}'),
    ):
        body = '{"model": "m", "messages": [{"role": "user", "content": "x"}], "%s": %s}'
        parsed = parse_chat((body % (field, value)).encode(), max_choices=1)
        with pytest.raises(InvalidRequest) as caught:
            make_turn(parsed, RequestId("r"), SamplingDefaults(), capabilities)
        assert caught.value.param == field


async def test_a_restart_of_the_replicas_restarts_what_stands_on_them(nursery: trio.Nursery):
    url = await serve_replica(ScriptedReplica(), nursery)
    async with running(settings_for(url)) as server:
        pool = node_at(server.overall.tree(), "root/pools/pool:m")
        assert pool is not None
        assert [child.incarnation for child in pool.children] == [1, 1, 1]

        await Operator(lambda: server.tree, {}).restart(ActorPath("root/pools/pool:m/replicas"))

        assert isinstance((await read(server, "t"))[-1], TurnEnded)
        pool = node_at(server.overall.tree(), "root/pools/pool:m")
        assert pool is not None
        assert [child.incarnation for child in pool.children] == [2, 2, 2]


async def test_a_turn_that_must_be_seen_is_refused_where_nobody_sees(nursery: trio.Nursery):
    replica = ScriptedReplica(owned_by="llamacpp", vision=False)
    async with running(settings_for(await serve_replica(replica, nursery))) as server:
        await until(server, is_ready=True)

        *_, last = await read(server, "t", must_see=True)

        assert isinstance(last, TurnFailed)
        assert "can't see images" in str(last.error)
        assert replica.bodies == []


async def test_a_survey_says_of_each_replica_how_it_is(nursery: trio.Nursery):
    well = await serve_replica(ScriptedReplica(), nursery)
    other = await serve_replica(ScriptedReplica(model="other"), nursery)
    mute = await serve_replica(ScriptedReplica(window=None), nursery)
    settings = settings_for(well, other, mute, "http://127.0.0.1:1/v1").upstream

    looks = await trio.to_thread.run_sync(survey, settings)

    assert [look.is_well for look in looks] == [True, False, False, False]
    assert looks[0].fact == "vllm, m, 4096 tokens"
    assert "it lists: other" in looks[1].fact
    assert "upstream.window" in looks[2].fact


async def test_a_check_is_about_replicas_and_not_about_this_machine(
    nursery: trio.Nursery, tmp_path
):
    url = await serve_replica(ScriptedReplica(), nursery)
    settings = msgspec.structs.replace(settings_for(url), data_dir=tmp_path)

    findings = await trio.to_thread.run_sync(examine, settings)

    subjects = {finding.subject for finding in findings}
    assert f"replica {url[7:-3]}" in subjects
    assert not subjects & {"openvino", "cpu", "memory", "model"}
