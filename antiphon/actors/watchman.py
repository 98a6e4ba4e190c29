"""The watchman: last to start, so first to stop. Its stop is the drain: no new turns, open ones run
to the deadline, what is left then gets its terminal event while HTTP can still deliver it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import structlog
import trio

from antiphon.events import CancelCause
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

_FAREWELL_S = 2.0
"""For cancelled turns to reach their end and for HTTP to write it."""


class Work(Protocol):
    """A kind of work that a drain waits for: sessions, and the responses that they work for."""

    @property
    def open_turns(self) -> int: ...

    def refuse_new_turns(self) -> None: ...

    def cancel_all(self, cause: CancelCause) -> None: ...

    async def wait_idle(self) -> None: ...


class Watchman:
    """`draining` is read by the readiness check; `drain_s` is asked for when the drain begins."""

    def __init__(self, work: Sequence[Work], *, drain_s: Callable[[], float]) -> None:
        self._work = tuple(work)
        self._drain_s = drain_s
        self.draining = False

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        await context.stopping.wait()
        self.draining = True
        for work in self._work:
            work.refuse_new_turns()
        began, drain_s = trio.current_time(), self._drain_s()
        log.info("drain_started", open_turns=self._open_turns, drain_s=drain_s)
        with trio.move_on_after(drain_s):
            await self._wait_idle()
        interrupted = self._open_turns
        if interrupted:
            for work in self._work:
                work.cancel_all(CancelCause.SHUTDOWN)
            with trio.move_on_after(_FAREWELL_S):
                await self._wait_idle()
        log.info(
            "drain_finished",
            interrupted=interrupted,
            orphans=self._open_turns,
            duration_s=round(trio.current_time() - began, 3),
        )

    @property
    def _open_turns(self) -> int:
        """A response and the session that works for it are one turn."""
        return max(work.open_turns for work in self._work)

    async def _wait_idle(self) -> None:
        while self._open_turns:
            for work in self._work:
                await work.wait_idle()
