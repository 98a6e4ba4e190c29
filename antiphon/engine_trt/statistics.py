"""What the engine says of its iterations, once a second: KV blocks, and that it moves at all.

Somebody has to read it: the library's own queue has no bound. A call lasts as long as its timeout,
so that is tiny.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog

from antiphon.engine_trt.library import plain_reason

log = structlog.get_logger(__name__)

_TIMEOUT_S = 0.005
_BOUND_S = 2.0
"""Of one call, whatever the library does."""


@dataclass(frozen=True, slots=True)
class KvBlocks:
    total: int
    used: int
    block_size: int


class Statistics:
    """The latest of each figure; None while the engine has told none."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self._task: asyncio.Task[None] | None = None
        self.blocks: KvBlocks | None = None
        self.iteration: int = 0
        self.failing = False

    def poll(self) -> None:
        """Ask, unless it is being asked."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self.read())
            self._task.add_done_callback(self._read)

    async def read(self) -> None:
        """Take in all that is queued."""
        async with asyncio.timeout(_BOUND_S):
            async for entry in self._llm.get_stats_async(timeout=_TIMEOUT_S):
                self._take(entry)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _take(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            return
        self.iteration = int(entry.get("iter", self.iteration))
        cache = entry.get("kvCacheStats") or {}
        if cache.get("maxNumBlocks"):
            self.blocks = KvBlocks(
                total=int(cache["maxNumBlocks"]),
                used=int(cache.get("usedNumBlocks", 0)),
                block_size=int(cache.get("tokensPerBlock", 32)),
            )

    def _read(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if task.cancelled():
            return
        error = task.exception()
        self.failing = error is not None
        if error is not None:
            # An empty queue may raise as well. What matters shows in the requests.
            log.debug("engine_statistics_failed", reason=plain_reason(error))
