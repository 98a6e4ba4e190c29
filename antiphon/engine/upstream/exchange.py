"""One request to one replica over a connection of its own: httpx2, its errors told as Trouble.

A connection is used once. So a failed connect means that nothing was begun, and closing the socket
cancels this request and touches no other; the handshake that it costs is nothing beside a prefill.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any

import httpx2
import msgspec
import trio

from antiphon.engine.upstream.refusals import refusal
from antiphon.engine.upstream.trouble import Kind, Trouble

Connect = Callable[[], httpx2.AsyncBaseTransport]

_LONGEST_REFUSAL = 65_536
_REFUSAL_S = 5.0
"""What a body of an error may take, once its status is known."""
_CLOSE_S = 2.0


def connector() -> Connect:
    """Real connections, TLS by the system's certificates. Proxies are not looked for: the
    environment is nobody's to read but the settings'."""
    context = ssl.create_default_context()
    return lambda: httpx2.AsyncHTTPTransport(verify=context, trust_env=False)


class Exchange:
    """To be used in an `async with` block, at whose end the socket is closed, also when the task is
    being cancelled."""

    def __init__(
        self,
        connect: Connect,
        url: str,
        headers: Mapping[str, str],
        *,
        connect_s: float,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        self._transport = connect()
        timeouts = {"connect": connect_s, "read": None, "write": None, "pool": None}
        self._request = httpx2.Request(
            "GET" if body is None else "POST",
            url,
            headers={
                "accept-encoding": "identity",
                "connection": "close",
                **({} if body is None else {"content-type": "application/json"}),
                **headers,
            },
            content=None if body is None else msgspec.json.encode(body),
            extensions={"timeout": timeouts},
        )
        self._body: AsyncIterator[bytes] | None = None
        self.is_json = False

    async def __aenter__(self) -> "Exchange":
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with trio.move_on_after(_CLOSE_S, shield=True):
            try:
                await self._unwind()
                await self._transport.aclose()
            except httpx2.HTTPError:
                pass  # it is closed, which is all that matters

    async def open(self, patience_s: float) -> None:
        """Send the request and wait for a 200 within `patience_s`. Raises Trouble."""
        with trio.move_on_after(patience_s) as patience:
            try:
                response = await self._transport.handle_async_request(self._request)
            except httpx2.HTTPError as error:
                raise _trouble(error) from error
        if patience.cancelled_caught:
            raise Trouble(Kind.SILENT, f"no answer for {patience_s:g} s")
        self._body = aiter(response.stream)  # type: ignore[arg-type]
        if response.status_code != 200:
            body = await self.read(_LONGEST_REFUSAL, _REFUSAL_S, whole=False)
            raise refusal(response.status_code, body, response.headers.get("retry-after"))
        self.is_json = response.headers.get("content-type", "").startswith("application/json")

    async def receive(self, patience_s: float) -> bytes | None:
        """The next bytes of the body, None at its end. Raises Trouble."""
        assert self._body is not None
        with trio.move_on_after(patience_s) as patience:
            try:
                return await anext(self._body, None)
            except httpx2.HTTPError as error:
                raise _trouble(error) from error
        if patience.cancelled_caught:
            raise Trouble(Kind.SILENT, f"nothing more for {patience_s:g} s")
        raise AssertionError("a scope that neither ended nor was cancelled")

    async def read(self, longest: int, patience_s: float, *, whole: bool = True) -> bytes:
        """The body, or, unless it must be `whole`, what there is of it in time. Raises Trouble."""
        data = b""
        deadline = trio.current_time() + patience_s
        while len(data) <= longest:
            try:
                more = await self.receive(max(0.0, deadline - trio.current_time()))
            except Trouble:
                if whole:
                    raise
                return data
            if more is None:
                return data
            data += more
        if whole:
            raise Trouble(Kind.BROKEN, f"an answer of more than {longest} bytes")
        return data

    async def _unwind(self) -> None:
        """End the body's generators from within: one that is only dropped is closed when the
        collector finds it, and Trio warns of that."""
        if self._body is None:
            return
        with trio.CancelScope() as scope:
            scope.cancel("the exchange is over")
            while await anext(self._body, None) is not None:
                pass


def _trouble(error: httpx2.HTTPError) -> Trouble:
    fact = f"{type(error).__name__}: {error}"
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return Trouble(Kind.UNREACHABLE, fact)
        case httpx2.TimeoutException():
            return Trouble(Kind.SILENT, fact)
        case httpx2.NetworkError() | httpx2.RemoteProtocolError():
            return Trouble(Kind.LOST, fact)
        case _:
            return Trouble(Kind.BROKEN, fact)
