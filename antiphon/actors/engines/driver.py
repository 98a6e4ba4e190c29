"""The engine driver: owns one engine host, passes commands to it and its news to their owners.

Keeps the rule that silence is a failure: a host that says nothing for `silence_s`, has work and
makes no step for as long, dies, or breaks the protocol is killed, every generation it held ends
with a typed error, and the driver crashes so that its supervisor starts both anew. Knows frames,
not queues.
"""

from dataclasses import dataclass
from typing import assert_never

import structlog
import trio

from antiphon import faults
from antiphon.actors.actor import ActorContext
from antiphon.actors.engines.messages import (
    Begin,
    DriverMessage,
    Engine,
    EngineNews,
    FirstToken,
    GenerationLost,
    GenerationNews,
    PauseSlot,
    ResumeSlot,
    SlotReleased,
    TakeOver,
)
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.errors import (
    AntiphonError,
    EngineUnavailable,
    GenerationFailed,
    HostLost,
    HostProtocolError,
    HostStartFailed,
    MailboxFull,
)
from antiphon.events import (
    Abort,
    EndReason,
    Fault,
    HostCommand,
    Pause,
    Ready,
    Released,
    Resume,
    Stats,
    Step,
)
from antiphon.fault_plan import Site
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.ports import EngineLauncher, EngineLink
from antiphon.telemetry import Telemetry

log = structlog.get_logger(__name__)

_REAP_S = 5.0
"""A killed process is reaped in milliseconds, unless the kernel is stuck in it."""

_MOMENT_S = 0.001

_UNAVAILABLE_S = 2.0
"""What a client is advised to wait for an engine that took its request and could not begin it."""
_ENDS = frozenset({EndReason.STOP, EndReason.LENGTH, EndReason.CONTENT_FILTER})


@dataclass(slots=True, eq=False)
class _Live:
    """A generation inside the host, in a slot or paused. `over` once its owner expects no more: it
    has heard the end, or we sent an Abort. `decoding` once its prompt has given a token, in this
    slot: after a pause the answer so far is prompt."""

    owner: Ref[GenerationNews]
    slot: SlotIndex
    tokens: int = 0
    decoding: bool = False
    over: bool = False
    fault: Fault | None = None


class EngineDriver:
    """One incarnation drives one host process; `status` outlives both."""

    def __init__(
        self,
        launcher: EngineLauncher,
        status: EngineStatus,
        scheduler: Ref[EngineNews],
        telemetry: Telemetry,
        *,
        start_timeout_s: float,
        stop_grace_s: float,
    ) -> None:
        self._launcher = launcher
        self._status = status
        self._scheduler = scheduler
        self._telemetry = telemetry
        self._start_timeout_s = start_timeout_s
        self._stop_grace_s = stop_grace_s
        self._link: EngineLink | None = None
        self._live: dict[EngineRequest, _Live] = {}
        self._paused: dict[EngineRequest, _Live] = {}
        self._successor: Reply[Engine] | None = None
        self._lost: HostLost | None = None
        self._closing = False

    async def start(self, me: ActorContext[DriverMessage]) -> None:
        """Launch a host and wait for its Ready. Raises HostStartFailed."""
        began = trio.current_time()
        link = await self._launcher.launch()
        try:
            await faults.pause(Site.DRIVER_LAUNCHED)
            with trio.move_on_after(self._start_timeout_s) as patience:
                ready = await self._first_frame(link)
            if patience.cancelled_caught:
                raise HostStartFailed(f"not ready after {self._start_timeout_s:g} s")
        except BaseException:
            link.kill()
            with trio.move_on_after(_REAP_S, shield=True):
                await link.aclose(grace_s=0)
            raise
        self._link = link
        capabilities = ready.capabilities
        status = self._status
        status.host_ready(ready.pid, capabilities, trio.current_time())
        if status.hosts > 1:
            self._telemetry.engine_restarted(status.model)
        log.info(
            "engine_ready",
            model=status.model,
            pid=ready.pid,
            engine=capabilities.engine,
            engine_version=capabilities.engine_version,
            slots=capabilities.slots,
            kv_blocks=capabilities.kv_blocks,
            window=capabilities.window,
            start_s=round(trio.current_time() - began, 3),
        )
        me.start_soon(self._read, link)
        me.start_soon(self._watch)

    async def handle(self, message: DriverMessage) -> None:
        """Pass a command on to the host. Raises HostLost."""
        match message:
            case Begin() if message.host != self._status.hosts:
                error = EngineUnavailable(retry_after_s=1.0)
                _tell(message.owner, GenerationLost(request=message.admit.request, error=error))
            case Begin():
                admit = message.admit
                self._live[admit.request] = _Live(message.owner, admit.slot)
                self._status.work_came(admit.request, trio.current_time())
                await faults.pause(Site.DRIVER_ADMIT)
                await self._send(admit)
            case PauseSlot():
                await self._pause(message.request)
            case ResumeSlot():
                await self._resume(message)
            case Abort():
                await self._abort(message.request)
            case TakeOver():
                self._successor = message.reply
                for request in (*self._live, *self._paused):
                    await self._abort(request)
                self._hand_over_when_empty()
            case _:
                assert_never(message)

    async def terminate(self) -> None:
        """End the host and tell every owner that its generation is gone."""
        self._closing = True
        self._status.host_gone()
        self._telemetry.engine_stats(self._status.model, self._status.kv_usage)
        generations = self._live | self._paused
        self._live, self._paused = {}, {}
        reason = self._lost or HostLost("engine driver ended")
        for request, generation in generations.items():
            _tell(generation.owner, GenerationLost(request=request, error=reason))
        assert self._link is not None
        await self._link.aclose(grace_s=self._stop_grace_s)

    async def _first_frame(self, link: EngineLink) -> Ready:
        while True:
            try:
                frame = await link.receive()
            except (HostLost, HostProtocolError) as error:
                raise HostStartFailed(str(error)) from error
            match frame:
                case Ready():
                    return frame
                case Fault():
                    raise HostStartFailed(f"{frame.code}: {frame.detail}")
                case Step() | Released() | Stats():
                    raise HostStartFailed(f"{type(frame).__name__} before Ready")
                case _:
                    assert_never(frame)

    async def _read(self, link: EngineLink) -> None:
        try:
            while True:
                frame = await link.receive()
                await faults.pause(Site.DRIVER_FRAME)
                self._status.heard_at = trio.current_time()
                match frame:
                    case Step():
                        self._on_step(frame)
                    case Released():
                        self._on_released(frame)
                    case Stats():
                        self._status.kv_usage = frame.kv_usage
                        self._telemetry.engine_stats(self._status.model, frame.kv_usage)
                    case Fault():
                        self._on_fault(frame)
                    case Ready():
                        raise HostProtocolError("a second Ready")
                    case _:
                        assert_never(frame)
        except (HostLost, HostProtocolError) as error:
            if self._closing:
                return
            self._lose(error)
            raise
        finally:
            # A driver that is cancelled for good never gets to terminate.
            self._status.host_gone()
            link.kill()
            if not self._closing:
                with trio.move_on_after(_REAP_S, shield=True):
                    await link.aclose(grace_s=0)

    async def _watch(self) -> None:
        """Kill a host that has gone silent. It reports every step, and when idle once a second."""
        status = self._status
        while not self._closing:
            now = trio.current_time()
            patience_s = status.silence_s - status.stalled_s(now)
            if patience_s <= 0:
                error = HostLost(status.stall(now))
                self._lose(error)
                raise error
            # Never for less than a moment: what is left of a float subtraction may be too little to
            # move the clock on.
            await trio.sleep(max(patience_s, _MOMENT_S))

    async def _send(self, command: HostCommand) -> None:
        assert self._link is not None
        try:
            await self._link.send(command)
        except HostLost as error:
            self._lose(error)
            raise

    async def _pause(self, request: EngineRequest) -> None:
        live = self._live.get(request)
        engine = self._status.capabilities
        if live is not None and not live.over and engine is not None and engine.pausable:
            await self._send(Pause(request=request, slot=live.slot))

    async def _resume(self, resume: ResumeSlot) -> None:
        if resume.host != self._status.hosts:
            return  # its owner has heard that its host is gone, and so are that host's slots
        request, slot = resume.request, resume.slot
        now = trio.current_time()
        live = self._paused.pop(request, None)
        if live is None:
            released = Released(slot=slot, request=request, reason=EndReason.FAILED, tokens=0)
            self._scheduler.tell_system(SlotReleased(released=released, at=now))
            return
        self._status.paused = len(self._paused)
        live.slot = slot
        live.decoding = False
        self._live[request] = live
        self._status.work_came(request, now, live.tokens)
        await self._send(Resume(request=request, slot=slot))

    async def _abort(self, request: EngineRequest) -> None:
        live = self._live.get(request) or self._paused.pop(request, None)
        if live is not None:
            self._status.paused = len(self._paused)
            live.over = True
            await self._send(Abort(request=request, slot=live.slot))

    def _hand_over_when_empty(self) -> None:
        if self._successor is not None and not self._live:
            assert self._status.capabilities is not None
            self._successor.send(
                Engine(host=self._status.hosts, capabilities=self._status.capabilities)
            )
            self._successor = None

    def _lose(self, error: HostLost | HostProtocolError) -> None:
        """At once, before anything can wait: no more work comes here, and a hung host is dead."""
        assert self._link is not None
        if self._lost is not None:
            return
        self._lost = error if isinstance(error, HostLost) else HostLost(str(error))
        self._status.ready = False
        self._link.kill()
        log.error(
            "engine_lost",
            model=self._status.model,
            pid=self._link.pid,
            reason=str(error),
            generations=len(self._live) + len(self._paused),
        )

    def _on_step(self, step: Step) -> None:
        status = self._status
        status.stepped(step.number, status.heard_at)
        self._telemetry.engine_stepped(status.model, step.duration_s)
        tokens = status.tokens
        decoding = 0
        for text in step.texts:
            live = self._live.get(text.request)
            if live is None:
                raise HostProtocolError(f"text for request {text.request}, which was not admitted")
            if live.decoding:
                decoding += 1
            elif text.tokens:
                live.decoding = True
                if not tokens[text.request]:
                    first = FirstToken(request=text.request, at=status.heard_at)
                    self._scheduler.tell_system(first)
            tokens[text.request] = text.tokens
            live.over = live.over or text.end in _ENDS
            _tell(live.owner, text)
        if step.duration_s:
            status.observe_step(step, decoding, status.heard_at)

    def _on_released(self, released: Released) -> None:
        request = released.request
        live = self._live.pop(request, None)
        if live is None:
            raise HostProtocolError(f"released request {request}, which was not admitted")
        self._status.tokens.pop(request, None)
        if released.reason is EndReason.PAUSED:
            if not live.over:  # otherwise the Abort that is under way makes the host forget it
                live.tokens = released.tokens
                self._paused[request] = live
                self._status.paused = len(self._paused)
        elif not live.over:
            # Whatever the reason, nobody else will tell the owner that no more text comes.
            error = _error(released, live.fault)
            _tell(live.owner, GenerationLost(request=request, error=error))
        self._scheduler.tell_system(SlotReleased(released=released, at=self._status.heard_at))
        self._hand_over_when_empty()

    def _on_fault(self, fault: Fault) -> None:
        if fault.request is None:
            log.warning("engine_fault", code=fault.code, detail=fault.detail)
            return
        # The detail may quote what the client sent, and that is never logged.
        log.warning("engine_fault", code=fault.code, request=fault.request)
        if (live := self._live.get(fault.request)) is not None:
            live.fault = fault


def _error(released: Released, fault: Fault | None) -> AntiphonError:
    """Why a generation was released without an end."""
    match fault:
        case None:
            return GenerationFailed(released.reason.value, "the engine gave no reason")
        case Fault(code="unavailable"):
            return EngineUnavailable(retry_after_s=_UNAVAILABLE_S)
        case Fault(code="lost"):
            return HostLost(fault.detail)
        case _:
            return GenerationFailed(fault.code, fault.detail)


def _tell(owner: Ref[GenerationNews], news: GenerationNews) -> None:
    """An owner that can't keep up must not go on with a hole in its text."""
    try:
        owner.tell(news)
    except MailboxFull as error:
        log.error("news_undelivered", path=owner.path, reason=str(error))
        owner.tell_system(GenerationLost(request=news.request, error=error))
