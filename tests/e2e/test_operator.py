"""An operator's commands against a real server under load."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine
TOKEN = "a-token-nobody-guesses"
POOL = "root/pools/pool:smollm2-135m-instruct"
STORY = [{"role": "user", "content": "Tell me a long story about a whale."}]


@pytest.fixture(scope="module")
def own_server(model_dir: object) -> Iterator[ServerProcess]:
    """A server whose children these tests restart and stop, and leave as well as they found it."""
    with running_server(
        ANTIPHON_OPS_TOKEN=TOKEN,
        ANTIPHON_POLICY_ENABLED="false",
        ANTIPHON_SHUTDOWN_DRAIN_S="2",
        ANTIPHON_SHUTDOWN_BUDGET_S="15",
    ) as process:
        yield process


def streaming(server: ServerProcess, **fields: object) -> openai.Stream:
    client = openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
    return client.chat.completions.create(
        **{
            "model": "smollm2-135m-instruct",
            "messages": STORY,
            "max_tokens": 900,
            "stream": True,
            **fields,
        }
    )


def begun(server: ServerProcess, count: int, **fields: object) -> list[openai.Stream]:
    streams = [streaming(server, **fields) for _ in range(count)]
    for stream in streams:
        next(stream)
    return streams


def sessions_of(server: ServerProcess) -> set[str]:
    return {path for path in server.tree() if path.count("/") == 3 and "shard-" in path}


def assert_answers(server: ServerProcess) -> None:
    with streaming(server, max_tokens=4) as stream:
        assert list(stream)


def test_a_driver_restarted_under_load_costs_its_streams_and_no_more(own_server: ServerProcess):
    streams = begun(own_server, 4)
    before = own_server.log.events("engine_ready")[-1]
    was = own_server.tree()
    commands = len(own_server.log.events("operator_command"))

    status, body = own_server.command("restart", f"{POOL}/driver", TOKEN)

    assert (status, body["child"]["state"]) == (200, "up")
    assert body["child"]["incarnation"] == was[f"{POOL}/driver"]["incarnation"] + 1
    for stream in streams:
        with pytest.raises(openai.APIError):
            list(stream)
    assert_answers(own_server)
    tree = own_server.tree()
    for name in ("driver", "scheduler"):
        incarnation = was[f"{POOL}/{name}"]["incarnation"]
        assert tree[f"{POOL}/{name}"]["incarnation"] == incarnation + 1, name
        assert tree[f"{POOL}/{name}"]["last_exit"]["kind"] == "stopped", name
        assert tree[f"{POOL}/{name}"]["restarts"] == 0, name
    assert tree[POOL]["restarts_in_window"] == 0
    assert tree["root/http:api"]["incarnation"] == 1
    assert own_server.get("/health/ready")[0] == 200
    assert all(slot["state"] == "free" for slot in own_server.slots())
    after = own_server.log.events("engine_ready")[-1]
    assert after["pid"] != before["pid"]
    [line] = own_server.log.events("operator_command")[commands:]
    assert (line["command"], line["outcome"]) == ("restart", "done")


def test_turns_that_come_during_the_restart_are_answered_after_it(own_server: ServerProcess):
    incarnation = own_server.tree()[f"{POOL}/driver"]["incarnation"]
    with ThreadPoolExecutor() as pool:
        restart = pool.submit(own_server.command, "restart", f"{POOL}/driver", TOKEN)
        own_server.log.wait_for(
            "child_exited",
            within_s=10,
            matching=lambda line: (
                (line["path"], line["incarnation"]) == (f"{POOL}/driver", incarnation)
            ),
        )
        assert_answers(own_server)
        assert restart.result()[0] == 200


def test_a_stopped_driver_refuses_work_until_it_is_started(own_server: ServerProcess):
    (stream,) = begun(own_server, 1)
    incarnation = own_server.tree()[f"{POOL}/scheduler"]["incarnation"]

    assert own_server.command("stop", f"{POOL}/driver", TOKEN)[0] == 200
    with pytest.raises(openai.APIError):
        list(stream)
    assert own_server.get("/health/ready")[0] == 503

    assert own_server.command("start", f"{POOL}/driver", TOKEN)[0] == 200
    assert_answers(own_server)
    assert own_server.tree()[f"{POOL}/scheduler"]["incarnation"] == incarnation + 1


def test_a_stopped_session_ends_its_answer_and_no_other(own_server: ServerProcess):
    earlier = sessions_of(own_server)
    one, other = begun(own_server, 2, max_tokens=300, extra_body={"ignore_eos": True})
    sessions = sorted(sessions_of(own_server) - earlier)

    assert len(sessions) == 2
    assert own_server.command("stop", sessions[0], TOKEN)[0] == 200
    ends = []
    for stream in (one, other):
        try:
            list(stream)
        except openai.APIError:
            ends.append("error")
        else:
            ends.append("whole")

    assert sorted(ends) == ["error", "whole"]


def test_what_would_hang_or_drain_the_server_is_refused(own_server: ServerProcess):
    for path in ("root", "root/http:ops", "root/watchman"):
        for name in ("restart", "stop", "start"):
            status, body = own_server.command(name, path, TOKEN)
            assert status == 409, path
            assert body["error"]["code"] == "refused"

    assert own_server.command("stop", "root/nobody", TOKEN)[0] == 404
    assert own_server.command("stop", f"{POOL}/driver", "a-token-that-is-wrong")[0] == 401
    assert own_server.get(f"/ops/tree/{POOL}/driver")[0] == 200
