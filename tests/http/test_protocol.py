"""The protocol's own small rules, without a socket."""

import trio
from hypercorn.config import Config
from hypercorn.events import RawData
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from antiphon.http.protocol import Http1Protocol

REQUEST = b"GET /v1/models HTTP/1.1\r\nHost: test\r\n\r\n"


async def test_a_pipelined_request_waits_and_is_counted():
    async def app(scope, receive, send, sync_spawn, call_soon):
        await trio.sleep_forever()

    async def send(event):
        pass

    with trio.CancelScope() as scope:
        async with TaskGroup() as tasks:
            protocol = Http1Protocol(
                *(app, Config(), WorkerContext(None), tasks, ConnectionState({})),
                *(False, None, None, send),
            )
            protocol.max_body_bytes = 1000
            await protocol.handle(RawData(REQUEST))
            assert protocol.pipelined_bytes == 0

            await protocol.handle(RawData(REQUEST + b"x" * 50))

            assert protocol.pipelined_bytes == len(REQUEST) + 50
            assert not protocol.is_idle
            assert not protocol.request_is_read
            scope.cancel()
