"""The upstream as its driver sees it: an EngineLink that speaks the frames of a host and has no
process. Each Admit is a task; its Released comes when that task's socket is closed.
"""

import math
from collections import deque

import structlog
import trio

from antiphon.engine.upstream.dialect import Flavour
from antiphon.engine.upstream.generation import Generation, Means
from antiphon.engine.upstream.imagery import sees
from antiphon.engine.upstream.trouble import CODES, Kind, Trouble
from antiphon.errors import HostLost, HostProtocolError
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
)
from antiphon.ids import EngineRequest, SlotIndex

log = structlog.get_logger(__name__)

_HEARTBEAT_S = 1.0
_BLOCK = 16
_UNTOLD = 0.0
"""How long a step took: nobody knows."""


class UpstreamLink:
    """`run` is its life, in its service's nursery; everything else is the driver's."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._live: dict[EngineRequest, trio.CancelScope] = {}
        self._by_slot: dict[SlotIndex, EngineRequest] = {}
        self._texts: list[SlotText] = []
        self._frames: deque[HostFrame] = deque()
        self._steps = 0
        self._news = trio.Event()
        self._ended = trio.Event()
        self._lost: str | None = None

    @property
    def pid(self) -> int:
        """0: there is no process to kill."""
        return 0

    # what the driver does

    async def send(self, command: HostCommand) -> None:
        """Raises HostLost, and HostProtocolError for what its driver must not ask."""
        await trio.lowlevel.checkpoint()
        if self._lost is not None or self._nursery is None:
            raise HostLost(self._lost or "it has not begun")
        match command:
            case Admit():
                self._admit(command, self._nursery)
            case Abort():
                if (scope := self._live.get(command.request)) is not None:
                    scope.cancel("aborted")
            case Pause():
                pass  # no replica could go on later, so the answer goes on now
            case Resume():
                raise HostProtocolError(f"request {command.request} is not paused")
            case Halt():
                self._lose("halted")

    async def receive(self) -> HostFrame:
        """The next frame; texts that came together are one Step. Raises HostLost."""
        await trio.lowlevel.checkpoint()
        while True:
            if self._frames:
                return self._frames.popleft()
            if self._texts:
                return self._step()
            if self._lost is not None:
                raise HostLost(self._lost)
            self._news = trio.Event()
            await self._news.wait()

    async def aclose(self, *, grace_s: float) -> None:
        """Cancel everything and wait for the sockets to close. Idempotent."""
        self.kill()
        # Also when nothing is waited for: a socket is closed in a moment.
        with trio.move_on_after(max(grace_s, 1.0), shield=True):
            if self._nursery is not None:
                await self._ended.wait()
        await trio.lowlevel.checkpoint_if_cancelled()

    def kill(self) -> None:
        """Cancel everything now. Idempotent."""
        self._lose("closed")

    # its life

    async def run(self) -> None:
        """Until it is closed, or its service ends."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    await self._serve()
        finally:
            self._lose("its service ended")
            self._ended.set()

    async def _serve(self) -> None:
        window = await self._window()
        if window is None:
            detail = "no replica says how long its window is: set upstream.window"
            self._say(Fault(code="start_failed", detail=detail))
            return
        self._say(Ready(pid=self.pid, capabilities=self._capabilities(window)))
        await self._beat()

    async def _window(self) -> int | None:
        """As it is set, or as the first replica says that does; None when those that are up don't.

        One that is slow to come is waited for: how long is the driver's business.
        """
        fleet, window = self._means.fleet, self._means.settings.window
        while not window:
            facts = [replica.facts for replica in fleet.up if replica.facts is not None]
            windows = [each.window for each in facts if each.window is not None]
            if facts:
                return min(windows) if windows else None
            await fleet.news()
        return window

    def _capabilities(self, window: int) -> Capabilities:
        settings = self._means.settings
        facts = [replica.facts for replica in self._means.fleet.up if replica.facts is not None]
        engines = {each.engine for each in facts}
        flavours = {each.flavour for each in facts}
        return Capabilities(
            engine="upstream",
            engine_version=",".join(sorted(engine for engine in engines if engine)),
            slots=settings.slots,
            # What KV the replicas have is theirs to know; here slots alone bound admission.
            kv_blocks=settings.slots * math.ceil(window / _BLOCK),
            block_size=_BLOCK,
            window=window,
            special_tokens=[],
            logprobs=settings.logprobs,
            json_schema=settings.json_schema,
            seed=settings.seed,
            extras=settings.extras != "off",
            min_tokens=settings.extras != "off" and Flavour.LLAMA_CPP not in flavours,
            prefix_cache=True,  # every server that is known has one, and its conversations stay put
            counts_prompts=not self._means.counter.is_exact,
            isolates_tenants=settings.cache_salt,
            vision=sees(settings, facts) is True,
            image_tokens=settings.image_tokens,
        )

    async def _beat(self) -> None:
        """Say each second that this side lives: the replicas' silence is judged for each generation
        alone, and must not look like a hung host."""
        while True:
            usage = len(self._live) / self._means.settings.slots
            self._say(Stats(steps=self._steps, live=len(self._live), kv_usage=usage))
            if self._live:
                self._say(self._step())
            await trio.sleep(_HEARTBEAT_S)

    def _admit(self, admit: Admit, nursery: trio.Nursery) -> None:
        """Raises HostProtocolError, which is a defect of the driver's side."""
        if admit.slot in self._by_slot or not 0 <= admit.slot < self._means.settings.slots:
            raise HostProtocolError(f"slot {admit.slot} is not free")
        scope = trio.CancelScope()
        self._live[admit.request] = scope
        self._by_slot[admit.slot] = admit.request
        nursery.start_soon(self._generate, admit, scope, name=f"upstream/{admit.request}")

    async def _generate(self, admit: Admit, scope: trio.CancelScope) -> None:
        generation = Generation(admit, self._means, self._text)
        reason = EndReason.CANCELLED
        try:
            with scope:
                reason = await generation.run()
        except Trouble as trouble:
            reason = EndReason.FAILED
            if trouble.kind not in _CLIENTS_OWN:
                # What the replica says may quote the client, and that is shown and never logged.
                log.warning("upstream_failed", request=admit.request, reason=str(trouble))
            detail = trouble.message or _SENTENCES.get(trouble.kind) or trouble.fact
            self._say(Fault(code=CODES[trouble.kind], detail=detail, request=admit.request))
        del self._live[admit.request]
        del self._by_slot[admit.slot]
        self._say(
            Released(
                slot=admit.slot, request=admit.request, reason=reason, tokens=generation.tokens
            )
        )

    def _text(self, text: SlotText) -> None:
        self._texts.append(text)
        self._news.set()

    def _say(self, frame: HostFrame) -> None:
        if self._texts:  # a slot's last text comes before its Released
            self._frames.append(self._step())
        self._frames.append(frame)
        self._news.set()

    def _step(self) -> Step:
        texts, self._texts = self._texts, []
        self._steps += 1
        return Step(number=self._steps, duration_s=_UNTOLD, texts=texts)

    def _lose(self, reason: str) -> None:
        if self._lost is None:
            self._lost = reason
            self._news.set()
        self._scope.cancel(reason)


_CLIENTS_OWN = frozenset({Kind.CONTEXT, Kind.INVALID})
_SENTENCES = {Kind.CONTEXT: "The messages and the answer don't fit the model's context length."}
