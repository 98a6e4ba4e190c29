"""One accepted TCP connection: reads, writes with a deadline, and never takes the server with it.

It stands in for hypercorn's TCPServer, whose write has no deadline (a reader that stops reading
makes the server unstoppable) and whose errors leave the connection's task (hypercorn #225). There
is no timer task: patience is the deadline of the read that is waiting.
"""

import math
import os
import socket
import struct
from dataclasses import dataclass

import structlog
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState
from hypercorn.utils import parse_socket_addr

from antiphon import faults
from antiphon.fault_plan import Site
from antiphon.http.protocol import Http1Protocol

log = structlog.get_logger(__name__)

_READ_BYTES = 65_536
_WRITE_BYTES = 65_536
"""The write deadline holds for each piece of this size: a slow reader that reads is kept."""
_MAX_PIPELINED_BYTES = 65_536
_TELL_S = 1.0
_LINGER_S = 3.0
_LINGER_BYTES = 64 * 1024 * 1024
"""How much of an unwanted body is read and dropped before the close; closing with unread data makes
the kernel send a reset that destroys our answer on its way (RFC 9112 9.6)."""

CONNECTION_KEY = "antiphon.connection"
"""Where the ASGI scope's `state` holds the connection's `Facts`."""


@dataclass(slots=True)
class Facts:
    """What an HTTP exchange may know about its connection."""

    reader_was_too_slow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The patience of a connection, from HttpSettings."""

    idle_timeout_s: float
    write_timeout_s: float
    max_body_bytes: int
    max_upload_bytes: int


class Connection:
    """Runs one connection from accept to close; `stop` ends it when its request is answered."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        limits: Limits,
        stream: trio.SocketStream,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._limits = limits
        self._stream = stream
        self._facts = Facts()
        self._send_lock = trio.Lock()
        self._protocol: Http1Protocol | None = None
        self._patience = trio.CancelScope()
        self._idle_since = trio.current_time()
        self._resume_is_due = False
        self._is_closing = False
        self._closing_deadline = math.inf

    async def run(self) -> None:
        """Returns when the connection is closed, whatever happened on it; raises only Cancelled."""
        peer = self._stream.socket
        try:
            client = parse_socket_addr(peer.family, peer.getpeername())
            server = parse_socket_addr(peer.family, peer.getsockname())
            async with TaskGroup() as task_group:
                self._protocol = self._make_protocol(task_group, client, server)
                await self._read(self._protocol)
        except BaseExceptionGroup as group:
            crashes, rest = group.split(Exception)
            if crashes is not None:
                log.error("connection_crashed", exc_info=crashes)
            if rest is not None:
                raise rest from None
        except OSError:
            pass  # the client was gone before its address could be read
        finally:
            self._stream.socket.close()

    def stop(self) -> None:
        """Take no further request: close now if idle, after the answer otherwise."""
        if self._protocol is None or self._protocol.is_idle:
            self._is_closing = True
            self._closing_deadline = -math.inf
            self._patience.cancel("the server is stopping")

    def _make_protocol(
        self,
        task_group: TaskGroup,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
    ) -> Http1Protocol:
        protocol = Http1Protocol(
            self._app,
            self._config,
            self._context,
            task_group,
            ConnectionState({CONNECTION_KEY: self._facts}),
            False,
            client,
            server,
            self._send,
        )
        protocol.max_body_bytes = self._limits.max_body_bytes
        protocol.max_upload_bytes = self._limits.max_upload_bytes
        return protocol

    async def _read(self, protocol: Http1Protocol) -> None:
        dropped_bytes = 0
        try:
            while True:
                if self._resume_is_due and not self._is_closing:
                    self._resume_is_due = False
                    await protocol.resume()
                self._patience = trio.CancelScope(deadline=self._read_deadline(protocol))
                data: bytes | bytearray | None = None
                with self._patience:
                    if protocol.pipelined_bytes > _MAX_PIPELINED_BYTES:
                        await trio.sleep_forever()  # until the answer is out and it is their turn
                    data = await self._stream.receive_some(_READ_BYTES)
                if data is None:
                    if trio.current_time() >= self._read_deadline(protocol):
                        return  # idle, or the client didn't close after we did
                elif not data:
                    if not self._is_closing:
                        await protocol.handle(RawData(b""))
                    return  # a half-closed connection counts as left: nobody waits for the answer
                elif self._is_closing:
                    dropped_bytes += len(data)
                    if dropped_bytes > _LINGER_BYTES:
                        return
                elif faults.strikes(Site.HTTP_READ_DROP):
                    await self._drop()
                    return
                else:
                    await protocol.handle(RawData(bytes(data)))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            with trio.move_on_after(_TELL_S, shield=True):  # waits only if the app is stuck
                await protocol.handle(Closed())

    def _read_deadline(self, protocol: Http1Protocol) -> float:
        if self._is_closing:
            return self._closing_deadline
        if protocol.is_idle:
            return self._idle_since + self._limits.idle_timeout_s
        return math.inf

    async def _send(self, event: Event) -> None:
        if isinstance(event, RawData):
            await self._write(event.data)
        elif isinstance(event, Closed):
            await self._close_after_answer()
        elif isinstance(event, Updated) and event.idle:
            self._idle_since = trio.current_time()
            self._resume_is_due = True
            self._patience.cancel("the answer is complete")

    async def _write(self, data: bytes) -> None:
        try:
            self._send_lock.acquire_nowait()  # no checkpoint on the common path
        except trio.WouldBlock:
            await self._send_lock.acquire()
        try:
            if faults.strikes(Site.HTTP_WRITE_DROP):
                await self._drop()
                return
            is_stalled = faults.strikes(Site.HTTP_WRITE_STALL)
            if not is_stalled:
                data = data[self._write_now(data) :]
            for start in range(0, len(data), _WRITE_BYTES):
                # Shielded, since half a chunk would corrupt the stream of a cancelled answer. A
                # plain scope: fail_after's generator costs as much as the send itself.
                deadline = trio.current_time() + self._limits.write_timeout_s
                with trio.CancelScope(deadline=deadline, shield=True) as patience:
                    if is_stalled:
                        await trio.sleep_forever()
                    await self._stream.send_all(data[start : start + _WRITE_BYTES])
                if patience.cancelled_caught:
                    self._facts.reader_was_too_slow = True
                    log.info("slow_reader_dropped", write_timeout_s=self._limits.write_timeout_s)
                    await self._drop()
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await self._drop()
        finally:
            self._send_lock.release()

    def _write_now(self, data: bytes) -> int:
        """Bytes that fit the kernel's buffer at once. Nearly every event of a stream does, and
        going through Trio's send for it would cost five times the system call."""
        try:
            return os.write(self._stream.socket.fileno(), data)
        except OSError:
            return 0  # full, or broken: the waiting way finds out which

    async def _drop(self) -> None:
        """Close with a reset, so that the kernel frees what the client never read."""
        if self._stream.socket.fileno() >= 0:
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._stream.socket.close()
        if self._protocol is not None:
            await self._protocol.handle(Closed())

    async def _close_after_answer(self) -> None:
        """Our side is done. What the client still sends is read and dropped for a while."""
        protocol = self._protocol
        if self._is_closing or protocol is None:
            return
        self._is_closing = True
        if protocol.request_is_read:
            self._closing_deadline = -math.inf
            self._patience.cancel("the connection is complete")
        else:
            self._closing_deadline = trio.current_time() + _LINGER_S
            self._patience.cancel("lingering")
            try:
                self._stream.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # already gone
        await protocol.handle(Closed())
