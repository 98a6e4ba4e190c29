"""A request body that is taken as it comes. What nobody has taken stays with the client: an upload
fills no memory, whatever its size."""

from collections.abc import Generator
from typing import Any, cast

import trio
from quart.wrappers import Request
from quart_trio.wrappers.request import TrioBody, TrioRequest
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from antiphon.errors import PayloadTooLarge

FRAME_BYTES = 64 * 1024
"""What the form of an upload may have besides its file."""
_UNREAD_BYTES = 256 * 1024
"""A few reads from a socket: less would stall the sender, more gains nothing."""
_SLOWEST_BYTES_S = 16 * 1024
"""A sender that stays below holds a connection and a file open for nothing."""


class PacedBody(TrioBody):
    """Quart's body, whose writer waits for its reader, unless that wants the body whole."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        # Quart would drop everything that arrives for a body that is announced as too long, before
        # the handler had a chance to say that it isn't.
        super().__init__(None, max_content_length)
        self._announced = expected_content_length or 0
        self._is_free = False
        self._is_wanted = True
        self._taken = trio.Event()

    def __await__(self) -> Generator[Any, None, Any]:
        if self._max_content_length is not None and self._announced > self._max_content_length:
            raise RequestEntityTooLarge
        self._free()
        return (yield from super().__await__())

    async def __anext__(self) -> bytes:
        data = await super().__anext__()
        self._taken.set()
        return data

    def append(self, data: bytes) -> None:
        if self._is_wanted:
            super().append(data)

    def stream(self, longest: int) -> None:
        """From now on the body is read piece by piece, up to another bound. Raises PayloadTooLarge
        when the client announces more."""
        if self._announced > longest:
            raise PayloadTooLarge(longest)
        self._max_content_length = None

    def give_up(self) -> None:
        """Nobody will read what still comes: it is dropped, so that the connection can end."""
        self._is_wanted = False
        self.clear()
        self._free()

    async def room(self) -> None:
        """Wait until enough was taken."""
        while not self._is_free and len(self._data) > _UNREAD_BYTES:
            self._taken = trio.Event()
            await self._taken.wait()

    def _free(self) -> None:
        self._is_free = True
        self._taken.set()


class PacedRequest(TrioRequest):
    """A request with such a body."""

    body_class: type[TrioBody] = PacedBody


class BodyStream:
    """Reads one body in pieces, bounded in size and in time."""

    def __init__(self, request: Request, longest: int, patience_s: float) -> None:
        self._body = cast("PacedBody", request.body)
        self._body.stream(longest)
        self._longest = longest
        self._deadline = trio.current_time() + patience_s
        self._seen = 0

    async def next_piece(self) -> bytes | None:
        """None at the end. Raises PayloadTooLarge, RequestTimeout."""
        with trio.move_on_at(self._deadline):
            piece = await anext(self._body, None)
            if piece is not None:
                self._seen += len(piece)
                self._deadline += len(piece) / _SLOWEST_BYTES_S
            if self._seen > self._longest:  # a chunked body, whose length nobody announced
                raise PayloadTooLarge(self._longest)
            return piece
        raise RequestTimeout
