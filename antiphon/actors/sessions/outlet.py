"""The reading end of a turn: what the session has to say, merged while the reader is behind.

The session writes and never waits for a client; the HTTP handler reads. What can pile up is bounded
by the turn's own longest answer: one Delta a choice, its calls, and the ends.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import trio

from antiphon.events import CancelCause
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import (
    ChoiceEnded,
    Cited,
    Delta,
    Refused,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnPlaced,
)

_Later = (
    Cited | CallStarted | CallDelta | CallEnded | Refused | ChoiceEnded | TurnEnded | TurnFailed
)


class Outlet:
    """One writer, one reader. `on_cancel` is called at most once and must not block."""

    def __init__(self, on_cancel: Callable[[CancelCause], None]) -> None:
        self._on_cancel = on_cancel
        self._placed: TurnPlaced | None = None
        self._deltas: dict[int, Delta] = {}
        self._later: deque[_Later] = deque()
        self._wake = trio.Event()
        self._ended = False
        self._cancelled = False

    def put(self, event: TurnEvent) -> None:
        """Append an event; what comes after the terminal one is dropped, as a late step's text."""
        if self._ended:
            return
        match event:
            case TurnPlaced():
                self._placed = event
            case Delta():
                waiting = self._deltas.get(event.choice)
                self._deltas[event.choice] = event if waiting is None else _merged(waiting, event)
            case CallDelta():
                self._add(event)
            case Cited() | CallStarted() | CallEnded() | Refused() | ChoiceEnded():
                self._later.append(event)
            case TurnEnded() | TurnFailed():
                self._later.append(event)
                self._ended = True
            case _:
                assert_never(event)
        self._wake.set()

    async def next_event(self) -> TurnEvent:
        """The next event; waits for one. Nothing follows TurnEnded or TurnFailed.

        All text leaves before any citation, call or end: a choice's calls come after its text, its
        end after both, and no text after it.
        """
        while True:
            if self._placed is not None:
                placed, self._placed = self._placed, None
                return placed
            if self._deltas:
                return self._deltas.pop(next(iter(self._deltas)))
            if self._later:
                return self._later.popleft()
            self._wake = trio.Event()
            await self._wake.wait()

    def cancel(self, cause: CancelCause) -> None:
        """The reader is gone or gives up: tell the session, once, unless the turn has ended."""
        if self._cancelled or self._ended:
            return
        self._cancelled = True
        self._on_cancel(cause)

    def _add(self, event: CallDelta) -> None:
        """To what waits of the same call, so that there is one of them for each."""
        for place in range(len(self._later) - 1, -1, -1):
            waiting = self._later[place]
            if isinstance(waiting, CallDelta) and waiting.choice == event.choice:
                if waiting.call == event.call:
                    self._later[place] = replace(waiting, text=waiting.text + event.text)
                    return
                break
        self._later.append(event)


def _merged(waiting: Delta, new: Delta) -> Delta:
    return Delta(
        choice=new.choice,
        text=waiting.text + new.text,
        logprobs=waiting.logprobs + new.logprobs,
    )
