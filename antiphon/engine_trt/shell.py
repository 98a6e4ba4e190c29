"""The host's one thread and one asyncio loop: it wakes for commands, for news of the engine and for
its clock, and then lets the host runtime take its turn.

Everything that touches the engine happens here: the library is not thread-safe, and wakes only the
loop of its first request.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from antiphon.engine.channel import HostChannel
from antiphon.engine.runtime import HostRuntime
from antiphon.events import HostCommand, HostFrame

TICK_S = 0.05
"""How late a deadline of a request may be noticed."""


class NonBlocking:
    """The host's channel as the runtime wants it, for a thread that must never wait in it."""

    def __init__(self, channel: HostChannel) -> None:
        self._channel = channel

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[HostCommand]:
        del timeout_s
        return self._channel.receive(0.0, also)

    def send(self, frames: list[HostFrame]) -> None:
        self._channel.send(frames)

    def flush(self, timeout_s: float) -> None:
        self._channel.flush(timeout_s)


class Ticking(Protocol):
    """An engine with deadlines; it is asked after each turn whether one has passed."""

    def tick(self) -> None: ...


class Shell:
    """`wake` may be called from anything that runs on the loop; many calls are one turn."""

    def __init__(self, channel: HostChannel) -> None:
        self._channel = channel
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self, runtime: HostRuntime, engine: Ticking) -> None:
        """Serve until Halt. Raises as `HostRuntime.turn` does."""
        loop = asyncio.get_running_loop()
        descriptor = self._channel.descriptor
        loop.add_reader(descriptor, self.wake)
        try:
            while runtime.turn():
                self._watch_backlog()
                try:
                    async with asyncio.timeout(TICK_S):
                        await self._wake.wait()
                except TimeoutError:
                    pass  # nothing happened, and that may be too long for somebody
                self._wake.clear()
                engine.tick()
        finally:
            loop.remove_reader(descriptor)
            loop.remove_writer(descriptor)

    def _watch_backlog(self) -> None:
        """A server that reads slowly is waited for, without asking it in vain."""
        loop = asyncio.get_running_loop()
        if self._channel.backlog_bytes:
            # Receiving in the next turn also writes on what waits.
            loop.add_writer(self._channel.descriptor, self.wake)
        else:
            loop.remove_writer(self._channel.descriptor)
