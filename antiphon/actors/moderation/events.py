"""Policy events on their way into the store: written in the background, some at a time, bounded.

A store that is away holds up no turn: what it can't take waits, and what there is no room for is
dropped, counted, and said in the log.
"""

from collections import deque

import structlog
import trio

from antiphon.errors import AntiphonError, StorageFull, StoreUnavailable
from antiphon.storage import StoreAccess
from antiphon.supervision.context import ChildContext
from antiphon.telemetry import Telemetry
from antiphon.verdicts import PolicyEvent

log = structlog.get_logger(__name__)

MOST_WAITING = 4096
_AT_ONCE = 128
_GATHER_S = 0.25
"""So that a busy server writes a few transactions a second, not one a turn."""
_DELAYS_S = (0.5, 1.0, 2.0, 5.0, 10.0)
_LAST_S = 2.0
"""For what waits when the server stops."""


class PolicyEvents:
    """A permanent child, and what others leave with it; what it has survives its incarnations."""

    def __init__(self, store: StoreAccess, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry
        self._waiting: deque[PolicyEvent] = deque()
        self._came = trio.Event()
        self._lost = 0
        """Dropped since that was last in the log."""
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, event: PolicyEvent) -> None:
        """Never blocks, never raises."""
        if len(self._waiting) >= MOST_WAITING:
            self._drop(1)
            self._waiting.popleft()
        self._waiting.append(event)
        self._came.set()

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_on)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("the server stops")
        with trio.move_on_after(_LAST_S):
            while self._waiting:
                if await self._write() is not None:
                    break
        if self._waiting:
            self._drop(len(self._waiting))
            self._waiting.clear()
            self._say_lost()

    async def _write_on(self) -> None:
        failures = 0
        while True:
            await self._came.wait()
            await trio.sleep(_GATHER_S)
            problem = await self._write()
            if problem is None:
                failures = 0
                self._say_lost()
                if not self._waiting:
                    self._came = trio.Event()
                continue
            if not failures:
                log.warning("policy_events_wait", reason=problem, waiting=len(self._waiting))
            await trio.sleep(_DELAYS_S[min(failures, len(_DELAYS_S) - 1)])
            failures += 1

    async def _write(self) -> str | None:
        """The oldest of them; why that couldn't be."""
        batch = tuple(self._waiting[at] for at in range(min(_AT_ONCE, len(self._waiting))))
        try:
            await self._store.run(lambda store: store.add_policy_events(batch))
        except (StoreUnavailable, StorageFull) as error:
            return error.reason
        except AntiphonError as error:
            # It would refuse them again, and hold up all that come after them.
            log.error("policy_events_refused", reason=str(error), events=len(batch))
            self._drop(len(batch))
        for event in batch:
            # Meanwhile the oldest may have made room.
            if self._waiting and self._waiting[0] is event:
                self._waiting.popleft()
        return None

    def _drop(self, events: int) -> None:
        self.dropped += events
        self._lost += events
        self._telemetry.policy_events_dropped(events)

    def _say_lost(self) -> None:
        if self._lost:
            log.warning("policy_events_dropped", events=self._lost)
            self._lost = 0
