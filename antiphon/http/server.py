"""One HTTP listener as a supervised child: it borrows a listening socket that its supervisor owns.

The tree owns the server, so there is no lifespan: nothing starts or stops inside the application.
"""

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from quart_trio import QuartTrio

from antiphon import faults
from antiphon.fault_plan import Site
from antiphon.http.body_stream import FRAME_BYTES
from antiphon.http.connection import Connection, Limits
from antiphon.settings import HttpSettings

log = structlog.get_logger(__name__)

_BACKLOG = 512
_ACCEPT_PAUSE_S = 0.1
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}


def open_listener(host: str, port: int) -> socket.socket:
    """Bind and listen; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


@dataclass(slots=True)
class _Serving:
    """The connections of one incarnation of a server."""

    app: ASGIWrapper
    config: Config
    context: WorkerContext
    settings: Callable[[], HttpSettings]
    connections: set[Connection] = field(default_factory=set)
    places_taken: int = 0
    place_freed: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        """Accept for ever. At `max_connections`, further ones wait in the kernel's backlog; that
        it was raised is seen when the next one ends."""
        while True:
            while self.places_taken >= self.settings().max_connections:
                await self.place_freed.park()
            stream = await _accept_one(listener)
            self.places_taken += 1
            nursery.start_soon(self._run, stream)

    async def _run(self, stream: trio.SocketStream) -> None:
        settings = self.settings()
        _bound_unacknowledged_data(stream, settings.write_timeout_s)
        limits = Limits(
            idle_timeout_s=settings.idle_timeout_s,
            write_timeout_s=settings.write_timeout_s,
            max_body_bytes=settings.max_body_bytes,
            max_upload_bytes=settings.max_file_bytes + FRAME_BYTES,
        )
        connection = Connection(self.app, self.config, self.context, limits, stream)
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)
            self.places_taken -= 1
            self.place_freed.unpark()


async def serve_http(
    app: QuartTrio,
    *,
    listener: socket.socket,
    settings: Callable[[], HttpSettings],
    ready: Callable[[], None],
    stopping: trio.Event,
) -> None:
    """Serve until `stopping` is set and every open request has ended; cancel to end at once.

    `ready` is called once, when connections are being accepted. The listener stays open for the
    next incarnation. `settings` are asked for at each new connection.
    """
    serving = _Serving(
        app=ASGIWrapper(app),
        config=_hypercorn_config(),
        context=WorkerContext(None),
        settings=settings,
    )
    borrowed = trio.SocketListener(trio.socket.from_stdlib_socket(listener.dup()))
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            try:
                accepting.start_soon(partial(serving.accept, borrowed, connections))
                ready()
                await stopping.wait()
            finally:
                accepting.cancel_scope.cancel("the server is stopping")
                borrowed.socket.close()
        await serving.context.terminated.set()
        for connection in tuple(serving.connections):
            connection.stop()


async def _accept_one(listener: trio.SocketListener) -> trio.SocketStream:
    while True:
        try:
            if faults.strikes(Site.HTTP_ACCEPT):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return await listener.accept()
        except OSError as error:
            if error.errno not in _OUT_OF_RESOURCES:
                raise  # the listener is broken: let the supervisor decide
            log.warning("accept_paused", reason=error.strerror, pause_s=_ACCEPT_PAUSE_S)
            await trio.sleep(_ACCEPT_PAUSE_S)


def _bound_unacknowledged_data(stream: trio.SocketStream, write_timeout_s: float) -> None:
    """Let the kernel drop a peer that acknowledges nothing, which no write of ours would notice.

    Twice the write deadline, so that ours decides when both apply.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT") and stream.socket.family != socket.AF_UNIX:
        with suppress(OSError):  # the client is gone already
            stream.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(write_timeout_s * 2000)
            )


def _hypercorn_config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = None  # errors are logged at our own boundary, with the request's id
    config.include_server_header = False
    config.keep_alive_max_requests = 2**62
    return config
