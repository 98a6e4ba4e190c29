"""What an operator sees and does: health, the tree, a killed engine host, an ordered stop."""

import json
import os
import signal
import threading
from collections.abc import Iterator

import openai
import pytest

from antiphon.testing.process import ServerProcess, end, running_server

pytestmark = pytest.mark.engine
DRIVER = "root/pools/pool:smollm2-135m-instruct/driver"
STORY = [{"role": "user", "content": "Tell me a long story about a whale."}]


@pytest.fixture(scope="module")
def wounded(model_dir: object) -> Iterator[ServerProcess]:
    """A server whose engine these tests kill, and leave when it has another."""
    with running_server(ANTIPHON_POLICY_ENABLED="false") as process:
        yield process


@pytest.fixture
def own_server(model_dir: object) -> Iterator[ServerProcess]:
    """A server that the test may end."""
    with running_server(
        ANTIPHON_POLICY_ENABLED="false",
        ANTIPHON_SHUTDOWN_DRAIN_S="2",
        ANTIPHON_SHUTDOWN_BUDGET_S="15",
    ) as process:
        yield process


def streaming(server: ServerProcess, **fields: object) -> openai.Stream:
    client = openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
    model = client.models.list().data[0].id
    return client.chat.completions.create(
        **{"model": model, "messages": STORY, "max_tokens": 900, "stream": True, **fields}
    )


def kill_engine(server: ServerProcess) -> int:
    """Whose process that was; the server knows that it is gone."""
    pid: int = server.log.events("engine_ready")[-1]["pid"]
    lost = len(server.log.events("engine_lost"))
    os.kill(pid, signal.SIGKILL)
    server.log.wait_for(
        "engine_lost",
        within_s=10,
        matching=lambda _: len(server.log.events("engine_lost")) > lost,
    )
    return pid


def test_the_banner_names_addresses_model_and_a_curl_line(server: ServerProcess):
    assert server.base_url in server.banner
    assert "smollm2-135m-instruct" in server.banner
    assert "curl -N" in server.banner


def test_health_tells_live_and_ready(server: ServerProcess):
    assert server.get("/health/live")[0] == 200
    assert server.get("/health/ready")[0] == 200


def test_the_tree_shows_every_child_with_its_state(server: ServerProcess):
    tree = server.tree()

    for path in (
        DRIVER,
        "root/pools/pool:smollm2-135m-instruct/scheduler",
        "root/sessions/shard-0",
        "root/http:api",
        "root/http:ops",
        "root/watchman",
    ):
        assert tree[path]["state"] == "up", path
        assert tree[path]["incarnation"] == 1
    driver = tree[DRIVER]
    assert driver["mailbox"]["depth"] == 0
    assert driver["uptime_s"] > 0


def test_slots_show_who_holds_them(server: ServerProcess):
    with streaming(server) as stream:
        next(stream)
        busy = [slot for slot in server.slots() if slot["state"] != "free"]

    assert len(server.slots()) == 32
    assert [slot["state"] for slot in busy] == ["decode"]
    assert busy[0]["request_id"]
    assert busy[0]["tokens"] >= 1


def test_metrics_speak_of_what_happened(server: ServerProcess):
    with streaming(server, max_tokens=8) as stream:
        list(stream)

    assert server.metric("antiphon_time_to_first_token_seconds_count") >= 1
    assert server.metric("antiphon_generation_tokens_total") >= 8
    assert server.metric("antiphon_engine_step_seconds_count") >= 8


def test_a_killed_engine_host_costs_its_streams_and_no_more(wounded: ServerProcess):
    streams = [streaming(wounded) for _ in range(4)]
    for stream in streams:
        next(stream)
    was = wounded.tree()[DRIVER]
    restarts = wounded.metric("antiphon_engine_restarts_total")

    kill_engine(wounded)

    for stream in streams:
        with pytest.raises(openai.APIError):
            list(stream)
    with streaming(wounded, max_tokens=4) as stream:
        assert list(stream)
    tree = wounded.tree()
    assert tree[DRIVER]["incarnation"] == was["incarnation"] + 1
    assert tree[DRIVER]["restarts"] == was["restarts"] + 1
    assert tree[DRIVER]["last_exit"]["kind"] == "crashed"
    assert tree["root/http:api"]["incarnation"] == 1
    assert wounded.get("/health/ready")[0] == 200
    assert wounded.metric("antiphon_engine_restarts_total") == restarts + 1


def test_a_hung_engine_host_is_killed_and_replaced(model_dir: object):
    with running_server(ANTIPHON_POLICY_ENABLED="false", ANTIPHON_ENGINE_SILENCE_S="2") as hung:
        stream = streaming(hung)
        next(stream)
        [ready] = hung.log.events("engine_ready")

        os.kill(ready["pid"], signal.SIGSTOP)

        with pytest.raises(openai.APIError):
            list(stream)
        hung.log.wait_for(
            "engine_ready", within_s=60, matching=lambda line: line["pid"] != ready["pid"]
        )
        with streaming(hung, max_tokens=4) as after:
            assert list(after)
        with pytest.raises(ProcessLookupError):
            os.kill(ready["pid"], 0)


def test_readiness_is_lost_while_the_engine_restarts(wounded: ServerProcess):
    pid = kill_engine(wounded)
    status, body = wounded.get("/health/ready")

    assert status == 503
    assert "engine" in body.decode()
    wounded.log.wait_for(
        "engine_ready",
        within_s=60,
        matching=lambda _: wounded.log.events("engine_ready")[-1]["pid"] != pid,
    )
    assert wounded.get("/health/ready")[0] == 200


def test_sigterm_drains_gives_streams_an_end_and_exits_zero(own_server: ServerProcess):
    stream = streaming(own_server, extra_body={"ignore_eos": True})
    next(stream)

    own_server.process.send_signal(signal.SIGTERM)
    own_server.log.wait_for("drain_started", within_s=10)
    status, _ = own_server.get("/health/ready")
    with pytest.raises(openai.APIError, match="shutting down"):
        list(stream)

    assert status == 503
    assert own_server.process.wait(20) == 0


def test_new_work_is_refused_while_the_server_drains(own_server: ServerProcess):
    stream = streaming(own_server, extra_body={"ignore_eos": True})
    next(stream)
    own_server.process.send_signal(signal.SIGTERM)
    own_server.log.wait_for("drain_started", within_s=10)

    with pytest.raises(openai.InternalServerError) as caught:
        streaming(own_server)

    assert caught.value.status_code == 503
    assert int(caught.value.response.headers["retry-after"]) >= 1


def test_an_address_in_use_is_one_line_that_names_the_setting(server: ServerProcess):
    taken = f"{server.api[0]}:{server.api[1]}"

    with pytest.raises(RuntimeError) as caught, running_server(ANTIPHON_BIND=taken):
        pass

    assert "setting bind: cannot listen on" in str(caught.value)


def test_hanging_up_at_many_moments_leaves_every_slot_free(server: ServerProcess):
    """The k-th of these streams hangs up after k tokens; all at once."""

    def read_some(count: int) -> None:
        with streaming(server, extra_body={"ignore_eos": True}) as stream:
            for _, _ in zip(range(count), stream, strict=False):
                pass

    already = len(server.log.events("lease_cancelled"))
    readers = [threading.Thread(target=read_some, args=(count,)) for count in range(1, 17)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    last = server.log.wait_for(
        "lease_cancelled",
        within_s=20,
        matching=lambda _: len(server.log.events("lease_cancelled")) >= already + 16,
    )

    assert last
    # Two on a machine that keeps up; the bound here only has to tell from running to the end.
    assert all(line["tokens_after"] < 20 for line in server.log.events("lease_cancelled"))
    assert {slot["state"] for slot in server.slots()} == {"free"}
    body = json.loads(server.get("/ops/tree")[1])
    assert body["state"] == "up"


def test_a_second_start_in_a_row_is_quick_and_leaves_nothing(model_dir: object):
    with running_server() as process:
        pids = [line["pid"] for line in process.log.events("engine_ready")]
        assert end(process.process) == 0

    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
