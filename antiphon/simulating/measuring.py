"""Watches a real engine work, to learn what its steps cost: prompts, streams, and both mixed.
Speaks frames to an engine without a server around it, as `engines verify` does."""

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from antiphon.errors import HostStartFailed
from antiphon.events import Capabilities, Fault, HostCommand, HostFrame, Ready, Sampling, Step
from antiphon.ids import EngineRequest
from antiphon.ports import EngineLauncher, EngineLink
from antiphon.progress import Told, telling, untold
from antiphon.simulating.calibration import Observation
from antiphon.verifying.client import Client

_ALONE = (64, 200, 480, 900, 1500)
"""Lengths of prompts that are prefilled with nothing else to do."""
_STREAMS = (1, 2, 4, 8, 16, 24, 32, 64, 128)
"""At once, up to all slots."""
_SHORT, _LONG = 16, 400
"""Tokens of the prompts of those streams."""
_ANSWER = 32
_MIXED = 64
_TOKEN_IDS = (300, 5000)
"""Ordinary tokens in every vocabulary: what they say doesn't matter."""
_END_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was seen of an engine, and what it is."""

    capabilities: Capabilities
    steps: tuple[Observation, ...]


async def watch(
    launcher: EngineLauncher,
    *,
    start_timeout_s: float,
    rounds: int = 2,
    seed: int = 1,
    told: Told = untold,
) -> Watched:
    """Start the engine, work it for a minute, and end it. Raises HostStartFailed, HostLost."""
    link = await launcher.launch()
    try:
        capabilities = await _ready(link, start_timeout_s)
        tapped = _Tapped(link)
        client = Client(tapped, capabilities)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.read)
            await _Exercises(client, tapped, random.Random(seed)).run(rounds, told)
            nursery.cancel_scope.cancel()
    except BaseException:
        link.kill()
        raise
    finally:
        with trio.move_on_after(2 * _END_S, shield=True):
            await link.aclose(grace_s=_END_S)
    return Watched(capabilities=capabilities, steps=tuple(tapped.mirror.observations))


async def _ready(link: EngineLink, timeout_s: float) -> Capabilities:
    with trio.move_on_after(timeout_s):
        match await link.receive():
            case Ready() as ready:
                return ready.capabilities
            case Fault() as fault:
                raise HostStartFailed(f"{fault.code}: {fault.detail}")
            case other:
                raise HostStartFailed(f"{type(other).__name__} before Ready")
    raise HostStartFailed(f"not ready after {timeout_s:g} s")


@dataclass(slots=True)
class Mirror:
    """What is in the engine, found from what it is sent and what it says: what was in a step is
    known once it is over. An engine works prompts off in the order in which they came."""

    observations: list[Observation] = field(default_factory=list)
    _prompts: deque[tuple[EngineRequest, int]] = field(default_factory=deque)
    _done: dict[EngineRequest, int] = field(default_factory=dict)
    _streams: dict[EngineRequest, int] = field(default_factory=dict)
    _last_at: float | None = None

    def admitted(self, request: EngineRequest, prompt_tokens: int) -> None:
        self._prompts.append((request, prompt_tokens))
        self._done[request] = 0

    def stepped(self, step: Step, at: float) -> None:
        decoding, context = len(self._streams), sum(self._streams.values())
        left, prefill_context = step.prefilled, 0
        for request, tokens in self._prompts:
            chunk = min(left, tokens - self._done[request])
            prefill_context += chunk * self._done[request]
            self._done[request] += chunk
            left -= chunk
        if self._last_at is not None and (decoding or step.prefilled):
            self.observations.append(
                Observation(
                    seconds=at - self._last_at,
                    decoding=decoding,
                    context=context,
                    prefill=step.prefilled,
                    prefill_context=prefill_context,
                )
            )
        for text in step.texts:
            prompt = next((n for each, n in self._prompts if each == text.request), None)
            if prompt is not None:
                self._prompts.remove((text.request, prompt))
                self._done.pop(text.request)
                self._streams[text.request] = prompt
            if text.request in self._streams:
                self._streams[text.request] += 1
            if text.end is not None:
                self._streams.pop(text.request, None)
        # From a step that leaves nothing to do to the next one, the engine waits.
        self._last_at = at if self._streams or self._prompts else None


class _Tapped:
    """A link that tells a mirror what goes over it, and when."""

    def __init__(self, link: EngineLink) -> None:
        self._link = link
        self.mirror = Mirror()

    @property
    def pid(self) -> int:
        return self._link.pid

    async def send(self, command: HostCommand) -> None:
        await self._link.send(command)

    async def receive(self) -> HostFrame:
        frame = await self._link.receive()
        if isinstance(frame, Step):
            self.mirror.stepped(frame, trio.current_time())
        return frame

    async def aclose(self, *, grace_s: float) -> None:
        await self._link.aclose(grace_s=grace_s)

    def kill(self) -> None:
        self._link.kill()


class _Exercises:
    def __init__(self, client: Client, tapped: _Tapped, dice: random.Random) -> None:
        self._client = client
        self._mirror = tapped.mirror
        self._dice = dice

    async def run(self, rounds: int, told: Told) -> None:
        slots, window = self._client.capabilities.slots, self._client.capabilities.window
        for _ in telling(range(rounds), rounds, told):
            for length in _ALONE:
                if length + _ANSWER < window:
                    await self._together([length], _ANSWER // 4)
            for count in _STREAMS:
                if count <= slots:
                    await self._together([_SHORT] * count, _ANSWER)
            for count in (slots // 4, slots // 2):
                await self._together([_LONG] * max(count, 1), _ANSWER)
            mixed = [
                min(int(self._dice.lognormvariate(4.5, 1.0)) + 8, window // 4)
                for _ in range(_MIXED)
            ]
            await self._together(mixed, _ANSWER)

    async def _together(self, lengths: Iterable[int], answer: int) -> None:
        """All at once, as far as there are slots, each as long as `answer` or up to twice that."""
        requests: list[EngineRequest] = []
        for length in lengths:
            prompt = [self._dice.randrange(*_TOKEN_IDS) for _ in range(length)]
            while not self._client.free:
                await self._client.over(requests.pop(0))
            self._mirror.admitted(EngineRequest(len(self._client.answers) + 1), length)
            requests.append(
                await self._client.admit(
                    prompt,
                    max_tokens=self._dice.randint(answer, 2 * answer),
                    sampling=Sampling(temperature=0.2, top_p=0.9, seed=1, ignore_eos=True),
                )
            )
        for request in requests:
            await self._client.over(request)
