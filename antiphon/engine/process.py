"""The server's end of an engine host: starts the child process, speaks frames with it, reaps it.

The hot path is one socket read for many frames. Nothing here knows what an engine does.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from typing import IO

import structlog
import trio

from antiphon import faults
from antiphon.engine.config import HostConfig, encode_config
from antiphon.engine.stderr import forward_lines
from antiphon.engine.wire import GARBAGE, FrameDecoder, encode_frame, frame_decoder
from antiphon.errors import HostLost, HostStartFailed
from antiphon.events import Halt, HostCommand, HostFrame
from antiphon.fault_plan import Site

log = structlog.get_logger(__name__)

_READ_BYTES = 65_536
_REAP_S = 5.0
"""A killed process is reaped in milliseconds, unless the kernel is stuck in it."""
_OBITUARY_S = 1.0
"""How long a process that closed its socket may take to leave its exit status."""


class HostLauncher:
    """Starts hosts of one configuration: an EngineLauncher. `module` is what the child runs, and
    `environment` is added to what it inherits."""

    def __init__(
        self,
        config: HostConfig,
        *,
        module: str = "antiphon.engine.host",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._module = module
        self._environment = environment or {}

    async def launch(self) -> "HostLink":
        """Start a host process; it reports Ready as its first frame. Raises HostStartFailed."""
        await trio.lowlevel.checkpoint()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process, stderr = start_host(self._module, self._config, theirs, self._environment)
        except OSError as error:
            ours.close()
            raise HostStartFailed(f"cannot start {sys.executable}: {error.strerror}") from error
        finally:
            theirs.close()
        log.info("host_process_started", host_pid=process.pid, engine=self._config.engine)
        return HostLink(process, stderr, ours)


class HostLink:
    """One running host process: an EngineLink. Its owner always calls `aclose`, also after
    `kill`."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", stderr: IO[bytes], connection: socket.socket
    ) -> None:
        self._process = process
        self._socket = trio.socket.from_stdlib_socket(connection)
        self._decoder: FrameDecoder[HostFrame] = frame_decoder()
        self._frames: deque[HostFrame] = deque()
        self._outgoing = bytearray()
        self._sending = trio.Lock()
        threading.Thread(
            target=forward_lines,
            args=(stderr, process.pid),
            name=f"host-{process.pid}-stderr",
            daemon=True,
        ).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, command: HostCommand) -> None:
        """Raises HostLost when the host is gone. A cancelled send still goes out, with the next."""
        # Kept in a buffer, since cancelling a half-written frame would ruin all that follow.
        garbled = faults.strikes(Site.LINK_SEND_GARBLED)
        self._outgoing += GARBAGE if garbled else encode_frame(command)
        async with self._sending:
            while self._outgoing:
                try:
                    sent = await self._socket.send(bytes(self._outgoing[:_READ_BYTES]))
                except (OSError, trio.ClosedResourceError) as error:
                    raise HostLost(await self._obituary()) from error
                del self._outgoing[:sent]

    async def receive(self) -> HostFrame:
        """The next frame. Raises HostLost at the end of the stream, HostProtocolError on a
        malformed frame."""
        await trio.lowlevel.checkpoint()
        while not self._frames:
            try:
                data = await self._socket.recv(_READ_BYTES)
            except (OSError, trio.ClosedResourceError) as error:
                raise HostLost(await self._obituary()) from error
            if not data:
                raise HostLost(await self._obituary())
            self._frames.extend(self._decoder.feed(data))
        return self._frames.popleft()

    async def aclose(self, *, grace_s: float) -> None:
        """Ask the host to end, then kill its process group after the grace. Never raises;
        idempotent."""
        # Shielded, since a driver that is being cancelled must still leave no process behind.
        if self._process.returncode is None:
            with trio.move_on_after(grace_s, shield=True):
                try:
                    await self.send(Halt())
                except HostLost:
                    pass  # it is ending already
                await _exited(self._process)
        self.kill()
        with trio.move_on_after(_REAP_S, shield=True):
            await _exited(self._process)
        self._socket.close()
        await trio.lowlevel.checkpoint_if_cancelled()

    def kill(self) -> None:
        """SIGKILL the host's process group now. Idempotent."""
        # Once the leader is reaped its number may belong to somebody else.
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself and waits to be reaped

    async def _obituary(self) -> str:
        """How the process ended, for the HostLost that everybody will read."""
        with trio.move_on_after(_OBITUARY_S):
            await _exited(self._process)
        match self._process.returncode:
            case None:
                return "closed its connection"
            case status if status < 0:
                return f"killed by signal {-status}"
            case status:
                return f"exited with status {status}"


def start_host(
    module: str,
    config: HostConfig,
    connection: socket.socket,
    environment: Mapping[str, str],
) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
    """The process, which inherits `connection`, and its stderr. Raises OSError."""
    # Not trio.lowlevel.open_process: that forks in a worker thread, and the host asks the kernel to
    # kill it when the *thread* that made it ends (prctl(2), PR_SET_PDEATHSIG), 10 s later.
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", module),
            *("--fd", str(connection.fileno())),
            *("--config", encode_config(config)),
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


async def _exited(process: "subprocess.Popen[bytes]") -> None:
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
