import socket
import threading
from collections.abc import Iterator

import pytest

from antiphon.engine.channel import BACKLOG_LIMIT, HostChannel, ServerGone
from antiphon.engine.wire import encode_frame, frame_decoder
from antiphon.errors import HostProtocolError
from antiphon.events import Fault, Halt

Ends = tuple[socket.socket, HostChannel]
LONG = Fault(code="x", detail="y" * 100_000)


@pytest.fixture(name="ends")
def _ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, HostChannel(theirs)


def test_commands_are_taken_without_waiting(ends: Ends):
    server, channel = ends

    assert channel.receive(0) == []
    server.sendall(encode_frame(Halt()) * 3)

    assert channel.receive(0) == [Halt(), Halt(), Halt()]


def test_the_end_of_the_server_is_seen(ends: Ends):
    server, channel = ends
    server.close()

    with pytest.raises(ServerGone):
        channel.receive(0)


def test_another_descriptor_wakes_it(ends: Ends):
    _, channel = ends
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"x")

        assert channel.receive(60, [theirs.fileno()]) == []


def test_a_malformed_command_is_a_breach(ends: Ends):
    server, channel = ends
    server.sendall(b"\x00\x00\x00\x01\xc1")

    with pytest.raises(HostProtocolError):
        channel.receive(0)


def test_a_slow_server_does_not_stop_the_host_at_once(ends: Ends):
    server, channel = ends
    frames = BACKLOG_LIMIT // 100_000

    for _ in range(frames):
        channel.send([LONG])
    reader = threading.Thread(target=_read_frames, args=(server, frames))
    reader.start()
    while reader.is_alive():
        channel.flush(1)

    reader.join()


def test_a_server_that_leaves_while_the_host_waits_to_write_is_seen(ends: Ends):
    server, channel = ends
    timer = threading.Timer(0.05, server.shutdown, [socket.SHUT_RDWR])
    timer.start()

    with pytest.raises(ServerGone):
        channel.send([LONG] * (BACKLOG_LIMIT // 100_000 + 10))

    timer.join()


def test_commands_that_come_while_the_host_waits_to_write_are_kept(ends: Ends):
    server, channel = ends
    server.sendall(encode_frame(Halt()))
    frames = BACKLOG_LIMIT // 100_000 + 10
    reader = threading.Thread(target=_read_frames, args=(server, frames))
    reader.start()

    channel.send([LONG] * frames)
    while reader.is_alive():
        channel.flush(1)

    reader.join()
    assert channel.receive(0) == [Halt()]


def _read_frames(server: socket.socket, count: int) -> None:
    decoder = frame_decoder()
    seen = 0
    while seen < count:
        seen += len(decoder.feed(server.recv(65_536)))
