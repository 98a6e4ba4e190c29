"""The engine driver: owns one engine host, passes commands to it and its news to their owners.

Keeps the rule that silence is a failure: a host that says nothing for `silence_s`, dies, or breaks
the protocol is killed, every generation it held ends with a typed error, and the driver crashes so
that its supervisor starts both anew. Knows frames, not queues.
"""

from typing import assert_never

import structlog
import trio

from antiphon.actors.actor import ActorContext
from antiphon.actors.engines.messages import (
    AskCapabilities,
    Begin,
    DriverMessage,
    GenerationLost,
    GenerationNews,
    SlotReleased,
)
from antiphon.actors.engines.status import EngineStatus
from antiphon.actors.ref import Ref
from antiphon.errors import (
    EngineUnavailable,
    GenerationFailed,
    HostLost,
    HostProtocolError,
    HostStartFailed,
    MailboxFull,
)
from antiphon.events import Abort, EndReason, Fault, Ready, Released, Stats, Step
from antiphon.ids import EngineRequest
from antiphon.ports import EngineLauncher, EngineLink, Telemetry

log = structlog.get_logger(__name__)

_REAP_S = 5.0
"""A killed process is reaped in milliseconds, unless the kernel is stuck too."""


class EngineDriver:
    """One incarnation drives one host process; `status` outlives both."""

    def __init__(
        self,
        launcher: EngineLauncher,
        status: EngineStatus,
        scheduler: Ref[SlotReleased],
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
        self._owners: dict[EngineRequest, Ref[GenerationNews]] = {}
        self._faults: dict[EngineRequest, Fault] = {}
        self._lost: HostLost | None = None
        self._closing = False
        self._incarnation = 0

    async def start(self, me: ActorContext[DriverMessage]) -> None:
        """Launch a host and wait for its Ready. Raises HostStartFailed."""
        began = trio.current_time()
        link = await self._launcher.launch()
        try:
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
        self._incarnation = me.incarnation
        capabilities = ready.capabilities
        status = self._status
        status.capabilities = capabilities
        status.pid = ready.pid
        status.last_heard_at = trio.current_time()
        status.ready = True
        if me.incarnation > 1:
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
        me.start_soon(self._watch, link)

    async def handle(self, message: DriverMessage) -> None:
        """Pass a command on to the host. Raises HostLost."""
        assert self._link is not None
        match message:
            case Begin() if message.incarnation != self._incarnation:
                error = EngineUnavailable(retry_after_s=1.0)
                _tell(message.owner, GenerationLost(request=message.admit.request, error=error))
            case Begin():
                self._owners[message.admit.request] = message.owner
                self._status.tokens[message.admit.request] = 0
                await self._link.send(message.admit)
            case Abort():
                if message.request in self._owners:
                    await self._link.send(message)
            case AskCapabilities():
                assert self._status.capabilities is not None
                message.reply.send(self._status.capabilities)
            case _:
                assert_never(message)

    async def terminate(self) -> None:
        """End the host and tell every owner that its generation is gone."""
        self._closing = True
        self._status.ready = False
        self._status.pid = None
        self._status.tokens.clear()
        owners, self._owners = self._owners, {}
        reason = self._lost or HostLost("engine driver ended")
        for request, owner in owners.items():
            _tell(owner, GenerationLost(request=request, error=reason))
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
                self._status.last_heard_at = trio.current_time()
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
            self._lose(link, error)
            raise
        finally:
            # A driver that is cancelled for good never gets to terminate.
            link.kill()

    async def _watch(self, link: EngineLink) -> None:
        """Kill a host that has gone silent. It reports every step, and when idle once a second."""
        silence_s = self._status.silence_s
        while True:
            silent_s = trio.current_time() - self._status.last_heard_at
            if silent_s >= silence_s:
                error = HostLost(f"no frame for {silent_s:.1f} s")
                self._lose(link, error)
                raise error
            await trio.sleep(silence_s - silent_s)

    def _lose(self, link: EngineLink, error: HostLost | HostProtocolError) -> None:
        """At once, before anything can wait: no more work comes here, and a hung host is dead."""
        self._lost = error if isinstance(error, HostLost) else HostLost(str(error))
        self._status.ready = False
        link.kill()
        log.error(
            "engine_lost",
            model=self._status.model,
            pid=link.pid,
            reason=str(error),
            generations=len(self._owners),
        )

    def _on_step(self, step: Step) -> None:
        status = self._status
        status.steps = step.number
        self._telemetry.engine_stepped(status.model, step.duration_s)
        tokens = status.tokens
        for text in step.texts:
            owner = self._owners.get(text.request)
            if owner is None:
                raise HostProtocolError(f"text for request {text.request}, which was not admitted")
            tokens[text.request] = text.tokens
            _tell(owner, text)

    def _fail(self, released: Released, owner: Ref[GenerationNews]) -> None:
        """Tell the owner when the slot came back for a reason that is the engine's."""
        fault = self._faults.pop(released.request, None)
        match released.reason:
            case EndReason.STOP | EndReason.LENGTH | EndReason.CANCELLED:
                return
            case EndReason.CAPACITY | EndReason.FAILED:
                error = GenerationFailed(
                    code=fault.code if fault else released.reason.value,
                    detail=fault.detail if fault else "the engine gave no reason",
                )
                _tell(owner, GenerationLost(request=released.request, error=error))
            case _:
                assert_never(released.reason)

    def _on_released(self, released: Released) -> None:
        owner = self._owners.pop(released.request, None)
        if owner is None:
            raise HostProtocolError(f"released request {released.request}, which was not admitted")
        self._status.tokens.pop(released.request, None)
        self._fail(released, owner)
        self._scheduler.tell_system(SlotReleased(released=released, at=trio.current_time()))

    def _on_fault(self, fault: Fault) -> None:
        if fault.request is None:
            log.warning("engine_fault", code=fault.code, detail=fault.detail)
            return
        # The detail may quote what the client sent, and that is never logged.
        log.warning("engine_fault", code=fault.code, request=fault.request)
        self._faults[fault.request] = fault


def _tell(owner: Ref[GenerationNews], news: GenerationNews) -> None:
    """An owner that can't keep up must not go on with a hole in its text."""
    try:
        owner.tell(news)
    except MailboxFull as error:
        log.error("news_undelivered", path=owner.path, reason=str(error))
        owner.tell_system(GenerationLost(request=news.request, error=error))
