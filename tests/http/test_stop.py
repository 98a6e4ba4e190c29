"""How a server stops, in order, and what the next incarnation finds.

Idle timeouts are long here, so that nothing ends by itself.
"""

import trio

from antiphon.http.app import make_api_app
from antiphon.http.server import open_listener, serve_http
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.testing.accounts import ScriptedAccounts

GET_MODELS = b"GET /v1/models HTTP/1.1\r\nHost: test\r\n\r\n"


async def test_an_idle_connection_does_not_delay_the_stop(server):
    client = await server.connect()
    await client.send(GET_MODELS)
    await client.read_until(b"}]}")

    with trio.fail_after(2):
        await server.end()

    assert await client.read_to_end() == b""


async def test_a_connection_that_never_said_anything_does_not_delay_the_stop(server):
    client = await server.connect()
    other = await server.connect()
    await other.send(GET_MODELS)
    await other.read_until(b"}]}")  # so the first is surely accepted

    with trio.fail_after(2):
        await server.end()

    assert await client.read_to_end() == b""


async def test_a_kept_alive_connection_ends_with_the_answer_that_was_due(server, chat):
    client = await server.connect()
    await client.send_chat(stream=False)
    turn = await chat.next_turn()
    await turn.waiting.wait()

    server.stop()
    turn.say("Hello")
    turn.finish()
    with trio.fail_after(2):
        answer = await client.read_to_end()
        await server.ended.wait()

    assert b"Hello" in answer
    assert turn.cancels == []


async def test_an_open_stream_runs_on_to_its_end_after_the_stop_began(server, chat):
    client = await server.connect()
    await client.send_chat()
    turn = await chat.next_turn()
    turn.say("Hello")
    await client.read_until(b"Hello")

    server.stop()
    turn.say(" world")
    turn.finish()
    rest = await client.read_to_end()
    await server.ended.wait()

    assert b" world" in rest
    assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert turn.cancels == []


async def test_the_next_incarnation_serves_what_connected_in_between(chat, telemetry):
    settings = HttpSettings()
    app = make_api_app(
        chat, lambda: settings, GenerationSettings, telemetry, accounts=ScriptedAccounts()
    )
    with open_listener("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        for _ in range(2):
            early = await trio.open_tcp_stream(*address)
            await early.send_all(GET_MODELS)
            ready, stopping = trio.Event(), trio.Event()
            async with trio.open_nursery() as nursery:

                async def serve(ready=ready, stopping=stopping):
                    await serve_http(
                        app,
                        listener=listener,
                        settings=lambda: settings,
                        ready=ready.set,
                        stopping=stopping,
                    )

                nursery.start_soon(serve)
                assert (await early.receive_some(12)) == b"HTTP/1.1 200"
                stopping.set()
                await early.aclose()
