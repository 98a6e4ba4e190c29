"""What anybody may know of the policy without asking its actors: written by them, read by health
checks, metrics and status pages, and so true also while they are stuck."""

from collections.abc import Callable
from dataclasses import dataclass

LOAD_S = 30.0
"""What a judge process may take to load one version of the rules: ten thousand phrases take five
seconds, on a machine with time to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeView:
    """One judge process at one moment. Counters are totals over all its incarnations."""

    name: str
    state: str
    """starting, idle, busy, loading, stalled or down."""
    pid: int | None
    starts: int
    batches: int
    texts: int
    last_exit: str | None


@dataclass(slots=True, kw_only=True)
class WorkerStatus:
    """One worker over all its incarnations; times are Trio's."""

    name: str
    silence_s: Callable[[], float]
    pid: int | None = None
    ready: bool = False
    loading: bool = False
    """It compiles rules, and says nothing until that is done."""
    busy: bool = False
    starts: int = 0
    batches: int = 0
    texts: int = 0
    heard_at: float = float("-inf")
    """When it last said something, or was last given something to do while it had nothing."""
    last_exit: str | None = None

    def stalled_s(self, now: float) -> float:
        return now - self.heard_at

    def works(self, now: float) -> bool:
        """Whether texts that are given to it now are probably judged in time."""
        return self.ready and self.stalled_s(now) < self.patience_s() / 2

    def patience_s(self) -> float:
        """How long it may say nothing."""
        return LOAD_S if self.loading else self.silence_s()

    def gone(self, reason: str) -> None:
        self.pid = None
        self.ready = self.busy = self.loading = False
        self.last_exit = reason

    def view(self, now: float) -> JudgeView:
        if not self.ready:
            state = "down" if self.pid is None else "starting"
        elif not self.works(now):
            state = "stalled"
        else:
            state = "loading" if self.loading else "busy" if self.busy else "idle"
        return JudgeView(
            name=self.name,
            state=state,
            pid=self.pid,
            starts=self.starts,
            batches=self.batches,
            texts=self.texts,
            last_exit=self.last_exit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyView:
    """The policy at one moment, as operators see it."""

    version: str
    source: str
    rules: int
    shadows: int
    model: str
    problem: str | None
    """Why no text is judged now, or why some aren't."""
    refused: str | None
    """What is wrong with a rules' file that was not taken; those before it stay in force."""
    versions_in_use: tuple[str, ...]
    waiting: int
    """Texts that wait for a judge."""
    remembered: int
    """Verdicts that need not be found again."""
    events_waiting: int
    events_dropped: int
    judges: tuple[JudgeView, ...]
