"""A circuit breaker: after failures in a row it refuses calls at once, then lets one through.

A permit, in a `with` block, tells it how its call went. It reads the clock and never waits.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import assert_never

import structlog
import trio

from antiphon.errors import RequestError, SpecError

log = structlog.get_logger(__name__)


class Circuit(enum.Enum):
    CLOSED = "closed"
    """Calls pass; failures in a row are counted."""
    OPEN = "open"
    """Calls are refused until the reset time is over."""
    HALF_OPEN = "half_open"
    """One call is out to see; the others are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSpec:
    """Opens after `failures` in a row, for `reset_s`; each probe that fails makes that longer by
    `factor`, up to `max_reset_s`. Raises SpecError."""

    failures: int = 5
    reset_s: float = 1.0
    factor: float = 2.0
    max_reset_s: float = 30.0

    def __post_init__(self) -> None:
        problem = None
        if self.failures < 1:
            problem = "failures must be at least 1"
        elif not 0 < self.reset_s <= self.max_reset_s < math.inf:
            problem = "needs 0 < reset_s <= max_reset_s"
        elif not 1 <= self.factor < math.inf:
            problem = "factor must be at least 1"
        if problem is not None:
            raise SpecError("breaker", problem)


@dataclass(frozen=True, slots=True)
class Refused:
    """The call must not be made; the circuit may let one through after `retry_after_s`."""

    retry_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerStatistics:
    """A breaker at one moment. Counters are totals."""

    name: str
    circuit: str
    failures_in_row: int
    reset_s: float
    """How long it is open, or would be next time."""
    retry_after_s: float | None
    """Until a probe may pass; None while calls pass."""
    admitted: int
    refused: int
    failed: int
    opened: int
    stale: int
    """Results that came after the circuit had changed, and so changed nothing."""


class Verdict(enum.Enum):
    """What the end of a call says about the callee."""

    SUCCESS = "success"
    FAILURE = "failure"
    NOTHING = "nothing"
    """As if the caller had left: a probe's place is free again."""


def verdict_on(error: Exception) -> Verdict:
    """A refusal of one request shows that the callee works; everything else is a failure, a
    deadline that passed included."""
    return Verdict.SUCCESS if isinstance(error, RequestError) else Verdict.FAILURE


class Breaker:
    """One for each callee. `admit` before a call; nobody waits in here."""

    def __init__(
        self,
        name: str,
        spec: BreakerSpec = BreakerSpec(),
        *,
        judge: Callable[[Exception], Verdict] = verdict_on,
    ) -> None:
        self._name = name
        self._spec = spec
        self.judge = judge
        self._circuit = Circuit.CLOSED
        self._in_row = 0
        self._reset_s = spec.reset_s
        self._until = -math.inf
        self._era = 0
        self._admitted = self._refused = self._failed = self._opened = self._stale = 0

    def admit(self, now: float | None = None) -> "Permit | Refused":
        """Whether a call may be made now. A permit must be used, in a `with` block."""
        now = trio.current_time() if now is None else now
        if self._circuit is Circuit.OPEN and now >= self._until:
            self._turn(Circuit.HALF_OPEN)
        elif self._circuit is not Circuit.CLOSED:
            self._refused += 1
            return Refused(max(0.0, self._until - now))
        self._admitted += 1
        return Permit(self, self._era)

    def succeeded(self, era: int) -> None:
        """For a permit: its call was answered. It closes the circuit only as the probe."""
        if self._is_stale(era):
            return
        self._in_row = 0
        if self._circuit is Circuit.HALF_OPEN:
            self._reset_s = self._spec.reset_s
            self._turn(Circuit.CLOSED)
            log.info("circuit_closed", name=self._name)

    def failed(self, era: int, now: float) -> None:
        """For a permit: its call failed."""
        self._failed += 1
        if self._is_stale(era):
            return
        self._in_row += 1
        if self._circuit is Circuit.HALF_OPEN:
            self._reset_s = min(self._spec.max_reset_s, self._reset_s * self._spec.factor)
            self._open(now)
        elif self._in_row >= self._spec.failures:
            self._open(now)

    def abandoned(self, era: int) -> None:
        """For a permit: the caller left, so nothing is known. A probe's place is free again."""
        if not self._is_stale(era) and self._circuit is Circuit.HALF_OPEN:
            self._turn(Circuit.OPEN)

    def statistics(self) -> BreakerStatistics:
        closed = self._circuit is Circuit.CLOSED
        return BreakerStatistics(
            name=self._name,
            circuit=self._circuit.value,
            failures_in_row=self._in_row,
            reset_s=self._reset_s,
            retry_after_s=None if closed else max(0.0, self._until - trio.current_time()),
            admitted=self._admitted,
            refused=self._refused,
            failed=self._failed,
            opened=self._opened,
            stale=self._stale,
        )

    def _open(self, now: float) -> None:
        self._opened += 1
        self._until = now + self._reset_s
        self._turn(Circuit.OPEN)
        log.warning(
            "circuit_opened",
            name=self._name,
            failures_in_row=self._in_row,
            next_try_s=round(self._reset_s, 3),
        )

    def _turn(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._era += 1

    def _is_stale(self, era: int) -> bool:
        # A call that was admitted before the circuit changed says nothing about now: a late success
        # must not close it, a late failure must not keep it open longer.
        stale = era != self._era
        self._stale += stale
        return stale


class Permit:
    """The right to make one call. The deadline belongs inside the block, where its passing is a
    failure: a cancellation from outside says nothing about the callee."""

    __slots__ = ("_breaker", "_era")

    def __init__(self, breaker: Breaker, era: int) -> None:
        self._breaker = breaker
        self._era = era

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        breaker = self._breaker
        match error:
            case None:
                verdict = Verdict.SUCCESS
            case Exception():
                verdict = breaker.judge(error)
            case _:
                verdict = Verdict.NOTHING
        match verdict:
            case Verdict.SUCCESS:
                breaker.succeeded(self._era)
            case Verdict.FAILURE:
                breaker.failed(self._era, trio.current_time())
            case Verdict.NOTHING:
                breaker.abandoned(self._era)
            case _:
                assert_never(verdict)
