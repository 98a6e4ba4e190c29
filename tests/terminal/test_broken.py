"""`antiphon chat` while connections break, messages vanish, and the server is killed: an answer is
read on or said to be interrupted, never made twice, and never said to be stopped when it isn't."""

import itertools
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from antiphon.events import Admit
from antiphon.testing.cut_proxy import CutProxy, cut_proxy
from antiphon.testing.process import running_server
from antiphon.testing.pseudo_terminal import Terminal, at_a_terminal
from antiphon.testing.scripted_server import ScriptedServer, scripted_server

pytestmark = pytest.mark.engine

CTRL_C, CTRL_D = "\x03", "\x04"
SLOTS = 2
WORDS = 600
STEP_S = 0.01


def numbered(admit: Admit) -> Iterable[str]:
    return (f"w{number} " for number in range(WORDS))


def endless(admit: Admit) -> Iterable[str]:
    return itertools.islice(itertools.cycle(("word ", "after ")), 4000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    folder = tmp_path_factory.mktemp("data")
    with scripted_server(folder, step_s=STEP_S, slots=SLOTS) as server:
        yield server


@pytest.fixture
def proxy(server: ScriptedServer) -> Iterator[CutProxy]:
    address = urlsplit(server.api)
    assert address.hostname is not None
    assert address.port is not None
    with cut_proxy((address.hostname, address.port)) as proxy:
        yield proxy


@pytest.fixture
def before(server: ScriptedServer) -> list[str]:
    """The conversations of other tests."""
    return conversations(server.api)


@contextmanager
def chatting(api: str, folder: Path) -> Iterator[Terminal]:
    environment = {"ANTIPHON_API_URL": api, "XDG_STATE_HOME": str(folder)}
    with at_a_terminal(("chat",), environment) as terminal:
        terminal.expect("Ctrl-D leaves.")
        yield terminal


def conversations(api: str) -> list[str]:
    return [each["id"] for each in httpx2.get(f"{api}/v1/conversations").json()["data"]]


def begun(api: str, before: Collection[str]) -> str:
    """The conversation that wasn't there before; conv_0, which is nobody's, while there is none."""
    return next((id for id in conversations(api) if id not in before), "conv_0")


def responses(api: str, conversation: str) -> list[dict[str, Any]]:
    query = {"conversation": conversation}
    answer = httpx2.get(f"{api}/v1/responses", params=query).json()
    return list(answer.get("data", ()))


def awaited(api: str, before: Collection[str], status: str) -> dict[str, Any]:
    """The response in the conversation that wasn't there before, once it has that status."""
    for _ in range(600):
        if (found := responses(api, begun(api, before))) and found[0]["status"] == status:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"not {status}")


def said(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] for part in item.get("content", ()))


def test_a_cut_connection_costs_nothing_of_an_answer(
    server: ScriptedServer, proxy: CutProxy, before: list[str], tmp_path: Path
):
    server.words = numbered
    with chatting(proxy.api, tmp_path) as terminal:
        terminal.say("go on")
        terminal.expect("w9 ")
        assert proxy.cut() >= 1
        terminal.expect("connection lost")
        terminal.expect(f"{WORDS} tokens")
        terminal.say("/show")
        terminal.expect(f"w{WORDS - 1}")

    conversation = begun(server.api, before)
    [response] = responses(server.api, conversation)
    items = httpx2.get(f"{server.api}/v1/conversations/{conversation}/items").json()["data"]
    assert response["status"] == "completed"
    assert said(response).split() == [f"w{number}" for number in range(WORDS)]
    assert len(items) == 2


def test_an_answer_that_still_waits_for_a_slot_is_stopped(
    server: ScriptedServer, before: list[str], tmp_path: Path
):
    """Its id is told with its first text, or after a second without any."""
    server.words = endless
    with ExitStack() as stack:
        client = stack.enter_context(httpx2.Client(base_url=server.api, timeout=60))
        for _ in range(SLOTS):  # each has one once its headers are there
            body = {"input": "go on", "stream": True, "max_output_tokens": 3000}
            stack.enter_context(client.stream("POST", "/v1/responses", json=body))
        terminal = stack.enter_context(chatting(server.api, tmp_path))
        terminal.say("me too")
        awaited(server.api, before, "in_progress")

        terminal.type(CTRL_C)
        terminal.expect("the server has ended it")

        [response] = responses(server.api, begun(server.api, before))
        assert response["status"] == "cancelled"
        assert said(response) == ""


def test_a_message_that_has_vanished_is_not_called_stopped(
    server: ScriptedServer, proxy: CutProxy, before: list[str], tmp_path: Path
):
    server.words = numbered
    with chatting(proxy.api, tmp_path) as terminal:
        proxy.swallow(b"POST /v1/responses ")
        terminal.say("hello")
        assert proxy.swallowed.wait(60)

        terminal.type(CTRL_C)
        terminal.expect("no answer to it runs yet")
        terminal.prompted()

    assert responses(server.api, begun(server.api, before)) == []


def test_a_message_that_never_left_was_not_asked(proxy: CutProxy, tmp_path: Path):
    with chatting(proxy.api, tmp_path) as terminal:
        proxy.swallow(b"POST /v1/conversations ")
        terminal.say("hello")
        assert proxy.swallowed.wait(60)

        terminal.type(CTRL_C)
        terminal.expect("stopped before it was asked")
        terminal.prompted()


def test_a_server_that_can_not_be_told_has_not_stopped_it(
    server: ScriptedServer, proxy: CutProxy, before: list[str], tmp_path: Path
):
    server.words = endless
    with chatting(proxy.api, tmp_path) as terminal:
        terminal.say("go on")
        terminal.expect("word after")
        proxy.close()
        terminal.expect("connection lost")
        terminal.type(CTRL_C)
        terminal.expect("could not be told to stop")

    [response] = responses(server.api, begun(server.api, before))
    assert response["status"] == "in_progress"
    httpx2.post(f"{server.api}/v1/responses/{response['id']}/cancel", json={})


def test_a_server_that_is_killed_and_comes_back_has_one_answer(tmp_path: Path):
    """On the same port, with the same database: what was said stays, and is said to be
    interrupted."""
    kept = {
        "ANTIPHON_DATABASE_URL": f"sqlite:///{tmp_path}/antiphon.db",
        "ANTIPHON_ENGINE_SLOTS": "2",
        "ANTIPHON_ENGINE_KV_CACHE_MIB": "64",
    }
    with ExitStack() as stack:
        first = stack.enter_context(running_server(**kept))
        api = first.base_url.removesuffix("/v1")
        terminal = stack.enter_context(chatting(api, tmp_path))
        terminal.say("Tell me a long story about a whale.")
        heard(api, awaited(api, (), "in_progress"))
        conversation = begun(api, ())

        first.process.kill()
        first.process.wait()
        terminal.expect("connection lost")
        stack.enter_context(running_server(ANTIPHON_BIND=f"127.0.0.1:{first.api[1]}", **kept))
        terminal.expect("It failed: The answer was interrupted")
        terminal.prompted()

        [response] = responses(api, conversation)
        items = httpx2.get(f"{api}/v1/conversations/{conversation}/items").json()["data"]
        assert response["status"] == "failed"
        assert "interrupted" in response["error"]["message"]
        assert said(response)
        assert [item["role"] for item in items] == ["assistant", "user"]


def heard(api: str, response: dict[str, Any]) -> None:
    """Wait until so much was said that some of it is stored: that happens every quarter second."""
    path = f"{api}/v1/responses/{response['id']}?stream=true"
    with httpx2.stream("GET", path, timeout=60) as stream:
        deltas = (line for line in stream.iter_lines() if "output_text.delta" in line)
        assert sum(1 for _ in itertools.islice(deltas, 100)) == 100
