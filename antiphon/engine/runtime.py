"""What an engine host does from Ready to its end: commands in, a step, its text out, over and over.

One thread. It waits only when the engine has nothing to do, and says each second that it lives.
"""

import time
from collections.abc import Sequence
from typing import Protocol

import structlog

from antiphon import faults
from antiphon.engine.contract import AdmitRefused, EngineBroken, StepEngine, StepResult
from antiphon.engine.slots import Slot, SlotTable
from antiphon.engine.text import TextAssembler
from antiphon.engine.vocabulary import Vocabulary
from antiphon.errors import HostProtocolError
from antiphon.events import (
    Abort,
    Admit,
    EndReason,
    Fault,
    Halt,
    HostCommand,
    HostFrame,
    Pause,
    Released,
    Resume,
    SlotText,
    Stats,
    Step,
)
from antiphon.fault_plan import Site

log = structlog.get_logger(__name__)

HEARTBEAT_S = 1.0
_LAST_WORDS_S = 1.0
_FOR_EVER_S = 10.0**6


class Channel(Protocol):
    """Where commands come from and frames go to; `channel.HostChannel` is the real one."""

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[HostCommand]: ...

    def send(self, frames: list[HostFrame]) -> None: ...

    def flush(self, timeout_s: float) -> None: ...


class HostRuntime:
    """The loop of one host and all that it knows between two steps."""

    def __init__(
        self,
        engine: StepEngine,
        vocabulary: Vocabulary,
        channel: Channel,
        end_tokens: frozenset[int],
    ) -> None:
        self._engine = engine
        self._vocabulary = vocabulary
        self._channel = channel
        self._end_tokens = end_tokens
        self._slots = SlotTable(engine.capabilities.slots)
        self._frames: list[HostFrame] = []
        self._aborted: list[Slot] = []
        self._steps = 0
        self._next_heartbeat = time.monotonic()

    @property
    def paused(self) -> int:
        """Answers that are kept without a slot."""
        return self._slots.paused

    def run(self) -> None:
        """Serve until Halt. Raises as `turn` does."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """Commands, a step, frames; False after Halt. Raises ServerGone, HostProtocolError,
        EngineBroken; of the latter two the server has been told."""
        try:
            return self._turn()
        except HostProtocolError as error:
            self._last_words(Fault(code="protocol", detail=error.problem))
            raise
        except EngineBroken as error:
            self._last_words(Fault(code="engine_broken", detail=error.detail))
            raise

    def _turn(self) -> bool:
        engine = self._engine
        wait_s = 0.0 if engine.busy() else max(0.0, self._next_heartbeat - time.monotonic())
        for command in self._channel.receive(wait_s, engine.descriptors):
            match command:
                case Admit():
                    self._admit(command)
                case Abort():
                    if (slot := self._slots.abort(command)) is not None:
                        self._abort(slot)
                case Pause():
                    if (slot := self._slots.pause(command)) is not None:
                        self._abort(slot)
                case Resume():
                    self._resume(command)
                case Halt():
                    return False
        self._release_aborted()
        # A step of an idle engine is nearly free, and takes in what its descriptors had to say.
        if engine.busy() or engine.descriptors:
            self._step()
        now = time.monotonic()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_S
            self._frames.append(
                Stats(steps=self._steps, live=len(self._slots), kv_usage=engine.kv_usage())
            )
        self._send()
        return True

    def _admit(self, admit: Admit) -> None:
        text = TextAssembler(admit, self._vocabulary, self._end_tokens)
        self._enter(self._slots.admit(admit, text))

    def _resume(self, resume: Resume) -> None:
        slot = self._slots.resume(resume)
        if slot is not None:
            self._enter(slot)
            return
        detail = "nothing is kept of a paused answer"
        self._frames += [
            Fault(code="lost", detail=detail, request=resume.request),
            Released(slot=resume.slot, request=resume.request, reason=EndReason.FAILED, tokens=0),
        ]

    def _enter(self, slot: Slot) -> None:
        """Into the engine, after what the answer has so far."""
        try:
            if faults.strikes(Site.HOST_ADMIT_REFUSED):
                raise AdmitRefused("capacity", "a fault plan says so")
            self._engine.admit(slot.admit, slot.generated)
        except AdmitRefused as refusal:
            self._give_up(slot, refusal.code, refusal.detail)

    def _abort(self, slot: Slot) -> None:
        if self._engine.abort(slot.request):
            self._aborted.append(slot)

    def _release_aborted(self) -> None:
        """Give back what the coming step frees. Commands are read only after it, so nobody can use
        the slot too early, and whoever waits for it learns of it a whole step sooner."""
        if self._aborted:
            for slot in self._aborted:
                self._frames.append(self._slots.release(slot, _reason(slot)))
            self._aborted.clear()
            self._send()

    def _send(self) -> None:
        if self._frames:
            frames, self._frames = self._frames, []
            self._channel.send(frames)

    def _step(self) -> None:
        faults.maybe(Site.HOST_STEP)
        while faults.strikes(Site.HOST_STEP_HANG):
            time.sleep(_FOR_EVER_S)
        if faults.strikes(Site.HOST_STEP_BROKEN):
            raise EngineBroken("a fault plan says so")
        before = time.perf_counter()
        result = self._engine.step()
        duration_s = result.duration_s
        if duration_s is None:
            duration_s = time.perf_counter() - before
        self._steps += 1
        self._frames.append(
            Step(
                number=self._steps,
                duration_s=duration_s,
                texts=self._texts(result),
                prefilled=result.prefilled,
            )
        )
        for failure in result.failed:
            if (slot := self._slots.get(failure.request)) is not None:
                self._give_up(slot, failure.code, failure.detail)
        for request in result.freed:
            if (slot := self._slots.get(request)) is not None:
                self._frames.append(self._slots.release(slot, _reason(slot)))

    def _texts(self, result: StepResult) -> list[SlotText]:
        texts: list[SlotText] = []
        for gained in result.gained:
            slot = self._slots.get(gained.request)
            if slot is None or slot.end is not None:
                continue
            text = slot.text
            slot.generated += gained.tokens
            end = gained.end
            if end is None and slot.pausing:
                end = slot.due_end  # the engine was told to forget it before it could say so
            piece = text.push(gained.tokens, gained.logprobs, last=end is not None)
            if piece.stopped:
                slot.end = EndReason.STOP
                if end is None:
                    self._abort(slot)
            else:
                slot.end = end
            texts.append(
                SlotText(
                    slot=slot.index,
                    request=slot.request,
                    text=piece.text,
                    tokens=text.tokens,
                    end=slot.end,
                    logprobs=piece.logprobs,
                    cached_tokens=gained.cached,
                )
            )
        return texts

    def _give_up(self, slot: Slot, code: str, detail: str) -> None:
        """The engine holds nothing of this request: say why, and that the slot is free."""
        reason = EndReason.CAPACITY if code == "capacity" else EndReason.FAILED
        released: Released = self._slots.release(slot, slot.end or reason)
        self._frames += [Fault(code=code, detail=detail, request=slot.request), released]

    def _last_words(self, fault: Fault) -> None:
        log.error("host_gives_up", code=fault.code, detail=fault.detail)
        frames, self._frames = [*self._frames, fault], []
        self._channel.send(frames)
        self._channel.flush(_LAST_WORDS_S)


def _reason(slot: Slot) -> EndReason:
    """Why a slot that the engine has let go of is free. An answer that ended while it was being
    paused has ended."""
    return slot.end or (EndReason.PAUSED if slot.pausing else EndReason.FAILED)
