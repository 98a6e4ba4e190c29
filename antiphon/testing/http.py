"""A served application on loopback, and a client that speaks raw bytes to it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import trio
from quart_trio import QuartTrio

from antiphon.http.server import open_listener, serve_http
from antiphon.settings import HttpSettings
from antiphon.testing.chat import MODEL

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server; `stop` asks it to end in order, `ended` is set when it has."""

    port: int
    stopping: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    clients: "list[RawClient]" = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.stopping.set()

    async def end(self) -> None:
        """Stop in order: when this returns, every request has been logged and counted."""
        self.stop()
        await self.ended.wait()

    async def connect(self) -> "RawClient":
        """A client that is closed with the server, if the test doesn't close it."""
        client = RawClient(await trio.open_tcp_stream("127.0.0.1", self.port))
        self.clients.append(client)
        return client


@asynccontextmanager
async def serving(
    app: QuartTrio, settings: HttpSettings | Callable[[], HttpSettings]
) -> AsyncIterator[Served]:
    """Serve `app` for the length of the block, on a free port."""
    live = settings if callable(settings) else lambda: settings
    listener = open_listener("127.0.0.1", 0)
    served = Served(port=listener.getsockname()[1])
    ready = trio.Event()

    async def run() -> None:
        with served.scope:
            await serve_http(
                app,
                listener=listener,
                settings=live,
                ready=ready.set,
                stopping=served.stopping,
            )
        served.ended.set()

    with listener:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(_give_up)
            await ready.wait()
            yield served
            for client in served.clients:
                client.close()
            nursery.cancel_scope.cancel("the test is over")


async def _give_up() -> None:
    """A test that hangs fails by itself, with real clocks."""
    await trio.sleep(_PATIENCE_S)
    raise AssertionError(f"the server was still in use after {_PATIENCE_S} s")


class RawClient:
    """One TCP connection that sends what it is told and shows what it gets, byte for byte."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.received = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def send_chat(self, *, stream: bool = True, extra_headers: str = "") -> None:
        """A minimal valid chat request."""
        await self.send(chat_request(stream=stream, extra_headers=extra_headers))

    async def read_until(self, marker: bytes) -> bytes:
        """Everything up to and including `marker`; what follows is kept for the next call. Raises
        EOFError."""
        while marker not in self.received:
            data = await self.stream.receive_some(65_536)
            if not data:
                raise EOFError(self.received)
            self.received += data
        end = self.received.index(marker) + len(marker)
        taken, self.received = self.received[:end], self.received[end:]
        return taken

    async def read_head(self) -> bytes:
        """Status line and headers of the next response."""
        return await self.read_until(b"\r\n\r\n")

    async def read_to_end(self) -> bytes:
        """Everything until the server closes; a reset counts as the end."""
        try:
            async for data in self.stream:
                self.received += data
        except trio.BrokenResourceError:
            pass
        taken, self.received = self.received, b""
        return taken

    def close(self) -> None:
        self.stream.socket.close()


def chat_body(**fields: object) -> bytes:
    """The JSON of a minimal valid chat request, with `fields` on top."""
    base = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    return msgspec.json.encode(base | fields)


def chat_request(
    *, stream: bool = True, extra_headers: str = "", body: bytes | None = None
) -> bytes:
    """The bytes of a chat request."""
    content = chat_body(stream=stream) if body is None else body
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\n"
        "Host: test\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n"
        f"{extra_headers}\r\n"
    )
    return head.encode("ascii") + content
