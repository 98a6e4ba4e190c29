"""How replicas go and come back, and what they say of themselves."""

import httpx2
import pytest
import structlog.testing
import trio
import trio.testing

from antiphon.actors.breaker import Breaker
from antiphon.engine.upstream import Upstream
from antiphon.errors import HostStartFailed
from antiphon.events import Fault, Ready
from antiphon.testing.replicas import ScriptedCluster, ScriptedReplica
from antiphon.upstream_settings import UpstreamSettings


def cluster(*replicas: ScriptedReplica) -> ScriptedCluster:
    return ScriptedCluster({f"r{number}": replica for number, replica in enumerate(replicas)})


def states(upstream) -> list[str]:
    return [replica.state for replica in upstream.statistics()]


@pytest.mark.parametrize("has_health", [True, False])
async def test_a_replica_that_dies_is_down_and_one_that_comes_back_is_up(
    running, autojump_clock, has_health
):
    replica = ScriptedReplica(has_health=has_health)
    async with running(cluster(replica, ScriptedReplica())) as upstream:
        await upstream.launch()
        assert upstream.problem() == "no replica is up (r0: starting; r1: starting)"
        await trio.sleep(0.5)
        assert states(upstream) == ["up", "up"]

        replica.kill()
        await trio.sleep(1.5)
        assert states(upstream) == ["down", "up"]
        assert upstream.problem() is None

        replica.revive()
        await trio.sleep(1.5)
        assert states(upstream) == ["up", "up"]


@pytest.mark.parametrize("health", [503, 500])
async def test_a_replica_that_says_it_is_not_well_gets_nothing(running, autojump_clock, health):
    replica = ScriptedReplica(health=health)
    async with running(cluster(replica)) as upstream:
        await upstream.launch()
        await trio.sleep(0.5)
        assert states(upstream) == ["down"]
        assert upstream.problem() == f"no replica is up (r0: status {health})"

        replica.health = 200
        await trio.sleep(1.5)
        assert states(upstream) == ["up"]


async def test_a_replica_is_late_once_and_not_twice(running, autojump_clock):
    class Late(ScriptedReplica):
        late = 0

        def answer(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path == "/health" and self.late:
                self.late -= 1
                return httpx2.Response(200, stream=_Never())
            return super().answer(request)

    class _Never(httpx2.AsyncByteStream):
        async def __aiter__(self):
            await trio.sleep_forever()
            yield b""

    replica = Late()
    async with running(cluster(replica)) as upstream:
        await upstream.launch()
        await trio.sleep(0.5)
        replica.late = 1
        with structlog.testing.capture_logs() as logs:
            await trio.sleep(10)
        assert (states(upstream), replica.late, logs) == (["up"], 0, [])

        replica.late = 9
        await trio.sleep(14)
        assert states(upstream) == ["down"]
    assert replica.open == 0


@pytest.mark.parametrize(
    ("replica", "reason"),
    [
        (ScriptedReplica(model="other"), "it doesn't list the model; it lists: other"),
        (ScriptedReplica(key="another"), "status 401"),
    ],
)
async def test_a_replica_of_no_use_says_why(running, autojump_clock, replica, reason):
    with structlog.testing.capture_logs() as logs:
        async with running(cluster(replica), api_key="mine") as upstream:
            await upstream.launch()
            await trio.sleep(20)

            assert upstream.problem() == f"no replica is up (r0: {reason})"
    lines = [line for line in logs if line["event"] == "replica_down"]
    assert [line["reason"] for line in lines] == [reason]  # once, not at every look
    assert "mine" not in str(logs)


async def test_the_window_is_the_smallest_that_a_replica_tells(running, autojump_clock):
    replicas = cluster(ScriptedReplica(window=4096), ScriptedReplica(window=None))
    async with running(replicas) as upstream:
        ready = await (await upstream.launch()).receive()

    assert isinstance(ready, Ready)
    assert ready.capabilities.window == 4096


async def test_without_a_window_nothing_is_served_and_the_reason_is_told(running, autojump_clock):
    async with running(cluster(ScriptedReplica(window=None))) as upstream:
        frame = await (await upstream.launch()).receive()

    assert isinstance(frame, Fault)
    assert "upstream.window" in frame.detail


async def test_with_a_window_it_is_ready_before_any_replica_is(running, autojump_clock):
    replica = ScriptedReplica()
    replica.kill()
    async with running(cluster(replica), window=2048, seed=False) as upstream:
        ready = await (await upstream.launch()).receive()
        await trio.sleep(1)

        assert isinstance(ready, Ready)
        assert (ready.pid, ready.capabilities.window) == (0, 2048)
        assert (ready.capabilities.slots, ready.capabilities.seed) == (8, False)
        assert upstream.problem() == "no replica is up (r0: ConnectError: connection refused)"


async def test_without_a_window_it_waits_for_the_first_replica(running, autojump_clock):
    replica = ScriptedReplica()
    replica.kill()
    async with running(cluster(replica)) as upstream:
        link = await upstream.launch()
        with trio.move_on_after(60) as scope:
            await link.receive()
        assert scope.cancelled_caught

        replica.revive()
        assert isinstance(await link.receive(), Ready)


async def test_llama_servers_window_is_that_of_a_slot(running, autojump_clock):
    class Llama(ScriptedReplica):
        def answer(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path == "/props":
                settings = {"default_generation_settings": {"n_ctx": 512}, "total_slots": 4}
                return httpx2.Response(200, json=settings)
            return super().answer(request)

    async with running(cluster(Llama(owned_by="llamacpp", window=2048))) as upstream:
        ready = await (await upstream.launch()).receive()

    assert ready.capabilities.window == 512
    assert ready.capabilities.engine_version == "llamacpp"


async def test_a_second_launch_keeps_what_is_known_of_the_replicas(running, autojump_clock):
    async with running(cluster(ScriptedReplica())) as upstream:
        first = await upstream.launch()
        await first.receive()
        await first.aclose(grace_s=1)

        second = await upstream.launch()
        assert states(upstream) == ["up"]
        assert isinstance(await second.receive(), Ready)


async def test_a_second_launch_takes_the_replicas_of_that_moment(autojump_clock):
    replicas = cluster(ScriptedReplica(), ScriptedReplica())
    now = [UpstreamSettings(urls=("http://r0/v1", "http://r1/v1"), model="m", probe_s=1.0)]
    upstream = Upstream(lambda: now[0], Breaker, connect=replicas.connect)
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upstream.run, lambda: None, stopping)
        await trio.testing.wait_all_tasks_blocked()
        first = await upstream.launch()
        await first.receive()
        assert [replica.name for replica in upstream.statistics()] == ["r0", "r1"]

        now[0] = UpstreamSettings(urls="http://r1/v1,http://r2/v1", model="m", probe_s=1.0)
        await first.aclose(grace_s=1)
        await upstream.launch()
        await trio.sleep(5)

        assert [replica.name for replica in upstream.statistics()] == ["r1", "r2"]
        assert states(upstream) == ["up", "down"]
        stopping.set()
    assert replicas.open == 0


async def test_no_link_without_a_running_service(running, autojump_clock):
    async with running(cluster(ScriptedReplica())) as upstream:
        pass

    with pytest.raises(HostStartFailed):
        await upstream.launch()
