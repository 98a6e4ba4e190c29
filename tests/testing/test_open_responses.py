"""The script that holds a server to the Open Responses specification, against a server whose model
is a script."""

import dataclasses
from collections.abc import Iterator

import httpx2
import pytest

from antiphon.testing.scripted_server import ScriptedServer, scripted_server
from scripts.open_responses import Judge, Server, cases, event_types, main

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path_factory.mktemp("data")) as server:
        yield server


def test_every_body_and_event_fits_and_what_a_model_does_not_do_is_told(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
):
    status = main(["--url", server.api, "--runs", "1"])

    told = capsys.readouterr().out
    assert status == 0, told
    assert "1 of 1  basic-response" in told
    assert "1 of 1  streaming-response" in told
    assert "0 of 1  tool-calling\n" in told
    assert "failed  image-input  HTTP 400" in told


def test_what_does_not_fit_is_found(server: ScriptedServer):
    judge = Judge()
    with httpx2.Client(base_url=server.api) as http:
        response, events = Server(http, server.model, judge).ask({"input": "Hello", "stream": True})
    checked = judge.checked

    judge.body(response | {"status": None})
    judge.event(events[0] | {"sequence_number": "first"})
    judge.event({"type": "response.made_up"})

    assert (judge.checked, len(judge.problems)) == (checked + 3, 3)
    assert "sequence_number" in judge.problems[1]
    assert "response.made_up" in judge.problems[2]


def test_the_specification_is_read_whole():
    assert {"response.created", "response.output_text.delta", "error"} <= event_types().keys()
    assert len({case.name for case in cases()}) == 7
    assert all(dataclasses.asdict(case)["input"] for case in cases())
