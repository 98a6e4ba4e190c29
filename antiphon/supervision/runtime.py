"""How Trio itself is doing: tasks, threads, and how long the loop takes to come round.

Measured passively, twice a round, so that it costs nothing worth measuring and sends nobody a
message. Real time on purpose, whatever clock Trio runs on: it is real work that makes others wait.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import trio

_WINDOW_S = 10.0
"""How far back the recent lag looks: at least this, at most twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeStatistics:
    """The process's event loop at one moment."""

    tasks: int
    runnable: int
    threads: int
    """All threads of the process."""
    worker_threads: int
    worker_threads_limit: float
    """Of Trio's default limiter."""
    waiting_for_thread: int
    loop_lag_s: float
    """The longest time a task that could run may have waited for its turn, lately."""
    loop_lag_max_s: float
    """The same, since the measuring began."""


class LoopLag(trio.abc.Instrument):
    """Times each pass of the loop: from one look at I/O and timers to the next."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._since = self._window_since = clock()
        self._running = True
        self._recent = self._before = self._longest = 0.0

    def before_io_wait(self, timeout: float) -> None:
        self._note(self._clock())
        self._running = False

    def after_io_wait(self, timeout: float) -> None:
        self._since = self._clock()
        self._running = True

    def lag_s(self) -> tuple[float, float]:
        """The longest pass lately, and ever; the one under way counts."""
        if self._running:
            now = self._clock()
            self._note(now)
        return max(self._recent, self._before), self._longest

    def _note(self, now: float) -> None:
        if now - self._window_since >= _WINDOW_S:
            quiet = now - self._window_since >= 2 * _WINDOW_S
            self._before = 0.0 if quiet else self._recent
            self._recent = 0.0
            self._window_since = now
        took = now - self._since
        if took > self._recent:
            self._recent = took
            if took > self._longest:
                self._longest = took


@contextmanager
def measured_loop_lag() -> Iterator[LoopLag]:
    """Measure while the block runs."""
    lag = LoopLag()
    trio.lowlevel.add_instrument(lag)
    try:
        yield lag
    finally:
        trio.lowlevel.remove_instrument(lag)


def runtime_statistics(lag: LoopLag) -> RuntimeStatistics:
    """A passive look; call it within `trio.run`."""
    loop = trio.lowlevel.current_statistics()
    limiter = trio.to_thread.current_default_thread_limiter().statistics()
    recent, longest = lag.lag_s()
    return RuntimeStatistics(
        tasks=loop.tasks_living,
        runnable=loop.tasks_runnable,
        threads=threading.active_count(),
        worker_threads=limiter.borrowed_tokens,
        worker_threads_limit=limiter.total_tokens,
        waiting_for_thread=limiter.tasks_waiting,
        loop_lag_s=recent,
        loop_lag_max_s=longest,
    )
