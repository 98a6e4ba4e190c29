"""The server's end of a child's socket: what is said goes out whole, in order, and at once."""

import io
import socket
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
import trio

from antiphon.processes.frames import FrameDecoder, encode
from antiphon.processes.link import Contract, Process, ProcessLink

CONTRACT: Contract[str, str] = Contract(
    child="child",
    stderr_event="child_stderr",
    encode=lambda said: encode(said, ValueError),
    decoder=lambda: FrameDecoder(msgspec.msgpack.Decoder(str), ValueError),
    halt="halt",
    lost=ConnectionError,
)
LONG = "x" * 2_000_000
"""More than a socket takes at once."""


@pytest.fixture
def ends():
    """The link, and the socket that its child has."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    process = cast("Process", SimpleNamespace(pid=1, returncode=0, poll=lambda: 0))
    with ours, theirs:
        yield ProcessLink(CONTRACT, process, io.BytesIO(), ours), theirs


def read(theirs: socket.socket, count: int) -> list[str]:
    decoder = CONTRACT.decoder()
    said: list[str] = []
    while len(said) < count:
        said += decoder.feed(theirs.recv(65_536))
    return said


async def test_the_child_has_it_before_any_other_task_runs(ends):
    link, theirs = ends
    theirs.setblocking(False)

    sending = link.send("hello").__await__()
    sending.send(None)  # as far as it goes without waiting

    assert read(theirs, 1) == ["hello"]
    sending.close()


async def test_what_there_is_no_room_for_goes_out_in_order(ends):
    link, theirs = ends
    said: list[str] = []

    async def listen() -> None:
        said.extend(await trio.to_thread.run_sync(read, theirs, 4))

    async with trio.open_nursery() as nursery:
        for each in (LONG, "second", LONG, "fourth"):
            nursery.start_soon(link.send, each)
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(listen)

    assert said == [LONG, "second", LONG, "fourth"]


async def test_what_was_cancelled_halfway_goes_out_with_the_next(ends):
    link, theirs = ends
    with trio.CancelScope() as scope:
        scope.cancel()
        await link.send(LONG)
    said: list[str] = []

    async def listen() -> None:
        said.extend(await trio.to_thread.run_sync(read, theirs, 2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await link.send("second")

    assert said == [LONG, "second"]


async def test_a_child_that_is_gone_is_lost(ends):
    link, theirs = ends
    theirs.close()

    with pytest.raises(ConnectionError, match="exited with status 0"):
        await link.send("hello")
