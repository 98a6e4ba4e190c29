"""HTTP/1.1 on one connection: hypercorn's H11Protocol, kept free of what we don't serve.

No HTTP/2 and no websockets, so an upgrade is answered like any request (RFC 9110 7.8 allows that)
and the crash of hypercorn #225 has no code to happen in. A pipelined request waits inside h11 while
the reader goes on reading, so that the end of the connection is seen at once.
"""

from itertools import chain

import h11
from hypercorn.events import Closed
from hypercorn.protocol.events import Body, EndBody, Request
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream

from antiphon.http.errors import ErrorReply, error_body
from antiphon.ids import new_request_id

_STATUS_MESSAGES = {
    431: "The request headers are too large.",
    501: "The transfer encoding is not supported.",
    505: "Only HTTP/1.1 and HTTP/1.0 are spoken here.",
}


UPLOAD_PATH = b"/v1/files"
"""The one path whose bodies go to the disk as they come, so that they may be longer."""


class Http1Protocol(H11Protocol):
    """Parses requests and starts one stream for each; its bounds decide who may continue."""

    max_body_bytes: int
    max_upload_bytes: int
    _body_is_refused = False
    _is_paused = False

    @property
    def is_idle(self) -> bool:
        """No request is being answered."""
        return self.stream is None

    @property
    def pipelined_bytes(self) -> int:
        """Bytes of a next request that arrived before this one is answered."""
        return len(self.connection.trailing_data[0]) if self._is_paused else 0

    @property
    def request_is_read(self) -> bool:
        """Nothing that the client sent is left unread, as far as the protocol knows."""
        read = {h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.IDLE}
        return self.connection.their_state in read and not self.connection.trailing_data[0]

    async def resume(self) -> None:
        """Go on with what is buffered, after a response was completed."""
        await self._handle_events()

    async def _handle_events(self) -> None:
        while True:
            if self.connection.they_are_waiting_for_100_continue and not self._body_is_refused:
                await self._send_h11_event(
                    h11.InformationalResponse(
                        status_code=100, headers=self.config.response_headers("h11")
                    )
                )
            try:
                event = self.connection.next_event()
                if isinstance(event, h11.Request):
                    _check_framing(event)
            except h11.RemoteProtocolError as error:
                if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                    await self._send_error_response(error.error_status_hint)
                await self.send(Closed())
                return
            self._is_paused = event is h11.PAUSED
            if isinstance(event, h11.Request):
                await self._create_stream(event)
            elif isinstance(event, h11.Data) and self.stream is not None:
                await self.stream.handle(Body(stream_id=STREAM_ID, data=event.data))
            elif isinstance(event, h11.EndOfMessage) and self.stream is not None:
                await self.stream.handle(EndBody(stream_id=STREAM_ID))
            else:  # needs data, is paused until the answer is sent, or nobody wants the body
                return

    async def _create_stream(self, request: h11.Request) -> None:
        is_upload = request.target.partition(b"?")[0] == UPLOAD_PATH
        longest = self.max_upload_bytes if is_upload else self.max_body_bytes
        self._body_is_refused = _content_length(request) > longest
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        self.keep_alive_requests += 1
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode("ascii"),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )

    async def _send_error_response(self, status_code: int) -> None:
        """Answer what isn't HTTP in the same shape as every other error."""
        message = _STATUS_MESSAGES.get(status_code, "The request is not valid HTTP.")
        body = error_body(
            ErrorReply(status=status_code, message=message, type="invalid_request_error")
        )
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode("ascii")),
            (b"connection", b"close"),
            (b"x-request-id", new_request_id().encode("ascii")),
        ]
        await self._send_h11_event(
            h11.Response(
                status_code=status_code,
                headers=list(chain(headers, self.config.response_headers("h11"))),
            )
        )
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


def _check_framing(request: h11.Request) -> None:
    """Refuse what a proxy in front of us may read as another request than we do, which is how
    requests are smuggled (RFC 9112 6.1, 11.2). Raises h11.RemoteProtocolError."""
    if not request.http_version.startswith(b"1."):
        raise h11.RemoteProtocolError("unknown HTTP version", error_status_hint=505)
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" in names:
        if b"content-length" in names:
            raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
        if request.http_version == b"1.0":
            raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")


def _content_length(request: h11.Request) -> int:
    for name, value in request.headers:
        if name == b"content-length":
            return int(value)
    return 0
