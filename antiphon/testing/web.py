"""A client that chats over HTTP with a server in the same process and in virtual time: its socket
is a local one, where what is written can be read at once, so that no clock has to wait for it."""

import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import trio

from antiphon.errors import AntiphonError
from antiphon.http.app import make_api_app
from antiphon.http.server import serve_http
from antiphon.ports import Chat
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.telemetry import Telemetry
from antiphon.testing.accounts import ScriptedAccounts
from antiphon.testing.http import RawClient
from antiphon.turn_events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    Usage,
)

_DONE = "[DONE]"


@dataclass(eq=False)
class WebError(AntiphonError):
    """An error object as a client reads it."""

    code: str
    sentence: ClassVar[str] = "{code}"


class ConnectionCut(AntiphonError):
    """The connection ended before the answer did."""


@asynccontextmanager
async def local_web(
    chat: Chat, settings: HttpSettings, telemetry: Telemetry
) -> AsyncIterator[Path]:
    """Serve `chat` at a local socket for the length of the block."""
    app = make_api_app(
        chat, lambda: settings, GenerationSettings, telemetry, accounts=ScriptedAccounts()
    )
    ready, stopping = trio.Event(), trio.Event()

    async def run() -> None:
        await serve_http(
            app, listener=listener, settings=lambda: settings, ready=ready.set, stopping=stopping
        )

    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        place = Path(folder) / "api"
        listener.bind(str(place))
        listener.listen()
        listener.setblocking(False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await ready.wait()
            yield place
            stopping.set()


@asynccontextmanager
async def connected(place: Path) -> AsyncIterator[RawClient]:
    """A connection, which is gone afterwards whatever state it is in."""
    client = RawClient(await trio.open_unix_socket(place))
    try:
        yield client
    finally:
        client.close()


async def send_chat(client: RawClient, name: str, body: dict[str, Any]) -> None:
    """Post the request. Raises ConnectionCut."""
    content = msgspec.json.encode(body)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\n"
        f"Host: test\r\nX-Request-Id: {name}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    try:
        await client.send(head.encode("ascii") + content)
    except trio.BrokenResourceError as error:
        raise ConnectionCut from error


async def read_answer(
    client: RawClient, tell: Callable[[TurnEvent], None], *, is_stream: bool
) -> None:
    """Tell the answer as the events that its turn had, the terminal one last. Raises
    ConnectionCut."""
    try:
        head = (await client.read_head()).lower()
        if is_stream and head.startswith(b"http/1.1 200 "):
            await _read_stream(client, tell)
        else:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(client.received) < length:
                await _more(client)
            _tell_whole(msgspec.json.decode(client.received[:length]), tell)
    except (EOFError, trio.BrokenResourceError) as error:
        raise ConnectionCut from error


async def _read_stream(client: RawClient, tell: Callable[[TurnEvent], None]) -> None:
    ending: TurnEnded | TurnFailed | None = None
    while (data := await _next_data(client)) != _DONE:
        chunk = msgspec.json.decode(data)
        if "error" in chunk:
            ending = _failure(chunk)
            continue
        if chunk["usage"] is not None:
            ending = TurnEnded(usage=_usage(chunk))
        for choice in chunk["choices"]:
            if text := choice["delta"].get("content"):
                tell(Delta(choice=choice["index"], text=text))
            if reason := choice["finish_reason"]:
                tell(ChoiceEnded(choice=choice["index"], finish_reason=FinishReason(reason)))
    assert ending is not None, "[DONE] without usage or an error"
    tell(ending)


async def _more(client: RawClient) -> None:
    data = await client.stream.receive_some(65_536)
    if not data:
        raise EOFError
    client.received += data


async def _next_data(client: RawClient) -> str:
    """The next `data:` line of a chunked event stream; chunk sizes and comments are passed over."""
    while True:
        line = (await client.read_until(b"\n")).strip()
        if line.startswith(b"data: "):
            return line.removeprefix(b"data: ").decode()


def _tell_whole(answer: dict[str, Any], tell: Callable[[TurnEvent], None]) -> None:
    if "error" in answer:
        tell(_failure(answer))
        return
    for choice in answer["choices"]:
        index, reason = choice["index"], FinishReason(choice["finish_reason"])
        tell(Delta(choice=index, text=choice["message"]["content"]))
        tell(ChoiceEnded(choice=index, finish_reason=reason))
    tell(TurnEnded(usage=_usage(answer)))


def _usage(answer: dict[str, Any]) -> Usage:
    counts = answer["usage"]
    return Usage(
        prompt_tokens=counts["prompt_tokens"], completion_tokens=counts["completion_tokens"]
    )


def _failure(answer: dict[str, Any]) -> TurnFailed:
    error = answer["error"]
    return TurnFailed(error=WebError(error["code"] or error["type"]))
