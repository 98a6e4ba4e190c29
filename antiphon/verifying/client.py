"""A bare client of one engine: it speaks frames and keeps the books. Each Admit has one Released,
no slot is used twice, nothing is said of a request that is over.

What breaks the contract is noted, and the talk goes on. No server, no scheduler.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import trio

from antiphon.errors import HostLost
from antiphon.events import (
    Abort,
    Admit,
    Capabilities,
    EndReason,
    Fault,
    Pause,
    Ready,
    Released,
    Resume,
    Sampling,
    Stats,
    Step,
)
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.ports import EngineLink


@dataclass(slots=True)
class Answer:
    """What was heard of one request; times are `current_time()`."""

    slot: SlotIndex
    admitted_at: float
    text: str = ""
    pieces: list[str] = field(default_factory=list)
    tokens: int = 0
    prompt_tokens: int | None = None
    end: EndReason | None = None
    logprobs: list[float] = field(default_factory=list)
    spelling: bytes = b""
    """What the tokens of the log-probabilities spell."""
    fault: Fault | None = None
    first_at: float | None = None
    paused: bool = False
    released: Released | None = None
    released_at: float = 0.0
    changed: trio.Event = field(default_factory=trio.Event)


@dataclass
class Client:
    """`read` must run in a task of its own; `free` holds the slots that may be admitted to."""

    link: EngineLink
    capabilities: Capabilities
    answers: dict[EngineRequest, Answer] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    stats: list[Stats] = field(default_factory=list)
    free: deque[SlotIndex] = field(default_factory=deque)
    lost: str | None = None
    ended: trio.Event = field(default_factory=trio.Event)
    """The engine is gone; `lost` says how."""
    _freed: trio.Event = field(default_factory=trio.Event)
    _beat: trio.Event = field(default_factory=trio.Event)
    _step: trio.Event = field(default_factory=trio.Event)

    def __post_init__(self) -> None:
        self.free.extend(SlotIndex(index) for index in range(self.capabilities.slots))

    async def admit(self, prompt: list[int], *, max_tokens: int, **fields: Any) -> EngineRequest:
        """Wait for a free slot and use it; `fields` overlays the Admit. Raises HostLost."""
        while not self.free:
            await self._freed.wait()
        slot = self.free.popleft()
        request = EngineRequest(len(self.answers) + 1)
        self.answers[request] = Answer(slot, trio.current_time())
        admit = Admit(
            **{
                "request": request,
                "slot": slot,
                "prompt": prompt,
                "max_tokens": max_tokens,
                "sampling": Sampling(temperature=0.0, seed=request),
                "stop": [],
                **fields,
            }
        )
        await self.link.send(admit)
        return request

    async def abort(self, request: EngineRequest) -> None:
        """Raises HostLost."""
        await self.link.send(Abort(request=request, slot=self.answers[request].slot))

    async def stepped(self) -> None:
        """Until the engine has made one more step."""
        await self._step.wait()

    async def pause(self, request: EngineRequest) -> Answer:
        """Until its slot is free: it is paused, or its end came first. Raises HostLost."""
        answer = self.answers[request]
        await self.link.send(Pause(request=request, slot=answer.slot))
        while not answer.paused and answer.released is None:
            await answer.changed.wait()
        return answer

    async def resume(self, request: EngineRequest) -> None:
        """Wait for a free slot and have it go on there. Raises HostLost."""
        while not self.free:
            await self._freed.wait()
        answer = self.answers[request]
        answer.slot, answer.paused = self.free.popleft(), False
        await self.link.send(Resume(request=request, slot=answer.slot))

    async def heard(self, request: EngineRequest) -> None:
        """Until it has a token, or is over."""
        answer = self.answers[request]
        while answer.first_at is None and answer.released is None:
            await answer.changed.wait()

    async def over(self, request: EngineRequest) -> Answer:
        """Until its slot is free."""
        answer = self.answers[request]
        while answer.released is None:
            await answer.changed.wait()
        return answer

    async def next_stats(self) -> Stats:
        """The next that comes."""
        await self._beat.wait()
        return self.stats[-1]

    async def read(self) -> None:
        """Until the engine is gone. Raises HostProtocolError."""
        while True:
            try:
                frame = await self.link.receive()
            except HostLost as error:
                self.lost = error.reason
                self.ended.set()
                return
            match frame:
                case Step():
                    self._on_step(frame)
                case Released(reason=EndReason.PAUSED):
                    self._on_paused(frame)
                case Released():
                    self._on_released(frame)
                case Fault():
                    self._on_fault(frame)
                case Stats():
                    self._on_stats(frame)
                case Ready():
                    self.violations.append("a second Ready")

    def _on_fault(self, fault: Fault) -> None:
        if fault.request is None:
            self.faults.append(fault)
        elif (answer := self._answer(fault.request, "a fault")) is not None:
            answer.fault = fault

    def _on_stats(self, stats: Stats) -> None:
        if not (0 <= stats.kv_usage <= 1 and 0 <= stats.live <= self.capabilities.slots):
            self.violations.append(f"impossible statistics: {stats}")
        self.stats.append(stats)
        self._beat.set()
        self._beat = trio.Event()

    def _on_step(self, step: Step) -> None:
        if self.steps and step.number != self.steps[-1].number + 1:
            self.violations.append(f"step {step.number} after {self.steps[-1].number}")
        self.steps.append(step)
        self._step.set()
        self._step = trio.Event()
        for piece in step.texts:
            answer = self._answer(piece.request, "text")
            if answer is None:
                continue
            if piece.slot != answer.slot:
                self.violations.append(f"text of request {piece.request} in another slot")
            if piece.tokens < max(answer.tokens, bool(piece.text)):
                self.violations.append(f"request {piece.request} has lost tokens")
            if answer.released is not None or answer.end is not None:
                self.violations.append(f"text of request {piece.request}, which is over")
            answer.text += piece.text
            answer.pieces.append(piece.text)
            answer.tokens = piece.tokens
            answer.end = piece.end
            for entry in piece.logprobs or ():
                answer.logprobs.append(entry.logprob)
                answer.spelling += entry.data
            if piece.prompt_tokens is not None:
                answer.prompt_tokens = piece.prompt_tokens
            if answer.first_at is None:
                answer.first_at = trio.current_time()
            _tell(answer)

    def _on_paused(self, released: Released) -> None:
        answer = self.answers[released.request]
        if answer.paused or answer.released is not None:
            self.violations.append(f"request {released.request} paused without a slot")
            return
        if (released.slot, released.tokens) != (answer.slot, answer.tokens):
            self.violations.append(f"request {released.request} paused as {released}")
        answer.paused = True
        self.free.append(answer.slot)
        self._freed.set()
        self._freed = trio.Event()
        _tell(answer)

    def _on_released(self, released: Released) -> None:
        answer = self._answer(released.request, "the end")
        if answer is None:
            return
        if answer.released is not None:
            self.violations.append(f"request {released.request} released twice")
            return
        if released.slot != answer.slot:
            self.violations.append(f"request {released.request} released from another slot")
        if answer.end not in (None, released.reason):
            self.violations.append(
                f"request {released.request} ended by {answer.end}, released as {released.reason}"
            )
        if released.tokens < answer.tokens:
            self.violations.append(f"request {released.request} has lost tokens at its end")
        answer.released = released
        answer.released_at = trio.current_time()
        self.free.append(answer.slot)
        self._freed.set()
        self._freed = trio.Event()
        _tell(answer)

    def _answer(self, request: EngineRequest, what: str) -> Answer | None:
        answer = self.answers.get(request)
        if answer is None:
            self.violations.append(f"{what} of request {request}, which was never admitted")
        return answer


def _tell(answer: Answer) -> None:
    answer.changed.set()
    answer.changed = trio.Event()
