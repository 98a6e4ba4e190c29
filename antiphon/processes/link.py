"""The server's end of a child process: starts it, speaks frames with it, reaps it.

The hot path is one socket read for many frames. Nothing here knows what the child does.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Generic, TypeVar

import trio

from antiphon.processes.frames import FrameDecoder
from antiphon.processes.stderr import forward_lines

_READ_BYTES = 65_536
_REAP_S = 5.0
"""A killed process is reaped in milliseconds, unless the kernel is stuck in it."""
_OBITUARY_S = 1.0
"""How long a process that closed its socket may take to leave its exit status."""

C = TypeVar("C")
F = TypeVar("F")

Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract(Generic[C, F]):
    """What is said between the server and one kind of child."""

    child: str
    """What this kind is called in logs."""
    stderr_event: str
    """The event of a line on its stderr that is none of its own log's."""
    encode: Callable[[C], bytes]
    decoder: Callable[[], FrameDecoder[F]]
    halt: C
    """Asks the child to end in order."""
    lost: type[Exception]
    """What `send` and `receive` raise once the child is gone, made from how it ended."""


class ProcessLink(Generic[C, F]):
    """One running child process. Its owner always calls `aclose`, also after `kill`."""

    def __init__(
        self,
        contract: Contract[C, F],
        process: Process,
        stderr: IO[bytes],
        connection: socket.socket,
    ) -> None:
        self._contract = contract
        self._process = process
        self._connection = connection
        self._socket = trio.socket.from_stdlib_socket(connection)
        self._decoder = contract.decoder()
        self._frames: deque[F] = deque()
        self._outgoing = bytearray()
        self._sending = trio.Lock()
        threading.Thread(
            target=forward_lines,
            args=(stderr, process.pid, contract.child, contract.stderr_event),
            name=f"{contract.child}-{process.pid}-stderr",
            daemon=True,
        ).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """How the process ended: its exit status, or less than 0 for the signal that killed it;
        None while it runs, as far as is known."""
        return self._process.returncode

    async def send(self, command: C) -> None:
        """Raises what says that the child is gone. A cancelled send still goes out, with the
        next."""
        # Kept in a buffer, since cancelling a half-written frame would ruin all that follow.
        is_next = not self._outgoing
        self._outgoing += self._contract.encode(command)
        if is_next:
            # Nearly always there is room, and then the child may begin at once, and not only once
            # all tasks have run that are due.
            self._send_now()
            if not self._outgoing:
                await trio.lowlevel.checkpoint()
                return
        async with self._sending:
            while self._outgoing:
                try:
                    sent = await self._socket.send(bytes(self._outgoing[:_READ_BYTES]))
                except (OSError, trio.ClosedResourceError) as error:
                    raise self._contract.lost(await self._obituary()) from error
                del self._outgoing[:sent]

    def _send_now(self) -> None:
        """As much as there is room for; whatever is wrong, the next attempt says."""
        try:
            del self._outgoing[: self._connection.send(self._outgoing)]
        except OSError:
            pass

    async def receive(self) -> F:
        """The next frame. Raises what says that the child is gone, at the end of the stream, and
        what the decoder raises."""
        await trio.lowlevel.checkpoint()
        while not self._frames:
            try:
                data = await self._socket.recv(_READ_BYTES)
            except (OSError, trio.ClosedResourceError) as error:
                raise self._contract.lost(await self._obituary()) from error
            if not data:
                raise self._contract.lost(await self._obituary())
            self._frames.extend(self._decoder.feed(data))
        return self._frames.popleft()

    async def aclose(self, *, grace_s: float) -> None:
        """Ask the child to end, then kill its process group after the grace. Never raises;
        idempotent."""
        # Shielded, since an owner that is being cancelled must still leave no process behind.
        if self._process.returncode is None:
            with trio.move_on_after(grace_s, shield=True):
                try:
                    await self.send(self._contract.halt)
                except self._contract.lost:
                    pass  # it is ending already
                await _exited(self._process)
        self.kill()
        with trio.move_on_after(_REAP_S, shield=True):
            await _exited(self._process)
        self._socket.close()
        await trio.lowlevel.checkpoint_if_cancelled()

    def kill(self) -> None:
        """SIGKILL the child's process group now. Idempotent."""
        # Once the leader is reaped its number may belong to somebody else.
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself and waits to be reaped

    async def _obituary(self) -> str:
        """How the process ended, for the error that everybody will read."""
        with trio.move_on_after(_OBITUARY_S):
            await _exited(self._process)
        match self._process.returncode:
            case None:
                return "closed its connection"
            case status if status < 0:
                return f"killed by signal {-status}"
            case status:
                return f"exited with status {status}"


def launch(
    contract: Contract[C, F], module: str, config: str, environment: Mapping[str, str]
) -> ProcessLink[C, F]:
    """Start `python -m module --fd N --config CONFIG` at the other end of a socket. Raises
    OSError."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    try:
        process, stderr = start_process(module, config, theirs, environment)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ProcessLink(contract, process, stderr, ours)


def start_process(
    module: str, config: str, connection: socket.socket, environment: Mapping[str, str]
) -> tuple[Process, IO[bytes]]:
    """The process, which inherits `connection`, and its stderr. Raises OSError."""
    # Not trio.lowlevel.open_process: that forks in a worker thread, and the child asks the kernel
    # to kill it when the *thread* that made it ends (prctl(2), PR_SET_PDEATHSIG), 10 s later.
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", module),
            *("--fd", str(connection.fileno())),
            *("--config", config),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(connection.fileno(),),
        # Its own session: Ctrl-C goes to the whole terminal group, and stopping is ours to order.
        start_new_session=True,
        # All it needs to know is in its configuration; the server's secrets are none of it.
        env={key: value for key, value in os.environ.items() if not key.startswith("ANTIPHON_")}
        | dict(environment),
    )
    assert process.stderr is not None
    return process, process.stderr


async def _exited(process: Process) -> None:
    """Wait for the end and reap it."""
    if process.poll() is not None:
        await trio.lowlevel.checkpoint()
        return
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or an old kernel
        await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        return
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    process.wait()
