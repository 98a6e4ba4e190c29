"""The host's end of the socket: commands of the engine contract in, its frames out in one write a
step, with the sites at which a fault plan may spoil either."""

import socket
from collections.abc import Sequence

from antiphon import faults
from antiphon.engine.wire import command_decoder, encode_frame
from antiphon.events import HostCommand, HostFrame
from antiphon.fault_plan import Site
from antiphon.processes.channel import BACKLOG_LIMIT, Channel, ServerGone
from antiphon.processes.frames import GARBAGE

__all__ = ["BACKLOG_LIMIT", "HostChannel", "ServerGone"]


class HostChannel:
    """A socket to the server, and a few other descriptors that may wake the host."""

    def __init__(self, connection: socket.socket) -> None:
        self._channel = Channel(connection, command_decoder())

    @property
    def descriptor(self) -> int:
        """For an event loop to watch."""
        return self._channel.descriptor

    @property
    def backlog_bytes(self) -> int:
        """What waits for the server to read; `flush` goes on with it."""
        return self._channel.backlog_bytes

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[HostCommand]:
        """Commands that came; waits up to `timeout_s` when there are none, or until one of the
        descriptors `also` is readable. Raises ServerGone, HostProtocolError."""
        faults.maybe(Site.WIRE_READ)
        return self._channel.receive(timeout_s, also)

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Queue the frames and write what the socket takes. Raises ServerGone."""
        faults.maybe(Site.WIRE_WRITE)
        data = bytearray()
        for frame in frames:
            garbled = faults.strikes(Site.WIRE_WRITE_GARBLED)
            data += GARBAGE if garbled else encode_frame(frame)
        if faults.strikes(Site.WIRE_WRITE_CUT):
            self._channel.cut(data)
        self._channel.send(data)

    def flush(self, timeout_s: float) -> None:
        """Write what is queued as far as the server takes it in time. Raises ServerGone."""
        self._channel.flush(timeout_s)
