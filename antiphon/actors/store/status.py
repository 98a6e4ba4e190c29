"""What anybody may know of the store without asking it: written by its actor and its client, read
by health checks and status pages, and so true also while the store is stuck."""

from dataclasses import dataclass, field

from antiphon.actors.breaker import Breaker, BreakerSpec, BreakerStatistics, Circuit, Verdict
from antiphon.errors import RequestError, StoreFailed, StoreUnavailable

_BREAKER = BreakerSpec(failures=5, reset_s=0.5, max_reset_s=2.0)
"""Short, since a probe is one cheap operation and everybody waits for the store to be back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """The store at one moment. Counters are totals over all incarnations."""

    ready: bool
    problem: str | None
    opened: int
    running: int
    done: int
    unavailable: int
    failed: int
    full: bool
    breaker: BreakerStatistics


def judge(error: Exception) -> Verdict:
    """What the end of a unit says about the database. A refusal, also for want of disk, is an
    answer; a full mailbox or a defect of ours says nothing."""
    match error:
        case StoreUnavailable():
            return Verdict.FAILURE
        case RequestError() | StoreFailed():
            return Verdict.SUCCESS
        case _:
            return Verdict.NOTHING


@dataclass(slots=True, kw_only=True)
class StoreStatus:
    """One for a store, over all incarnations of its actor."""

    ready: bool = False
    reason: str | None = None
    """Why it is not ready; None before the first attempt to open it has ended."""
    opened: int = 0
    """How often the database was opened; after the first time no failure is for good."""
    running: int = 0
    done: int = 0
    unavailable: int = 0
    failed: int = 0
    full: bool = False
    """Whether the last write failed for want of space."""
    breaker: Breaker = field(default_factory=lambda: Breaker("store", _BREAKER, judge=judge))

    def is_open(self) -> None:
        self.ready = True
        self.reason = None
        self.opened += 1

    def is_closed(self, reason: str | None = None) -> None:
        self.ready = False
        self.reason = reason

    def problem(self) -> str | None:
        """Why no work should be sent here now, or None. With the circuit open, only until a probe
        may pass: without traffic, nobody else would close it."""
        if not self.ready:
            return "starting" if self.reason is None else f"unavailable: {self.reason}"
        circuit = self.breaker.statistics()
        if circuit.circuit == Circuit.OPEN.value and circuit.retry_after_s:
            return f"unavailable: it failed {circuit.failures_in_row} times in a row"
        return None

    def concern(self) -> str | None:
        """What an operator has to see to although work may come: reading goes on."""
        return "no space left: what must be stored is refused" if self.full else None

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(
            ready=self.ready,
            problem=self.problem(),
            opened=self.opened,
            running=self.running,
            done=self.done,
            unavailable=self.unavailable,
            failed=self.failed,
            full=self.full,
            breaker=self.breaker.statistics(),
        )
