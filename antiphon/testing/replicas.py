"""A cluster without models: replicas that answer OpenAI requests word by word, in memory or on real
sockets, and can be told to be as odd, slow or dead as real ones."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import h11
import httpx2
import trio

Words = Callable[[dict[str, Any]], Iterable[str]]
"""What answers a request's body, a word a step."""


def four_words(body: dict[str, Any]) -> Iterable[str]:
    return ("one", " two", " three", " four")


def data_line(value: object) -> bytes:
    """One event of a stream."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}\n\n".encode()


def a_chunk(text: str | None = None, *, end: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat completion chunk as OpenAI writes it; `fields` overlay it."""
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    return {"object": "chat.completion.chunk", "choices": [choice], **fields}


def usage_chunk(prompt: int, completion: int, *, cached: int | None = None) -> dict[str, Any]:
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return a_chunk(choices=[], usage=usage)


@dataclass(eq=False)
class ScriptedReplica:
    """One server. `script`, where there is one, is its whole answer, event by event; otherwise it
    says its words, an end, usage and DONE. `refuse` is an answer for every generation."""

    words: Words = four_words
    first_s: float = 0.05
    """Until the first word: a queue and a prefill."""
    step_s: float = 0.01
    owned_by: str = "vllm"
    model: str = "m"
    window: int | None = 4096
    has_health: bool = True
    health: int = 200
    script: Sequence[bytes] | None = None
    refuse: tuple[int, bytes] | None = None
    retry_after: str | None = "1"
    """The advice that comes with a refusal."""
    vision: bool | None = None
    """Whether it says that it sees images, each kind of server in its own way."""
    key: str | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """Of the generations asked for."""
    open: int = 0
    """Connections that are open."""
    closed_early: int = 0
    """Connections that the other side closed before the end of an answer."""

    def __post_init__(self) -> None:
        self._killed = trio.Event()
        self._changed = trio.Event()

    async def until(self, is_so: Callable[["ScriptedReplica"], bool]) -> None:
        """Return when what this replica has seen fulfils a condition."""
        while not is_so(self):
            await self._changed.wait()

    def seen(self, *, opened: int = 0, closed_early: int = 0) -> None:
        """For those who serve it: a connection came or went."""
        self.open += opened
        self.closed_early += closed_early
        self._changed.set()
        self._changed = trio.Event()

    @property
    def is_dead(self) -> bool:
        return self._killed.is_set()

    def kill(self) -> None:
        """As SIGKILL: every connection ends, new ones are refused."""
        self._killed.set()

    def revive(self) -> None:
        self._killed = trio.Event()

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The response, whose body comes in its own time."""
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return httpx2.Response(401, json={"error": {"message": "wrong key", "code": 401}})
        path = request.url.path
        if path.endswith("/models"):
            card = {"id": self.model, "object": "model", "owned_by": self.owned_by}
            if self.window is not None:
                card["max_model_len"] = self.window  # type: ignore[assignment]
            if self.vision is not None and self.owned_by == "antiphon":
                card["vision"] = self.vision  # type: ignore[assignment]
            return httpx2.Response(200, json={"object": "list", "data": [card]})
        if path == "/props" and self.owned_by == "llamacpp":
            return httpx2.Response(200, json={"modalities": {"vision": self.vision}})
        if path == "/get_model_info" and self.owned_by == "sglang":
            return httpx2.Response(200, json={"has_image_understanding": self.vision})
        if path == "/health" and self.has_health:
            return httpx2.Response(self.health, content=b"")
        if not path.endswith("/completions"):
            return httpx2.Response(404, json={"detail": "Not Found"})
        body = json.loads(request.content)
        self.bodies.append(body)
        self.seen()
        if self.refuse is not None:
            status, text = self.refuse
            advice = {} if self.retry_after is None else {"retry-after": self.retry_after}
            return httpx2.Response(status, content=text, headers=advice)
        return httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, stream=_Body(self, body)
        )

    async def parts(self, body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
        """The pieces of a streamed answer. Raises httpx2.ReadError when it is killed."""
        if self.script is not None:
            for part in self.script:
                await self._wait(self.step_s)
                yield part
            return
        yield data_line(a_chunk(choices=[{"delta": {"role": "assistant", "content": ""}}]))
        await self._wait(self.first_s)
        said = 0
        for word in self.words(body):
            if said == body["max_tokens"]:
                break
            said += 1
            yield data_line(a_chunk(word))
            await self._wait(self.step_s)
        yield data_line(a_chunk(end="length" if said == body["max_tokens"] else "stop"))
        yield data_line(usage_chunk(11, said))
        yield data_line("[DONE]")

    async def _wait(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await self._killed.wait()
            raise httpx2.ReadError("connection reset by peer")


class _Body(httpx2.AsyncByteStream):
    def __init__(self, replica: ScriptedReplica, body: dict[str, Any]) -> None:
        self._replica = replica
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._replica.parts(self._body)) as parts:
                async for part in parts:
                    yield part  # noqa: ASYNC119  # its readers close it
        except BaseException:
            self._replica.seen(closed_early=not self._replica.is_dead)
            raise


class _Connection(httpx2.AsyncBaseTransport):
    """One connection, to whichever replica its first request names."""

    def __init__(self, replicas: dict[str, ScriptedReplica]) -> None:
        self._replicas = replicas
        self._replica: ScriptedReplica | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await trio.lowlevel.checkpoint()
        replica = self._replicas.get(request.url.host)
        if replica is None or replica.is_dead:
            raise httpx2.ConnectError("connection refused", request=request)
        self._replica = replica
        replica.seen(opened=1)
        return replica.answer(request)

    async def aclose(self) -> None:
        if self._replica is not None:
            self._replica.seen(opened=-1)
            self._replica = None
        await trio.lowlevel.checkpoint()


@dataclass(eq=False)
class ScriptedCluster:
    """Replicas by host name; `connect` is a `Connect`."""

    replicas: dict[str, ScriptedReplica]

    def connect(self) -> httpx2.AsyncBaseTransport:
        return _Connection(self.replicas)

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://{host}/v1" for host in self.replicas)

    @property
    def open(self) -> int:
        return sum(replica.open for replica in self.replicas.values())


async def serve_replica(replica: ScriptedReplica, nursery: trio.Nursery) -> str:
    """Serve it on a free port of this machine, as long as the nursery; its base URL."""
    listeners = await nursery.start(
        partial(trio.serve_tcp, partial(_serve, replica), 0, host="127.0.0.1")
    )
    port = listeners[0].socket.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


async def _serve(replica: ScriptedReplica, stream: trio.SocketStream) -> None:
    """One request of one connection, over real HTTP/1.1."""
    replica.seen(opened=1)
    connection = h11.Connection(h11.SERVER)
    try:
        request = await _read(connection, stream)
        response = replica.answer(request)
        headers = [*response.headers.raw, (b"connection", b"close")]
        start = h11.Response(status_code=response.status_code, headers=headers)
        await stream.send_all(connection.send(start) or b"")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, replica, stream, nursery.cancel_scope)
            async with aclosing(_parts(response)) as parts:
                async for part in parts:
                    await stream.send_all(connection.send(h11.Data(data=part)) or b"")
            await stream.send_all(connection.send(h11.EndOfMessage()) or b"")
            nursery.cancel_scope.cancel("answered")
    except* (httpx2.ReadError, trio.BrokenResourceError, h11.RemoteProtocolError):
        pass  # it was killed, or the other side is gone
    finally:
        replica.seen(opened=-1)
        await trio.aclose_forcefully(stream)


async def _parts(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Of the body. Left early, it is closed here and not by the garbage collector."""
    if isinstance(response.stream, _Body):
        async with aclosing(aiter(response.stream)) as parts:
            async for part in parts:
                yield part  # noqa: ASYNC119  # its reader closes it
    else:
        yield response.content


async def _watch(
    replica: ScriptedReplica, stream: trio.SocketStream, scope: trio.CancelScope
) -> None:
    """End the answer when the other side closes, as servers do that notice a disconnect."""
    while await stream.receive_some(4096):
        pass
    replica.seen(closed_early=1)
    scope.cancel("the client left")


async def _read(connection: h11.Connection, stream: trio.SocketStream) -> httpx2.Request:
    head: h11.Request | None = None
    body = b""
    while True:
        match connection.next_event():
            case h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65_536))
            case h11.Request() as head:
                pass
            case h11.Data(data=data):
                body += data
            case h11.EndOfMessage():
                assert head is not None
                url = f"http://{dict(head.headers)[b'host'].decode()}{head.target.decode()}"
                return httpx2.Request(
                    head.method.decode(), url, headers=list(head.headers), content=body
                )
            case event:
                raise h11.RemoteProtocolError(f"unexpected {event!r}")
