"""The watchman: last to start, so first to stop. Its stop is the drain: no new turns, open ones run
to the deadline, what is left then gets its terminal event while HTTP can still deliver it."""

import structlog
import trio

from antiphon.actors.sessions.directory import Directory
from antiphon.events import CancelCause
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

_FAREWELL_S = 2.0
"""For cancelled turns to reach their end and for HTTP to write it."""


class Watchman:
    """`draining` is read by the readiness check."""

    def __init__(self, directory: Directory, *, drain_s: float) -> None:
        self._directory = directory
        self._drain_s = drain_s
        self.draining = False

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        await context.stopping.wait()
        self.draining = True
        self._directory.refuse_new_turns()
        began = trio.current_time()
        log.info("drain_started", open_turns=self._directory.open_turns, drain_s=self._drain_s)
        with trio.move_on_after(self._drain_s):
            await self._directory.wait_idle()
        interrupted = self._directory.open_turns
        if interrupted:
            self._directory.cancel_all(CancelCause.SHUTDOWN)
            with trio.move_on_after(_FAREWELL_S):
                await self._directory.wait_idle()
        log.info(
            "drain_finished",
            interrupted=interrupted,
            orphans=self._directory.open_turns,
            duration_s=round(trio.current_time() - began, 3),
        )
