"""A server that is ended early, late, twice or without a word leaves no engine host behind."""

import signal

import openai
import pytest

from antiphon.testing.process import ServerProcess, running_server, starting_server, watched

pytestmark = pytest.mark.engine


def streaming(server: ServerProcess) -> openai.Stream:
    """A stream that goes on for longer than the test."""
    client = openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
    return client.chat.completions.create(
        model=client.models.list().data[0].id,
        messages=[{"role": "user", "content": "Tell me a long story about a whale."}],
        max_tokens=900,
        stream=True,
        extra_body={"ignore_eos": True},
    )


def test_sigterm_while_the_engine_host_loads_ends_both_at_once(model_dir: object):
    with starting_server() as (server, log):
        pid = log.wait_for("host_process_started", within_s=60)["host_pid"]
        with watched(pid) as has_ended:
            server.send_signal(signal.SIGTERM)

            assert server.wait(10) == 0
            assert has_ended(0)
    assert log.events("server_ready") == []


def test_a_server_that_is_killed_takes_its_host_along(model_dir: object):
    with running_server() as server:
        [ready] = server.log.events("engine_ready")
        with watched(ready["pid"]) as has_ended:
            server.process.kill()

            assert has_ended(10)


def test_a_server_that_is_killed_while_its_host_loads_takes_it_along(model_dir: object):
    with starting_server() as (server, log):
        pid = log.wait_for("host_process_started", within_s=60)["host_pid"]
        with watched(pid) as has_ended:
            server.kill()

            assert has_ended(30)


def test_a_second_sigterm_ends_server_and_host_now(model_dir: object):
    with running_server() as server:
        [ready] = server.log.events("engine_ready")
        with watched(ready["pid"]) as has_ended, streaming(server) as stream:
            next(stream)
            server.process.send_signal(signal.SIGTERM)
            server.log.wait_for("drain_started", within_s=10)
            server.process.send_signal(signal.SIGTERM)

            assert server.process.wait(10) == 130
            assert has_ended(10)
