"""What anybody may know of an engine without asking it: written by its driver, read by health
checks, status pages and admission, and so true also while the driver is stuck."""

from collections.abc import Callable
from dataclasses import dataclass, field

from antiphon.events import Capabilities, Step
from antiphon.ids import EngineRequest, ModelName

StepObserver = Callable[[Step, int, float], None]
"""A step, how many answers went on in it (one that got its first token, or goes on after a pause,
was prompt), and `current_time()` when it was heard of."""


def _unobserved(step: Step, decoding: int, now: float) -> None: ...


@dataclass(slots=True, kw_only=True)
class EngineStatus:
    """One owner, the driver; `current_time()` seconds. `tokens` is by live request: while it has
    entries, the engine has work; those that are paused have none. `hosts` counts those that became
    ready, the present one included.

    `observe_step` is its scheduler's to set: called for every step whose duration is known, so it
    must be quick and must not raise.
    """

    model: ModelName
    silence_s: float
    capabilities: Capabilities | None = None
    ready: bool = False
    pid: int | None = None
    hosts: int = 0
    starts: int = 0
    """Starts that were tried since a host was last ready."""
    steps: int = 0
    heard_at: float = float("-inf")
    moved_at: float = float("-inf")
    """When the step counter last moved, or work came to an engine that had none."""
    kv_usage: float = 0.0
    tokens: dict[EngineRequest, int] = field(default_factory=dict)
    paused: int = 0
    """Generations that the host keeps without a slot."""
    observe_step: StepObserver = _unobserved

    def host_starting(self, silence_s: float) -> None:
        """A driver is about to start a host, which may be silent for that long."""
        self.silence_s = silence_s
        self.starts += 1

    @property
    def is_restarting(self) -> bool:
        """Whether a host is being replaced, and no start has failed yet."""
        return not self.ready and self.starts <= 1

    def host_ready(self, pid: int, capabilities: Capabilities, now: float) -> None:
        """A new host, which has done nothing yet. Pid 0 is none: it is no process of ours."""
        self.capabilities = capabilities
        self.pid = pid or None
        self.hosts += 1
        self.starts = 0
        self.steps = 0
        self.heard_at = self.moved_at = now
        self.ready = True

    def host_gone(self) -> None:
        """What was true of a host and is true of none. Its capabilities are the next one's too."""
        self.ready = False
        self.pid = None
        self.kv_usage = 0.0
        self.tokens.clear()
        self.paused = 0

    def work_came(self, request: EngineRequest, now: float, tokens: int = 0) -> None:
        """Of an answer that goes on there are `tokens` already."""
        if not self.tokens:
            self.moved_at = now
        self.tokens[request] = tokens

    def stepped(self, number: int, now: float) -> None:
        """The same number again is no progress."""
        if number != self.steps:
            self.steps = number
            self.moved_at = now

    def stalled_s(self, now: float) -> float:
        """How long there has been no sign of life: with work, no step; without, no frame."""
        return now - (min(self.heard_at, self.moved_at) if self.tokens else self.heard_at)

    def stall(self, now: float) -> str:
        """The stall in words."""
        what = "no step, with work," if self.tokens else "no frame"
        return f"{what} for {self.stalled_s(now):.1f} s"

    def problem(self, now: float) -> str | None:
        """Why no work should be sent here now, or None. An engine that has work and whose step
        counter stands still is not ready, however alive its process is."""
        if not self.ready:
            return "starting"
        if self.stalled_s(now) > self.silence_s / 2:
            return self.stall(now)
        return None
