"""The ASGI side of a request: two tasks, one that answers and one that watches for the client to
leave, inside the exchange that gives everything back.

Quart's own version lets a turn leak when the client leaves before the first byte, cuts streams at
RESPONSE_TIMEOUT, and drops real errors that travel with a cancellation; this one does none of them.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

import structlog
import trio
from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPResponseBodyEvent,
    HTTPResponseStartEvent,
    HTTPScope,
)
from quart.utils import encode_headers
from quart.wrappers import Request, Response
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers import TrioResponse
from werkzeug.wrappers import Response as WerkzeugResponse

from antiphon.http.body_stream import PacedBody
from antiphon.http.errors import describe_error
from antiphon.http.exchange import Exchange

if TYPE_CHECKING:
    from antiphon.http.boundary import BoundedApp

log = structlog.get_logger(__name__)

Write = Callable[[bytes], Awaitable[None]]


class PumpedResponse(TrioResponse):
    """A response whose body is written by a function instead of drawn from an iterator.

    No generator means that no scope is ever left open across a `yield`, and no code that only runs
    once somebody iterates.
    """

    def __init__(self, pump: Callable[[Write], Awaitable[None]], headers: dict[str, str]) -> None:
        super().__init__(b"", headers=headers)
        del self.headers["content-length"]  # unknown: the body is chunked
        self.pump = pump


class ExchangeConnection(TrioASGIHTTPConnection):
    """Runs one request in its exchange."""

    def __init__(self, app: "BoundedApp", scope: HTTPScope) -> None:
        super().__init__(app, scope)
        self._app = app

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        exchange = Exchange.begin(self.scope, self._app.telemetry, is_quiet=self._app.is_quiet)
        try:
            self._app.bound_bodies()
            request = self._create_request_from_scope(send)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, nursery, exchange, request, receive)
                nursery.start_soon(self._answer, nursery, exchange, request, send)
        finally:
            exchange.close()

    async def _watch(
        self,
        nursery: trio.Nursery,
        exchange: Exchange,
        request: Request,
        receive: ASGIReceiveCallable,
    ) -> None:
        """Collect the body, then wait for the client to leave. A task of its own, since polling
        in a scope that is already cancelled never sees the disconnect (hypercorn #210)."""
        while True:
            message = await receive()
            if message["type"] == "http.request":
                request.body.append(message.get("body", b""))
                await cast("PacedBody", request.body).room()
                if not message.get("more_body", False):
                    request.body.set_complete()
                    exchange.request_is_read = True
            elif message["type"] == "http.disconnect":
                exchange.client_left()
                nursery.cancel_scope.cancel("the client left")
                return

    async def _answer(
        self,
        nursery: trio.Nursery,
        exchange: Exchange,
        request: Request,
        send: ASGISendCallable,
    ) -> None:
        response = await self._app.handle_request(request)
        cast("PacedBody", request.body).give_up()
        exchange.status = response.status_code
        for name, value in self._app.answer_headers(exchange):
            response.headers[name] = value
        if not exchange.request_is_read:  # the rest of it stands where a next request would
            response.headers["connection"] = "close"
        await send(
            cast(
                "HTTPResponseStartEvent",
                {
                    "type": "http.response.start",
                    "status": response.status_code,
                    "headers": encode_headers(response.headers),
                },
            )
        )

        async def write(data: bytes) -> None:
            await send(
                cast(
                    "HTTPResponseBodyEvent",
                    {"type": "http.response.body", "body": data, "more_body": True},
                )
            )

        last = b""
        if isinstance(response, PumpedResponse):
            if not await self._pump(response, write, exchange):
                nursery.cancel_scope.cancel("the stream broke")
                return
        else:
            last = await _whole_body(response)
        exchange.is_answered = True
        await send(
            cast(
                "HTTPResponseBodyEvent",
                {"type": "http.response.body", "body": last, "more_body": False},
            )
        )
        nursery.cancel_scope.cancel("the answer is complete")

    async def _pump(self, response: PumpedResponse, write: Write, exchange: Exchange) -> bool:
        """Write the body. False: it broke in a way it could not tell the client, so the connection
        ends without the last chunk, which clients see as an error, never as a success."""
        try:
            await response.pump(write)
        except Exception as error:  # the HTTP boundary
            self._app.log_failure(exchange, error, describe_error(error))
            exchange.broke()
            return False
        return True


async def _whole_body(response: Response | WerkzeugResponse) -> bytes:
    if isinstance(response, WerkzeugResponse):
        return response.get_data()
    return await response.get_data(as_text=False)
