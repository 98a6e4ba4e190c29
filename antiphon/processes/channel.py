"""The child's end of the socket: commands in without blocking, frames out in one write.

A server that reads slowly is waited for, but its end is seen even then. Nothing here is async: a
child process has one thread and no event loop.
"""

import select
import socket
from collections.abc import Sequence
from typing import Generic, NoReturn, TypeVar

from antiphon.processes.frames import FrameDecoder

BACKLOG_LIMIT = 1024 * 1024
"""Bytes that may wait for the server, tens of seconds of text, before the child waits as well."""

_READ_BYTES = 65_536
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL

C = TypeVar("C")


class ServerGone(Exception):
    """The server closed its end or died."""


class Channel(Generic[C]):
    """A socket to the server, and a few other descriptors that may wake the child."""

    def __init__(self, connection: socket.socket, decoder: FrameDecoder[C]) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._descriptor = connection.fileno()
        self._decoder = decoder
        self._commands: list[C] = []
        self._backlog = bytearray()

    @property
    def descriptor(self) -> int:
        """For an event loop to watch."""
        return self._descriptor

    @property
    def backlog_bytes(self) -> int:
        """What waits for the server to read; `flush` goes on with it."""
        return len(self._backlog)

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[C]:
        """Commands that came; waits up to `timeout_s` when there are none, or until one of the
        descriptors `also` is readable. Raises ServerGone, and what the decoder raises."""
        if not self._commands:
            self._poll(timeout_s, also)
        commands, self._commands = self._commands, []
        return commands

    def send(self, frames: bytes | bytearray) -> None:
        """Queue encoded frames and write what the socket takes. Raises ServerGone."""
        self._backlog += frames
        self._write()
        while len(self._backlog) > BACKLOG_LIMIT:
            self._poll(None, ())

    def flush(self, timeout_s: float) -> None:
        """Write what is queued as far as the server takes it in time. Raises ServerGone."""
        if self._backlog:
            self._poll(timeout_s, ())

    def cut(self, frames: bytes | bytearray) -> NoReturn:
        """Die in the middle of the last frame, as a process that is killed while it writes: for
        fault plans. Raises ServerGone."""
        self._backlog += frames[:-1]
        self._write()
        self._socket.close()
        raise ServerGone

    def _poll(self, timeout_s: float | None, also: Sequence[int]) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN | (select.POLLOUT if self._backlog else 0))
        for descriptor in also:
            poll.register(descriptor, select.POLLIN)
        for descriptor, events in poll.poll(None if timeout_s is None else timeout_s * 1000):
            if descriptor != self._descriptor:
                continue
            if events & (select.POLLIN | _GONE):
                self._read()
            if events & select.POLLOUT:
                self._write()

    def _read(self) -> None:
        while True:
            try:
                data = self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                raise ServerGone from error
            if not data:
                raise ServerGone
            self._commands.extend(self._decoder.feed(data))
            if len(data) < _READ_BYTES:
                return

    def _write(self) -> None:
        if not self._backlog:
            return
        try:
            sent = self._socket.send(self._backlog)
        except BlockingIOError:
            return
        except OSError as error:
            raise ServerGone from error
        del self._backlog[:sent]
