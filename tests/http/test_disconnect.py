"""Wherever a client leaves, the turn it asked for is given back exactly once."""

import pytest
import structlog
import trio

from antiphon.events import CancelCause
from antiphon.http.app import make_api_app
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.chat import ScriptedChat
from antiphon.testing.http import chat_body, chat_request, serving
from antiphon.testing.telemetry import RecordingTelemetry


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_while_the_turn_waits_cancels_it_once(server, chat, stream):
    client = await server.connect()
    await client.send_chat(stream=stream)
    turn = await chat.next_turn()
    await turn.waiting.wait()

    client.close()
    await turn.cancelled.wait()
    await server.end()

    assert turn.cancels == [CancelCause.DISCONNECT]


async def test_leaving_in_the_middle_of_a_stream_cancels_it_once(server, chat, telemetry):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.say("Hello")
    await client.read_until(b"Hello")

    client.close()
    await turn.cancelled.wait()
    await server.end()

    assert turn.cancels == [CancelCause.DISCONNECT]
    assert telemetry.named("stream_disconnected") == [()]
    assert len(telemetry.named("sse_opened")) == len(telemetry.named("sse_closed")) == 1


async def test_leaving_before_the_turn_opens_leaves_nothing_open(server, chat):
    chat.is_holding_turns = True
    client = await server.connect()
    await client.send_chat()
    await chat.opening.wait()

    client.close()
    await server.end()

    assert chat.turns == []


async def test_a_turn_that_ended_is_not_cancelled(server, chat, telemetry):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.say("Hello")
    turn.finish()

    answer = await client.read_to_end()
    await server.end()

    assert answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert turn.cancels == []
    assert telemetry.named("stream_disconnected") == []


async def test_leaving_after_the_last_event_was_written_cancels_nothing(server, chat):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.finish()
    await client.read_until(b"[DONE]")

    client.close()
    await server.end()

    assert turn.cancels == []


async def test_half_closing_counts_as_leaving(server, chat):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()

    await client.stream.send_eof()
    await turn.cancelled.wait()

    assert turn.cancels == [CancelCause.DISCONNECT]


async def test_a_pipelined_request_does_not_hide_that_the_client_left(server, chat):
    client = await server.connect()
    await client.send(chat_request() + chat_request())
    turn = await chat.next_turn()
    await turn.waiting.wait()

    client.close()
    await turn.cancelled.wait()  # no heartbeat is due for seconds

    assert turn.cancels == [CancelCause.DISCONNECT]


async def test_ending_the_server_at_once_cancels_open_turns_and_cuts_their_streams(server, chat):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.say("Hello")
    await client.read_until(b"Hello")

    server.scope.cancel()
    rest = await client.read_to_end()

    assert turn.cancels == [CancelCause.SHUTDOWN]
    assert not rest.endswith(b"0\r\n\r\n")  # a clean end would look like success


async def test_leaving_between_the_handlers_return_and_the_first_byte_cancels_the_turn():
    chat = ScriptedChat(text=["never sent"])
    app = make_api_app(
        chat, HttpSettings, GenerationSettings, RecordingTelemetry(), accounts=ScriptedAccounts()
    )
    body = {"type": "http.request", "body": chat_body(stream=True), "more_body": False}
    client_side, receive = trio.open_memory_channel(2)
    client_side.send_nowait(body)
    sent = []

    async def send(message):
        sent.append(message["type"])
        client_side.send_nowait({"type": "http.disconnect"})
        await trio.sleep_forever()

    chat.text = None
    with receive, client_side:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app, _scope(), receive.receive, send)
            turn = await chat.next_turn()
            turn.say("Hello")

    assert sent == ["http.response.start"]
    assert turn.cancels == [CancelCause.DISCONNECT]


async def test_a_clean_up_error_on_disconnect_is_logged_although_the_cancellation_wins(
    server, chat, monkeypatch
):
    opening = trio.Event()

    async def clean_up_badly():
        opening.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise RuntimeError("a clean-up bug") from None

    async def open_turn(turn):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(clean_up_badly)

    monkeypatch.setattr(chat, "open_turn", open_turn)
    with structlog.testing.capture_logs() as logs:
        client = await server.connect()
        await client.send_chat()
        await opening.wait()
        client.close()
        await server.end()

    (failed,) = [entry for entry in logs if entry["event"] == "request_failed"]
    assert "a clean-up bug" in str(failed["exc_info"].exceptions)


@pytest.fixture
def stalled_settings():
    return HttpSettings(write_timeout_s=0.3, heartbeat_s=60)


async def test_a_reader_that_stops_reading_is_dropped_and_the_server_still_stops(stalled_settings):
    chat = ScriptedChat()
    app = make_api_app(
        chat,
        lambda: stalled_settings,
        GenerationSettings,
        RecordingTelemetry(),
        accounts=ScriptedAccounts(),
    )
    async with serving(app, stalled_settings) as server:
        client = await server.connect()
        await client.send_chat()
        turn = await chat.next_turn()
        turn.say(*["x" * 1_000_000] * 32)  # more than both kernels' buffers hold

        await turn.cancelled.wait()
        await server.end()

        assert turn.cancels == [CancelCause.SLOW_READER]


def _scope():
    return {
        "type": "http",
        "http_version": "1.1",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "method": "POST",
        "scheme": "http",
        "path": "/v1/chat/completions",
        "raw_path": b"/v1/chat/completions",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"test"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
        "extensions": {},
    }
