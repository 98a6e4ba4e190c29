"""What anybody may know of the embedding process without asking its actor: written by it, read by
status pages and metrics, and so true also while it is stuck."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingView:
    """The process at one moment. Counters are totals over all processes that there were."""

    state: str
    """unused (none was needed yet, or since the last one was lost), starting or ready."""
    pid: int | None
    starts: int
    questions: int
    passages: int
    waiting: int
    """Passages that it was given and has not embedded."""
    last_exit: str | None


@dataclass(slots=True, kw_only=True)
class EmbedderStatus:
    """One worker over all its incarnations; times are Trio's."""

    pid: int | None = None
    ready: bool = False
    starts: int = 0
    questions: int = 0
    passages: int = 0
    waiting: int = 0
    heard_at: float = float("-inf")
    embedded_at: float = float("-inf")
    """When passages were last embedded, or first given to it while it had none."""
    last_exit: str | None = None

    def gone(self, reason: str) -> None:
        self.pid = None
        self.ready = False
        self.waiting = 0
        self.last_exit = reason

    def view(self) -> EmbeddingView:
        return EmbeddingView(
            state="unused" if self.pid is None else "ready" if self.ready else "starting",
            pid=self.pid,
            starts=self.starts,
            questions=self.questions,
            passages=self.passages,
            waiting=self.waiting,
            last_exit=self.last_exit,
        )
