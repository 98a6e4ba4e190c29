"""The events of one running response: appended by its run, read by any number of watchers, written
to the store in batches by the recorder.

What a batch holds is settled once: until the store has confirmed it, it is sent again as it is.
"""

import enum
from collections.abc import Sequence

import trio

from antiphon.errors import AntiphonError
from antiphon.ids import ResponseId
from antiphon.narration import ResponseEvent, encode_events
from antiphon.records import EventBatch, Response
from antiphon.turn_events import TurnPlaced


class Debt(enum.Enum):
    """What is still to be written to the store about a response whose run is over."""

    WITHDRAWAL = "withdrawal"
    """It was refused, and may be stored."""
    END = "end"
    """It ended, and is stored as running."""


class EventLog:
    """One writer. Bounded by the longest answer that the turn may have."""

    def __init__(self, response: Response, *, kept: bool = True) -> None:
        self.response = response
        self.kept = kept
        """Whether the store has the response, or will have it."""
        self.placed: TurnPlaced | None = None
        self.error: AntiphonError | None = None
        """What the response failed of."""
        self.refusal: AntiphonError | None = None
        """Why there is no such response, after all."""
        self.debt: Debt | None = None
        self.owed_since = 0.0
        """On Trio's clock."""
        self.repeats: ResponseId | None = None
        """The response that this one turned out to be again."""
        self.accepted = trio.Event()
        self.ended = trio.Event()
        self._events: list[ResponseEvent] = []
        self._grown = trio.Event()
        self._stored = 0
        self._batch: EventBatch | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._events)

    @property
    def settled(self) -> bool:
        """Whether nothing will be appended any more."""
        return self.ended.is_set()

    def append(self, events: Sequence[ResponseEvent]) -> None:
        if events:
            self._events += events
            self._wake()

    def place(self, response: Response, placed: TurnPlaced) -> None:
        """A pool has taken it; the response is as it is shown from now on."""
        self.response = response
        self.placed = placed

    def end(self, response: Response, error: AntiphonError | None = None) -> None:
        """Nothing follows; the response is as it is shown from now on."""
        self.response = response
        self.error = error
        self._settle()

    def refuse(self, error: AntiphonError) -> None:
        """There is no response: nothing was stored, or nothing of it is left."""
        self.refusal = error
        self._settle()

    def repeat(self, response: ResponseId) -> None:
        """This is an earlier response, sent again."""
        self.repeats = response
        self._settle()

    def since(self, count: int) -> Sequence[ResponseEvent]:
        return self._events[count:]

    async def grown(self, count: int) -> None:
        """Return when there are more than `count` events, or will be none."""
        while len(self._events) <= count and not self.settled:
            await self._grown.wait()

    def batch(self) -> EventBatch | None:
        """The next batch to store, or the one that is not confirmed yet; None when all is stored,
        or the run stores the rest itself."""
        if self._closed or not self.kept:
            return None
        if self._batch is None:
            self._batch = self.tail(())
        return self._batch

    def owe(self, debt: Debt) -> None:
        """What the store has of this response is not true yet."""
        self.debt = debt
        self.owed_since = trio.current_time()

    @property
    def unconfirmed(self) -> EventBatch | None:
        """A batch that was sent, and may have arrived."""
        return self._batch

    @property
    def closed(self) -> bool:
        """Whether the run stores the rest itself, so that what a batch meets says nothing."""
        return self._closed

    def close(self) -> None:
        """From now on the run stores what is left: its last batch must not meet another one."""
        self._closed = True

    def stored(self, batch: EventBatch) -> None:
        """The store has it."""
        if batch is self._batch:
            self._stored = batch.last + 1
            self._batch = None

    def tail(self, events: Sequence[ResponseEvent]) -> EventBatch | None:
        """All that is not stored, and further events, as one batch that is not kept."""
        tail = (*self._events[self._stored :], *events)
        if not tail:
            return None
        last = self._stored + len(tail) - 1
        return EventBatch(first=self._stored, last=last, body=encode_events(tail))

    def _settle(self) -> None:
        self.accepted.set()
        self.ended.set()
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = trio.Event()
