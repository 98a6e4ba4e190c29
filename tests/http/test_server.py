"""What a connection may do to the server, and how the server stops."""

import json
import socket
import struct

import httpx2
import pytest
import structlog
import trio

from antiphon.http.app import make_api_app
from antiphon.http.protocol import Http1Protocol
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.http import chat_request, serving

GET_MODELS = b"GET /v1/models HTTP/1.1\r\nHost: test\r\n\r\n"
UPGRADE = (
    b"GET /v1/models HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
def http_settings():
    return HttpSettings(idle_timeout_s=0.2, body_timeout_s=0.2, max_body_bytes=100_000)


async def test_a_websocket_upgrade_with_a_stray_byte_leaves_the_server_alive(server):
    client = await server.connect()
    await client.send(UPGRADE + b"X")
    first = await client.read_to_end()

    assert b" 101 " not in first
    assert await _models(server) == 200


async def test_an_upgrade_to_http2_is_ignored(server):
    client = await server.connect()
    await client.send(
        b"GET /v1/models HTTP/1.1\r\nHost: test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    )

    assert (await client.read_head()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_not_http_gets_an_error_and_leaves_the_server_alive(server, nonsense):
    client = await server.connect()
    await client.send(nonsense)
    answer = await client.read_to_end()

    assert answer.startswith(b"HTTP/1.1 4")
    assert b"x-request-id: req_" in answer
    assert await _models(server) == 200


async def test_a_malformed_request_is_told_so_in_the_envelope(server):
    client = await server.connect()
    await client.send(b"nonsense\r\n\r\n")
    head = await client.read_head()
    error = json.loads(await client.read_to_end())["error"]

    assert head.startswith(b"HTTP/1.1 400 ")
    assert set(error) == {"message", "type", "param", "code"}


async def test_headers_that_never_end_are_cut_at_the_idle_timeout(server):
    client = await server.connect()
    await client.send(b"GET /v1/models HTTP/1.1\r\nHost: te")

    assert await client.read_to_end() == b""


async def test_a_connection_that_says_nothing_is_closed(server):
    client = await server.connect()

    assert await client.read_to_end() == b""


async def test_a_kept_alive_connection_is_closed_when_idle_and_serves_until_then(server):
    client = await server.connect()
    for _ in range(3):
        await client.send(GET_MODELS)
        assert (await client.read_head()).startswith(b"HTTP/1.1 200 ")
        await client.read_until(b"}]}")

    assert await client.read_to_end() == b""


async def test_a_body_that_stops_arriving_is_a_408(server):
    client = await server.connect()
    await client.send(chat_request()[:-5])
    answer = await client.read_to_end()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in answer


async def test_pipelined_requests_are_answered_in_order(server, chat):
    client = await server.connect()
    await client.send(chat_request(stream=False) + GET_MODELS)
    turn = await chat.next_turn()
    turn.say("Hello")
    turn.finish()

    first = await client.read_until(b"fp_")
    second = await client.read_until(b'"object":"list"')

    assert b"Hello" in first
    assert b"HTTP/1.1 200 " in second


async def test_a_large_body_is_a_413_that_an_ordinary_client_can_read(server):
    async with httpx2.AsyncClient(base_url=server.url) as client:
        answer = await client.post(
            "/v1/chat/completions",
            content=b"x" * 20_000_000,
            headers={"content-type": "application/json"},
        )

    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "request_too_large"
    assert answer.headers["connection"] == "close"


async def test_a_large_chunked_body_is_a_413_that_the_client_can_read(server):
    async def pieces():
        for _ in range(20):
            yield b"x" * 100_000

    async with httpx2.AsyncClient(base_url=server.url) as client:
        answer = await client.post(
            "/v1/chat/completions",
            content=pieces(),
            headers={"content-type": "application/json"},
        )

    assert answer.status_code == 413


async def test_a_large_body_that_waits_for_100_continue_is_never_asked_for(server):
    client = await server.connect()
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
        b"Content-Length: 20000000\r\nExpect: 100-continue\r\n\r\n"
    )

    assert (await client.read_head()).startswith(b"HTTP/1.1 413 ")


async def test_a_body_within_the_limit_is_asked_for(server, chat):
    request = chat_request(stream=False, extra_headers="Expect: 100-continue\r\n")
    head, _, body = request.partition(b"\r\n\r\n")
    client = await server.connect()
    await client.send(head + b"\r\n\r\n")
    assert (await client.read_head()).startswith(b"HTTP/1.1 100 ")

    await client.send(body)
    (await chat.next_turn()).finish()

    assert (await client.read_head()).startswith(b"HTTP/1.1 200 ")


async def test_an_error_inside_one_connection_is_contained_and_logged(server, monkeypatch):
    async def explode(self, event):
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a defect of the protocol library")

    with monkeypatch.context() as patch, structlog.testing.capture_logs() as logs:
        patch.setattr(Http1Protocol, "_handle_events", explode)
        client = await server.connect()
        await client.send(GET_MODELS)
        assert await client.read_to_end() == b""

    assert [entry["event"] for entry in logs] == ["connection_crashed"]
    assert await _models(server) == 200


async def test_a_client_that_resets_at_once_is_no_crash(server):
    with structlog.testing.capture_logs() as logs:
        for _ in range(20):
            client = await server.connect()
            client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        assert await _models(server) == 200
        await server.end()

    assert {entry["event"] for entry in logs} == {"request_finished"}


async def test_connections_over_the_limit_wait_for_a_place(chat, telemetry):
    settings = HttpSettings(max_connections=1)
    app = make_api_app(
        chat, lambda: settings, GenerationSettings, telemetry, accounts=ScriptedAccounts()
    )
    async with serving(app, settings) as server:
        first = await server.connect()
        await first.send_chat()
        turn = await chat.next_turn()
        second = await server.connect()
        await second.send(GET_MODELS)
        await turn.waiting.wait()
        assert not second.received

        turn.finish()
        await first.read_to_end()

        assert (await second.read_head()).startswith(b"HTTP/1.1 200 ")


async def test_limits_that_are_changed_count_for_what_comes_next(chat, telemetry):
    now = HttpSettings(max_connections=1)
    app = make_api_app(
        chat, lambda: now, GenerationSettings, telemetry, accounts=ScriptedAccounts()
    )
    async with serving(app, lambda: now) as server:
        first = await server.connect()
        await first.send_chat()
        turn = await chat.next_turn()
        now = HttpSettings(max_connections=2, max_body_bytes=50)
        turn.finish()
        await first.read_to_end()

        second, third = await server.connect(), await server.connect()
        await second.send(GET_MODELS)
        alone = await second.read_head()
        await third.send_chat()
        with trio.fail_after(5):  # sooner than an idle connection is closed
            beside = await third.read_head()

    assert alone.startswith(b"HTTP/1.1 200 ")
    assert beside.startswith(b"HTTP/1.1 413 ")


async def _models(server) -> int:
    async with httpx2.AsyncClient(base_url=server.url) as client:
        return (await client.get("/v1/models")).status_code
