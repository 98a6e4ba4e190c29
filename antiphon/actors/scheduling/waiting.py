"""Tickets that wait, and heaps of them in which those that are gone cost nothing."""

import heapq
from dataclasses import dataclass

from antiphon.actors.scheduling.tickets import Ticket

_FEW = 32


@dataclass(slots=True, eq=False)
class Waiting:
    """A ticket in its lane. `order` is when it came, among those of the same time; `since` is when
    its present wait began; `tokens` is what it had gained when it was paused, `held_s` for how long
    it had a slot. It is `gone` once it waits no more."""

    ticket: Ticket
    blocks: int
    order: int
    since: float
    long: bool = False
    paused: bool = False
    tokens: int = 0
    held_s: float = 0.0
    gone: bool = False

    def __lt__(self, other: "Waiting") -> bool:
        # Asked only of two entries of the same ticket, of which the older is gone.
        return self.since < other.since


class WaitingHeap:
    """The first by some time, and by order of arrival among equals."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[tuple[float, int, Waiting]] = []

    def push(self, at: float, waiting: Waiting, live: int) -> None:
        """`live` is how many in here are not gone: when most are, those are swept out."""
        items = self._items
        if len(items) > 2 * live + _FEW:
            items[:] = [item for item in items if not item[2].gone]
            heapq.heapify(items)
        heapq.heappush(items, (at, waiting.order, waiting))

    def first(self) -> Waiting | None:
        items = self._items
        while items:
            waiting = items[0][2]
            if not waiting.gone:
                return waiting
            heapq.heappop(items)
        return None
