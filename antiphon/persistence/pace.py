"""A long removal in transactions that are each as large as what is gone in a moment, on this
machine and as busy as it is: others write in between, and nobody waits for them for long."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from antiphon.persistence.port import Database, Transaction

R = TypeVar("R")

AIM_S = 0.05
LEAST, MOST = 20, 5_000
_FIRST = 500
_SLOWER, _FASTER = 0.25, 2.0
"""How far one step changes the next: a single one says little."""


class Pace:
    """Of one store: what one removal has learnt is good for the next."""

    def __init__(self) -> None:
        self._rows = _FIRST

    @property
    def rows(self) -> int:
        """That the next transaction removes."""
        return min(max(self._rows, LEAST), MOST)

    async def step(self, database: Database, work: Callable[[Transaction, int], Awaitable[R]]) -> R:
        """One transaction. Its time counts from where it has the lock to write: that others had it
        before is no reason to take less."""
        rows, began = self.rows, 0.0

        async def timed(tx: Transaction) -> R:
            nonlocal began
            began = time.monotonic()
            return await work(tx, rows)

        result = await database.write(timed)
        self.took(time.monotonic() - began)
        return result

    def took(self, seconds: float) -> None:
        """The last one, of `rows`."""
        change = _FASTER if seconds <= 0 else min(max(AIM_S / seconds, _SLOWER), _FASTER)
        self._rows = round(self.rows * change)
