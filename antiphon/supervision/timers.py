"""When a supervisor must look again: the times its core asked for, earliest first."""

import heapq
import math
from collections.abc import Callable, Iterator

import trio


class Timers:
    """Many setters, one sleeper. A time is not taken back: it is skipped if nobody is `armed`."""

    def __init__(self, armed: Callable[[str], bool]) -> None:
        self._armed = armed
        self._heap: list[tuple[float, str]] = []
        self._asleep_until = -math.inf
        self._alarm = trio.Event()

    def set(self, due: float, id: str | None) -> None:
        """`id` None is the supervisor's own time, which always counts."""
        heapq.heappush(self._heap, (due, id or ""))
        if due < self._asleep_until:
            self._alarm.set()

    def wake(self) -> None:
        self._alarm.set()

    async def sleep(self) -> None:
        """Until the earliest time, a `wake`, or a time set meanwhile that is earlier."""
        self._asleep_until = self._earliest()
        with trio.move_on_at(self._asleep_until):
            await self._alarm.wait()
        self._asleep_until = -math.inf
        self._alarm = trio.Event()

    def due(self) -> Iterator[str | None]:
        """Whose time has come; consumed one by one, since each may change who is armed."""
        now = trio.current_time()
        while self._heap and self._heap[0][0] <= now:
            _, id = heapq.heappop(self._heap)
            if not id or self._armed(id):
                yield id or None

    def _earliest(self) -> float:
        # Most times are init timeouts of children that became ready long ago: they are dropped
        # here, without a wake-up each.
        heap = self._heap
        while heap and heap[0][1] and not self._armed(heap[0][1]):
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf
