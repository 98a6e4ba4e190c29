"""What turns hold of their callers' limits, given back exactly once whatever ends them.

Sessions come, crash and are killed; this outlives them all.
"""

from collections.abc import Callable
from dataclasses import replace

import trio

from antiphon.events import Turn
from antiphon.ids import ModelName
from antiphon.ports import Charge, Meter
from antiphon.supervision.context import ChildContext
from antiphon.turn_events import Usage

_LAST_S = 3.0
"""At a stop, for the charges of turns that have just ended: what is left lapses with its lease."""


class Tab:
    """One turn's: at most one charge at a time. `used` says what the turn has cost by now, None for
    nothing; it is asked when the tab is closed."""

    def __init__(self) -> None:
        self.charge: Charge | None = None
        self.used: Callable[[], Usage | None] = lambda: None


class Charges:
    """The one place that talks to the meter; without a meter everything is free. Its child closes
    the tabs: a session that has ended can't wait for that."""

    def __init__(self, meter: Meter | None = None) -> None:
        self._meter = meter
        self._nursery: trio.Nursery | None = None
        self._owed: list[tuple[Charge, Usage | None, trio.Event]] = []
        self._closing = 0
        self._idle = trio.Event()

    async def reserve(
        self, tab: Tab, turn: Turn, *, model: ModelName, prompt_tokens: int, max_tokens: int
    ) -> None:
        """Hold what the turn may cost at most. Raises RateLimited, KeySuspended, StoreError."""
        if self._meter is not None:
            placed = replace(turn, model=model)
            tab.charge = await self._meter.reserve(
                placed, prompt_tokens=prompt_tokens, max_tokens=max_tokens
            )

    async def settle(self, tab: Tab) -> None:
        """Close the tab and return once that is done."""
        await self.close(tab).wait()

    def close(self, tab: Tab) -> trio.Event:
        """Settle what the turn has cost, or release it; once, and never blocks. The event says when
        it is done."""
        charge, tab.charge = tab.charge, None
        done = trio.Event()
        if charge is None:
            done.set()
        else:
            self._owed.append((charge, tab.used(), done))
            self._begin()
        return done

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._begin()
                context.ready()
                await context.stopping.wait()
                with trio.move_on_after(_LAST_S):
                    while self._closing:
                        await self._idle.wait()
                nursery.cancel_scope.cancel("the server stops")
        finally:
            self._nursery = None

    def _begin(self) -> None:
        """All that is owed, once somebody runs to pay it."""
        while self._nursery is not None and self._owed:
            self._closing += 1
            self._nursery.start_soon(self._close, *self._owed.pop(0))

    async def _close(self, charge: Charge, usage: Usage | None, done: trio.Event) -> None:
        is_cut = True
        try:
            await (charge.release() if usage is None else charge.settle(usage))
            is_cut = False
        finally:
            self._closing -= 1
            self._idle.set()
            self._idle = trio.Event()
            if is_cut:
                self._owed.append((charge, usage, done))  # for the next incarnation
            else:
                done.set()
