"""An engine without a model: in memory, deterministic, obeying the host contract frame by frame.

It answers word by word, one word per live slot and step, and can be told to hang, die, break the
protocol or fail a request. Tests of the driver, scheduler, sessions and HTTP stand on it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec
import trio

from antiphon.engine.stops import StopFilter
from antiphon.errors import HostLost, HostProtocolError, HostStartFailed
from antiphon.events import (
    Abort,
    Admit,
    Capabilities,
    EndReason,
    Fault,
    Halt,
    HostCommand,
    HostFrame,
    Pause,
    Ready,
    Released,
    Resume,
    SlotText,
    Stats,
    Step,
    TokenLogprob,
)
from antiphon.ids import EngineRequest

Answer = Callable[[Admit], Iterable[str]]
"""The words that answer one Admit; each is one token and leaves in one step. An iterable that never
ends is cut at `max_tokens`."""


def four_words(admit: Admit) -> Iterable[str]:
    return ("one", " two", " three", " four")


def scripted_capabilities(
    *, slots: int = 4, kv_blocks: int = 64, window: int = 512
) -> Capabilities:
    return Capabilities(
        engine="scripted",
        engine_version="1",
        slots=slots,
        kv_blocks=kv_blocks,
        block_size=32,
        window=window,
        special_tokens=[],
        logprobs=True,
        json_schema=True,
        abort_proof=True,
        isolates_tenants=True,
        pausable=True,
    )


@dataclass(slots=True, eq=False)
class _Live:
    admit: Admit
    words: list[str]
    stops: StopFilter
    tokens: int = 0
    fresh: bool = True
    aborted: bool = False
    pausing: bool = False
    ended: EndReason | None = None

    @property
    def leaves(self) -> bool:
        """The next step frees it without a word."""
        return self.aborted or self.pausing

    def released(self, reason: EndReason) -> Released:
        return Released(
            slot=self.admit.slot, request=self.admit.request, reason=reason, tokens=self.tokens
        )


@dataclass(eq=False)
class ScriptedLink:
    """An EngineLink. With `step_s` a number it steps by itself that often while it has work (a
    `trio.testing.MockClock` makes that instant); with None, only when the test calls `step()`.

    `sent` is every command it got, in order. Idle it reports Stats every `heartbeat_s`, as a host
    does; with None, never.
    """

    capabilities: Capabilities = field(default_factory=scripted_capabilities)
    answer: Answer = four_words
    step_s: float | None = 0.01
    heartbeat_s: float | None = 1.0
    pid: int = 4242
    sent: list[HostCommand] = field(default_factory=list)
    killed: bool = False
    closed: bool = False
    steps: int = 0

    def __post_init__(self) -> None:
        self._live: dict[EngineRequest, _Live] = {}
        self._paused: dict[EngineRequest, _Live] = {}
        self._seen: set[EngineRequest] = set()
        self._hung = False
        self._lost: str | None = None
        # No bound: a test's script is finite, and step() must be callable from sync code.
        self._into, self._frames = trio.open_memory_channel[HostFrame | HostProtocolError](math.inf)
        self._work = trio.Event()
        self.emit(Ready(pid=self.pid, capabilities=self.capabilities))

    # what the driver sees

    async def send(self, command: HostCommand) -> None:
        await trio.lowlevel.checkpoint()
        if self._lost is not None:
            raise HostLost(self._lost)
        self.sent.append(command)
        match command:
            case Admit():
                self._admit(command)
            case Abort():
                self._paused.pop(command.request, None)
                if (live := self._live.get(command.request)) is not None:
                    live.aborted = True
                    self._work.set()
            case Pause():
                if (live := self._live.get(command.request)) is not None:
                    live.pausing = True
                    self._work.set()
            case Resume():
                self._go_on(command)
            case Halt():
                self.die("halted")

    async def receive(self) -> HostFrame:
        await trio.lowlevel.checkpoint()
        while True:
            try:
                frame = self._frames.receive_nowait()
            except trio.EndOfChannel:
                raise HostLost(self._lost or "closed") from None
            except trio.WouldBlock:
                await self._wait_for_news()
                continue
            if isinstance(frame, HostProtocolError):
                raise frame
            return frame

    async def aclose(self, *, grace_s: float) -> None:
        self.closed = True
        self.die("closed")
        await trio.lowlevel.cancel_shielded_checkpoint()

    def kill(self) -> None:
        self.killed = True
        self.die("killed by signal 9")

    # what the test does

    @property
    def live(self) -> tuple[EngineRequest, ...]:
        """The requests that occupy a slot, oldest first."""
        return tuple(self._live)

    @property
    def paused(self) -> tuple[EngineRequest, ...]:
        """The requests that are kept without a slot, the one paused first first."""
        return tuple(self._paused)

    def step(self) -> None:
        """Run one step now: every live slot gains a word; ended, aborted and paused ones are
        released. A prompt is computed whole, with the first word of its slot."""
        self.steps += 1
        texts: list[SlotText] = []
        released: list[Released] = []
        prefilled = 0
        for request, live in list(self._live.items()):
            if not live.leaves:
                prefilled += len(live.admit.prompt) + live.tokens if live.fresh else 0
                texts.append(self._next_word(live))
            if live.leaves or live.ended is not None:
                del self._live[request]
                released.append(live.released(self._reason(live)))
        duration_s = self.step_s or 0.01
        step = Step(number=self.steps, duration_s=duration_s, texts=texts, prefilled=prefilled)
        self.emit(step)
        for frame in released:
            self.emit(frame)

    def stats(self) -> None:
        """Report life, as a host does once a second."""
        usage = len(self._live) / self.capabilities.slots
        self.emit(Stats(steps=self.steps, live=len(self._live), kv_usage=usage))

    def hang(self) -> None:
        """From now on nothing is reported, though commands are still taken."""
        self._hung = True

    def resume(self) -> None:
        self._hung = False
        self._work.set()

    def forget(self) -> None:
        """Keep nothing of what it was sent: for tests that look for growth elsewhere."""
        self.sent.clear()
        self._seen.clear()

    def die(self, reason: str = "exited with status 1") -> None:
        """The process is gone; what it reported before can still be received."""
        if self._lost is None:
            self._lost = reason
            self._into.close()
            self._work.set()

    def break_protocol(self, problem: str = "malformed frame") -> None:
        """The next thing received, after what is already reported, is a protocol error."""
        if self._lost is None:
            self._into.send_nowait(HostProtocolError(problem))
            self._work.set()

    def fail(self, request: EngineRequest, *, code: str, detail: str) -> None:
        """The engine gives up this one: Fault, then Released."""
        live = self._live.pop(request)
        self.emit(Fault(code=code, detail=detail, request=request))
        reason = EndReason.CAPACITY if code == "capacity" else EndReason.FAILED
        self.emit(live.released(reason))

    def emit(self, frame: HostFrame) -> None:
        """Put any frame on the wire, also one that breaks the contract."""
        if self._lost is None:
            self._into.send_nowait(frame)
            self._work.set()

    def _admit(self, command: Admit) -> None:
        self._check_free(command)
        if command.request in self._seen:
            raise AssertionError(f"request {command.request} was admitted twice")
        self._seen.add(command.request)
        if (refusal := self._refusal(command)) is not None:
            reason = EndReason.CAPACITY if refusal == "capacity" else EndReason.FAILED
            self.emit(Fault(code=refusal, detail="it does not fit", request=command.request))
            self.emit(Released(slot=command.slot, request=command.request, reason=reason, tokens=0))
            return
        words: list[str] = []
        for word in self.answer(command):
            if len(words) == command.max_tokens:
                break
            words.append(word)
        stops = StopFilter(command.stop)
        self._live[command.request] = _Live(admit=command, words=words, stops=stops)
        self._work.set()

    def _go_on(self, command: Resume) -> None:
        self._check_free(command)
        live = self._paused.pop(command.request, None)
        if live is None:
            request, slot, reason = command.request, command.slot, EndReason.FAILED
            self.emit(Fault(code="lost", detail="nothing is kept of it", request=request))
            self.emit(Released(slot=slot, request=request, reason=reason, tokens=0))
            return
        live.admit = msgspec.structs.replace(live.admit, slot=command.slot)
        live.pausing, live.fresh = False, True
        self._live[command.request] = live
        self._work.set()

    def _check_free(self, command: Admit | Resume) -> None:
        occupied = {live.admit.slot for live in self._live.values()}
        if command.slot in occupied or not 0 <= command.slot < self.capabilities.slots:
            name = type(command).__name__
            raise AssertionError(f"{name} to slot {command.slot}, which is not free")

    def _reason(self, live: _Live) -> EndReason:
        """Why it is released; one that is only paused is kept."""
        if live.ended is not None:
            return live.ended
        if live.aborted:
            return EndReason.CANCELLED
        self._paused[live.admit.request] = live
        return EndReason.PAUSED

    def _refusal(self, admit: Admit) -> str | None:
        """The code of a host that can't run it: what a server should never ask for."""
        engine = self.capabilities
        if len(admit.prompt) + admit.max_tokens > engine.window:
            return "window"
        wanted = sum(self._blocks(live.admit) for live in self._live.values())
        return "capacity" if wanted + self._blocks(admit) > engine.kv_blocks else None

    def _blocks(self, admit: Admit) -> int:
        return math.ceil((len(admit.prompt) + admit.max_tokens) / self.capabilities.block_size)

    def _next_word(self, live: _Live) -> SlotText:
        live.fresh = False
        word = live.words[live.tokens] if live.words else ""
        live.tokens += 1
        if live.tokens >= len(live.words):
            full = live.tokens >= live.admit.max_tokens
            live.ended = EndReason.LENGTH if full else EndReason.STOP
        text = live.stops.push(word)
        if live.stops.hit:
            live.ended = EndReason.STOP
        elif live.ended is not None:
            text += live.stops.flush()
        logprobs = None
        if live.admit.sampling.logprobs:
            logprobs = [TokenLogprob(text=text, data=text.encode(), logprob=-0.5)]
        return SlotText(
            slot=live.admit.slot,
            request=live.admit.request,
            text=text,
            tokens=live.tokens,
            end=live.ended,
            logprobs=logprobs,
        )

    async def _wait_for_news(self) -> None:
        if self._live and not self._hung and self.step_s is not None and self._lost is None:
            await trio.sleep(self.step_s)
            # While it slept the test may have hung it, killed it or taken its work away.
            if self._live and not self._hung and self._lost is None:
                self.step()
            return
        self._work = trio.Event()
        with trio.move_on_after(math.inf if self.heartbeat_s is None else self.heartbeat_s) as wait:
            await self._work.wait()
        if wait.cancelled_caught and not self._hung:
            self.stats()


@dataclass(eq=False)
class ScriptedLauncher:
    """An EngineLauncher. Each launch makes a fresh link with `make()`; `links` keeps them all, the
    running one last."""

    make: Callable[[], ScriptedLink] = ScriptedLink
    links: list[ScriptedLink] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Each one makes a launch fail with HostStartFailed, first one first."""

    @property
    def link(self) -> ScriptedLink:
        return self.links[-1]

    async def launch(self) -> ScriptedLink:
        await trio.lowlevel.checkpoint()
        if self.refusals:
            raise HostStartFailed(self.refusals.pop(0))
        self.links.append(self.make())
        return self.link
