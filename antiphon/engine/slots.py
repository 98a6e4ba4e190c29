"""Which request sits in which slot of the host and which is paused, and that each Admit and each
Resume gets exactly one Released.

Pure. An Admit or a Resume that contradicts the table is a breach of the protocol; an Abort or a
Pause never is, whenever it comes.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from antiphon.engine.text import TextAssembler
from antiphon.errors import HostProtocolError
from antiphon.events import Abort, Admit, EndReason, Pause, Released, Resume
from antiphon.ids import EngineRequest, SlotIndex

_REMEMBERED = 4_096
"""Ended requests whose numbers are still recognised when they are used again."""


@dataclass(slots=True, eq=False)
class Slot:
    """An occupied slot, or a paused request that has none. `end` is set once the answer is over,
    before the engine has let go; `pausing` once it is to be kept when the engine has."""

    admit: Admit
    text: TextAssembler
    generated: list[int] = field(default_factory=list)
    end: EndReason | None = None
    pausing: bool = False

    @property
    def index(self) -> SlotIndex:
        return self.admit.slot

    @property
    def request(self) -> EngineRequest:
        return self.admit.request

    @property
    def due_end(self) -> EndReason | None:
        """How an answer has ended whose engine is still to say so."""
        if self.generated and self.text.is_end(self.generated[-1]):
            return EndReason.STOP
        return EndReason.LENGTH if len(self.generated) >= self.admit.max_tokens else None


class SlotTable:
    """The slots of one host."""

    def __init__(self, slots: int) -> None:
        self._slots: list[Slot | None] = [None] * slots
        self._by_request: dict[EngineRequest, Slot] = {}
        self._paused: dict[EngineRequest, Slot] = {}
        self._ended: set[EngineRequest] = set()
        self._ended_order: deque[EngineRequest] = deque()

    def __len__(self) -> int:
        return len(self._by_request)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._by_request.values())

    @property
    def paused(self) -> int:
        """How many are kept without a slot: no more than the server has let live."""
        return len(self._paused)

    def get(self, request: EngineRequest) -> Slot | None:
        return self._by_request.get(request)

    def admit(self, admit: Admit, text: TextAssembler) -> Slot:
        """Occupy the slot. Raises HostProtocolError."""
        request = admit.request
        self._check_free(admit.slot)
        if request in self._by_request or request in self._paused or request in self._ended:
            raise HostProtocolError(f"request {request} was admitted before")
        return self._occupy(Slot(admit, text))

    def resume(self, resume: Resume) -> Slot | None:
        """Occupy the slot with a paused request; None when there is no such request. Raises
        HostProtocolError."""
        self._check_free(resume.slot)
        if resume.request in self._by_request:
            raise HostProtocolError(f"request {resume.request} is not paused")
        slot = self._paused.pop(resume.request, None)
        if slot is None:
            return None
        slot.admit = msgspec.structs.replace(slot.admit, slot=resume.slot)
        slot.pausing = False
        return self._occupy(slot)

    def abort(self, abort: Abort) -> Slot | None:
        """The slot whose request must be aborted now; None when there is nothing left to abort.
        Raises HostProtocolError for a slot that doesn't exist."""
        self._check_index(abort.slot)
        if abort.request in self._paused:
            del self._paused[abort.request]
            self._remember(abort.request)
        slot = self._by_request.get(abort.request)
        if slot is None or slot.end is not None:
            return None
        slot.end = EndReason.CANCELLED
        # What is being paused has been aborted already, and is only not kept any more.
        return None if slot.pausing else slot

    def pause(self, pause: Pause) -> Slot | None:
        """The slot whose request must be taken out of the engine now; None when that makes no
        sense. Raises HostProtocolError for a slot that doesn't exist."""
        self._check_index(pause.slot)
        slot = self._by_request.get(pause.request)
        if slot is None or slot.pausing or (slot.end or slot.due_end) is not None:
            return None
        slot.pausing = True
        return slot

    def release(self, slot: Slot, reason: EndReason) -> Released:
        """Free the slot: the last word about its request, unless that is kept."""
        del self._by_request[slot.request]
        self._slots[slot.index] = None
        if reason is EndReason.PAUSED:
            self._paused[slot.request] = slot
        else:
            self._remember(slot.request)
        return Released(
            slot=slot.index, request=slot.request, reason=reason, tokens=slot.text.tokens
        )

    def _occupy(self, slot: Slot) -> Slot:
        self._slots[slot.index] = self._by_request[slot.request] = slot
        return slot

    def _remember(self, request: EngineRequest) -> None:
        self._ended.add(request)
        self._ended_order.append(request)
        if len(self._ended_order) > _REMEMBERED:
            self._ended.remove(self._ended_order.popleft())

    def _check_free(self, index: SlotIndex) -> None:
        self._check_index(index)
        if (other := self._slots[index]) is not None:
            raise HostProtocolError(f"slot {index} is held by request {other.request}")

    def _check_index(self, index: SlotIndex) -> None:
        if not 0 <= index < len(self._slots):
            raise HostProtocolError(f"there is no slot {index}")
