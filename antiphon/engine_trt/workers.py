"""Watches the engine's worker processes: one that dies takes its requests along without a word.

Neither a future nor a queue of the library tells in 1.2 (its issues 10663 and 16338); the kernel
does.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from antiphon.engine_trt.library import plain_reason
from antiphon.engine_trt.processes import command_line, marked

_WORKER = "mpi4py.futures"
"""In the command line of a rank."""


class WorkerWatch:
    """Calls `on_death` once with the number of the first worker that ends."""

    def __init__(self, mark: str, on_death: Callable[[int], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_death = on_death
        self._descriptors: dict[int, int] = {}
        for pid in _workers(list(marked(mark))):
            try:
                descriptor = os.pidfd_open(pid)
            except OSError:
                continue
            self._descriptors[pid] = descriptor
            self._loop.add_reader(descriptor, self._died, pid)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(self._descriptors)

    def close(self) -> None:
        """Idempotent."""
        descriptors, self._descriptors = self._descriptors, {}
        for descriptor in descriptors.values():
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _died(self, pid: int) -> None:
        self.close()
        self._on_death(pid)


def _workers(pids: list[int]) -> list[int]:
    """The ranks; where none is recognised, everybody. Compilers and the like come and go."""
    return [pid for pid in pids if _WORKER in command_line(pid)] or pids


def health_problem(llm: Any) -> str | None:
    """What this version tells of its own state; most tell nothing."""
    check = getattr(llm, "_check_health", None)
    executor = getattr(llm, "_executor", None)
    try:
        if check is not None and check() is False:
            return "the engine says that it is not healthy"
        futures = getattr(executor, "mpi_futures", None) or ()
        if any(future.done() for future in futures):
            return "a worker process has ended"
    except RuntimeError as error:  # EngineDeadError among them
        return plain_reason(error)
    return None
