"""What anybody may know of an engine without asking it: written by its driver, read by health
checks, status pages and admission, and so true also while the driver is stuck."""

from dataclasses import dataclass, field

from antiphon.events import Capabilities
from antiphon.ids import EngineRequest, ModelName


@dataclass(slots=True, kw_only=True)
class EngineStatus:
    """One owner, the driver; `current_time()` seconds. `tokens` is by live request."""

    model: ModelName
    silence_s: float
    capabilities: Capabilities | None = None
    ready: bool = False
    pid: int | None = None
    steps: int = 0
    last_heard_at: float = float("-inf")
    kv_usage: float = 0.0
    tokens: dict[EngineRequest, int] = field(default_factory=dict)

    def problem(self, now: float) -> str | None:
        """Why no work should be sent here now, or None. An engine that has work and whose step
        counter stands still is not ready, however alive its process is."""
        if not self.ready:
            return "starting"
        silent_s = now - self.last_heard_at
        if silent_s > self.silence_s / 2:
            return f"silent for {silent_s:.1f} s"
        return None
