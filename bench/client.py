"""A lean HTTP client for measurements: raw sockets and one selector, so that it costs the machine
as little as it can while it notes when text came."""

import json
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from antiphon.settings import Settings

_RECV = 65_536
_LAST = 4096
"""The last event of a short response is within so many bytes of the end."""
_DONES = (b"data: [DONE]", b"event: response.completed", b"event: response.incomplete")
"""What comes last, of a chat completion and of a response."""
_TEXTS = (b'"content":"', b'"type":"response.output_text.delta"')


@dataclass(slots=True)
class Call:
    """One streamed answer: what was sent, what came, and when its first text came
    (CLOCK_MONOTONIC)."""

    body: bytes
    request_id: str
    path: str = "/v1/chat/completions"
    key: str | None = None
    """The API key it is sent with."""
    first_text_at: float | None = None
    raw: bytearray = field(default_factory=bytearray)
    sock: socket.socket | None = None

    @property
    def status(self) -> int:
        return int(self.raw[9:12]) if len(self.raw) > 12 else 0

    def events(self) -> list[dict[str, Any]]:
        """Every JSON event of the stream, in order."""
        body = dechunked(bytes(self.raw))
        lines = (line for line in body.split(b"\n") if line.startswith(b"data: {"))
        return [json.loads(line[6:]) for line in lines]

    def text(self) -> str:
        """The text of choice 0."""
        return "".join(
            choice["delta"].get("content") or ""
            for event in self.events()
            for choice in event.get("choices", ())
        )

    def completion_tokens(self) -> int:
        """From the usage chunk."""
        return sum(
            event["usage"]["completion_tokens"] for event in self.events() if event.get("usage")
        )


def chat_body(content: str, **fields: Any) -> bytes:
    """A streaming request with a usage chunk; `fields` overlay it."""
    return json.dumps(
        {
            "model": Settings().model,
            "messages": [{"role": "user", "content": content}],
            "stream": True,
            "stream_options": {"include_usage": True},
            **fields,
        }
    ).encode()


def start(address: tuple[str, int], call: Call) -> None:
    """Connect and send the request."""
    head = (
        f"POST {call.path} HTTP/1.1\r\nHost: {address[0]}\r\n"
        f"Content-Type: application/json\r\nX-Request-Id: {call.request_id}\r\n"
        f"{f'Authorization: Bearer {call.key}' + chr(13) + chr(10) if call.key else ''}"
        f"Connection: close\r\nContent-Length: {len(call.body)}\r\n\r\n"
    )
    call.sock = socket.create_connection(address, timeout=10)
    call.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    call.sock.sendall(head.encode() + call.body)
    call.sock.setblocking(False)


def take(call: Call) -> bool:
    """Read what is there; False when the call is over."""
    assert call.sock is not None
    data = call.sock.recv(_RECV)
    call.raw += data
    if call.first_text_at is None and any(text in data for text in _TEXTS):
        call.first_text_at = time.monotonic()
    if data and not any(done in call.raw[-_LAST:] for done in _DONES):
        return True
    call.sock.close()
    return False


def run(address: tuple[str, int], calls: list[Call], *, within_s: float) -> None:
    """Send all calls at once and read them to their ends, or raise TimeoutError."""
    deadline = time.monotonic() + within_s
    with selectors.DefaultSelector() as selector:
        for call in calls:
            start(address, call)
            assert call.sock is not None
            selector.register(call.sock, selectors.EVENT_READ, call)
        while selector.get_map():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(selector.get_map())} streams unfinished")
            for key, _ in selector.select(timeout=1.0):
                if not take(key.data):
                    selector.unregister(key.fileobj)


def dechunked(raw: bytes) -> bytes:
    """The body of an HTTP/1.1 response, chunked or not."""
    head, _, body = raw.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size or b"0", 16)
        parts.append(body[:length])
        body = body[length + 2 :]
    return b"".join(parts)
