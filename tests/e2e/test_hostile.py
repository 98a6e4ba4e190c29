"""Bad input against the real server: each gets a clear OpenAI error or is dropped, and the server
answers the next request."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from antiphon.testing.process import ServerProcess, running_server

pytestmark = pytest.mark.engine
ASK = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}


@pytest.fixture(scope="module")
def hostile_server(model_dir: object) -> Iterator[ServerProcess]:
    """Short patience, so that tests of patience are short."""
    with running_server(
        ANTIPHON_HTTP_IDLE_TIMEOUT_S="1",
        ANTIPHON_HTTP_WRITE_TIMEOUT_S="1",
        ANTIPHON_MODEL_NAME="small",
    ) as process:
        yield process


@pytest.fixture
def target(hostile_server: ServerProcess) -> Iterator[ServerProcess]:
    """Whatever the test did, the server lives and answers afterwards."""
    yield hostile_server
    with openai.OpenAI(base_url=hostile_server.base_url, api_key="unused") as client:
        assert client.chat.completions.create(model="small", **ASK).choices


def post(server: ServerProcess, body: bytes) -> tuple[int, dict[str, Any]]:
    reply = httpx2.post(
        f"{server.base_url}/chat/completions",
        content=body,
        headers={"content-type": "application/json"},
        timeout=30,
    )
    assert reply.headers["x-request-id"]
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return reply.status_code, error


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "small", **ASK, **fields}).encode()


@pytest.mark.parametrize(
    ("payload", "status", "param"),
    [
        (b'{"model": "small", "messages": [', 400, None),
        (b"[1, 2]", 400, None),
        (b"\xff\xfe", 400, None),
        (b'{"model": "small"}', 400, "messages"),
        (body(messages=[]), 400, "messages"),
        (body(messages="hi"), 400, "messages"),
        (body(messages=[{"role": "user", "content": 5}]), 400, "messages[0].content"),
        (body(messages=[{"role": "wizard", "content": "hi"}]), 400, "messages[0].role"),
        (body(messages=[{"role": "user", "content": "a\x00b"}]), 400, "messages[0].content"),
        (body(messages=[{"role": "user", "content": "a\ud800b"}]), 400, None),
        (body(temperature="hot"), 400, "temperature"),
        (body(max_tokens=0), 400, "max_tokens"),
        (body(made_up=1), 400, "made_up"),
        (body(logit_bias={"50": 1}), 400, "logit_bias"),
        (
            body(
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "no-such-type"}},
                }
            ),
            400,
            "response_format",
        ),
        (body(model="other"), 404, "model"),
    ],
)
def test_bad_bodies_are_refused_with_the_field(
    target: ServerProcess, payload: bytes, status: int, param: str | None
):
    got, error = post(target, payload)

    assert got == status
    assert error["type"] == "invalid_request_error"
    if param is not None:
        assert (error["param"] or "").startswith(param)


def test_a_prompt_over_the_window_is_refused_with_the_numbers(target: ServerProcess):
    status, error = post(target, body(messages=[{"role": "user", "content": "word " * 20_000}]))

    assert status == 400
    assert error["code"] == "context_length_exceeded"
    assert "8192" in error["message"]


def test_a_body_of_20_mb_is_refused_as_too_large(target: ServerProcess):
    status, error = post(target, body(messages=[{"role": "user", "content": "x" * 20_000_000}]))

    assert status == 413
    assert error["type"] == "invalid_request_error"


def test_a_schema_that_only_the_engine_can_refuse_disturbs_nobody(target: ServerProcess):
    schema = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    payload = body(
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    )
    with openai.OpenAI(base_url=target.base_url, api_key="unused") as client:
        stream = client.chat.completions.create(
            model="small",
            messages=[{"role": "user", "content": "Tell me a story."}],
            max_tokens=48,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        next(stream)
        status, error = post(target, payload)
        rest = list(stream)

    assert status == 400
    assert error["param"] == "response_format"
    assert rest[-1].choices[0].finish_reason == "length"


def test_headers_that_dribble_are_cut(target: ServerProcess):
    with socket.create_connection(target.api, timeout=10) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ")

        assert _until_closed(slow) is not None


def test_a_websocket_upgrade_with_a_stray_byte_is_contained(target: ServerProcess):
    with socket.create_connection(target.api, timeout=10) as stray:
        stray.sendall(
            b"GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x00"
        )

        assert _until_closed(stray) is not None


def test_a_reader_that_stops_reading_is_dropped_and_its_slot_freed(target: ServerProcess):
    payload = json.dumps(
        {
            "model": "small",
            "messages": [{"role": "user", "content": "Tell me a story."}],
            "stream": True,
            "max_tokens": 4000,
            "logprobs": True,
            "ignore_eos": True,
        }
    ).encode()
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    stalled.connect(target.api)
    with stalled:
        stalled.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"X-Request-Id: stalled\r\nContent-Length: %d\r\n\r\n" % len(payload) + payload
        )

        target.log.wait_for(
            "lease_cancelled",
            within_s=120,
            matching=lambda line: line["request_id"] == "stalled",
        )


def _until_closed(connection: socket.socket) -> bytes:
    """What came before the server closed; the socket's own timeout is the bound."""
    received = b""
    try:
        while data := connection.recv(4096):
            received += data
    except ConnectionError:
        pass
    return received
