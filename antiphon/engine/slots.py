"""Which request sits in which slot of the host, and that each Admit gets exactly one Released.

Pure. An Admit that contradicts the table is a breach of the protocol; an Abort never is, whenever
it comes.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.engine.text import TextAssembler
from antiphon.errors import HostProtocolError
from antiphon.events import Abort, Admit, EndReason, Released
from antiphon.ids import EngineRequest, SlotIndex

_REMEMBERED = 4_096
"""Ended requests whose numbers are still recognised when they are used again."""


@dataclass(slots=True, eq=False)
class Slot:
    """An occupied slot. `end` is set once the answer is over, before the engine has let go."""

    index: SlotIndex
    request: EngineRequest
    text: TextAssembler
    end: EndReason | None = None


class SlotTable:
    """The slots of one host."""

    def __init__(self, slots: int) -> None:
        self._slots: list[Slot | None] = [None] * slots
        self._by_request: dict[EngineRequest, Slot] = {}
        self._ended: set[EngineRequest] = set()
        self._ended_order: deque[EngineRequest] = deque()

    def __len__(self) -> int:
        return len(self._by_request)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._by_request.values())

    def get(self, request: EngineRequest) -> Slot | None:
        return self._by_request.get(request)

    def admit(self, admit: Admit, text: TextAssembler) -> Slot:
        """Occupy the slot. Raises HostProtocolError."""
        self._check_index(admit.slot)
        if (other := self._slots[admit.slot]) is not None:
            raise HostProtocolError(f"slot {admit.slot} is held by request {other.request}")
        if admit.request in self._by_request or admit.request in self._ended:
            raise HostProtocolError(f"request {admit.request} was admitted before")
        slot = Slot(admit.slot, admit.request, text)
        self._slots[admit.slot] = self._by_request[admit.request] = slot
        return slot

    def abort(self, abort: Abort) -> Slot | None:
        """The slot whose request must be aborted now; None when there is nothing left to abort.
        Raises HostProtocolError for a slot that doesn't exist."""
        self._check_index(abort.slot)
        slot = self._by_request.get(abort.request)
        if slot is None or slot.end is not None:
            return None
        slot.end = EndReason.CANCELLED
        return slot

    def release(self, slot: Slot, reason: EndReason) -> Released:
        """Free the slot: the last word about its request."""
        del self._by_request[slot.request]
        self._slots[slot.index] = None
        self._ended.add(slot.request)
        self._ended_order.append(slot.request)
        if len(self._ended_order) > _REMEMBERED:
            self._ended.remove(self._ended_order.popleft())
        return Released(
            slot=slot.index, request=slot.request, reason=reason, tokens=slot.text.tokens
        )

    def _check_index(self, index: SlotIndex) -> None:
        if not 0 <= index < len(self._slots):
            raise HostProtocolError(f"there is no slot {index}")
