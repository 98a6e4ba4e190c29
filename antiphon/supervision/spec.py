"""Specifications of children and supervisors: frozen, and refused when made if they contradict
themselves."""

import enum
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from antiphon.errors import SpecError
from antiphon.supervision.context import ChildContext, Lifecycle
from antiphon.supervision.exits import Ignored, Stopped


def _require(holds: bool, subject: str, problem: str) -> None:
    if not holds:
        raise SpecError(subject, problem)


class Restart(enum.Enum):
    """When a child that ended by itself is started again."""

    PERMANENT = "permanent"
    """Always, also after a normal return."""
    TRANSIENT = "transient"
    """After an abnormal end only."""
    TEMPORARY = "temporary"
    """Never; its specification is forgotten."""


class Strategy(enum.Enum):
    """Which siblings are restarted together with the child that ended."""

    ONE_FOR_ONE = "one_for_one"
    REST_FOR_ONE = "rest_for_one"
    """It and all that were started after it."""
    ONE_FOR_ALL = "one_for_all"


class AutoShutdown(enum.Enum):
    """When a supervisor ends because significant children have ended by themselves."""

    NEVER = "never"
    ANY = "any"
    """With the first of them."""
    ALL = "all"
    """When none of them runs any more."""


class Kind(enum.Enum):
    WORKER = "worker"
    SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class Grace:
    """Told to stop, and cancelled after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Forever:
    """Told to stop, and waited for; only the budget of the whole stop cuts it short."""


@dataclass(frozen=True, slots=True)
class Now:
    """Cancelled at once."""


Shutdown = Grace | Forever | Now


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long the n-th restart in a row waits: nothing, then `base_s` doubled up to `max_s`.

    `jitter` moves each delay by up to that fraction, never past `max_s`. Running for
    `stable_after_s` ends the row. `max_consecutive` bounds it, since delays spread restarts so far
    apart that the supervisor's window never fills.
    """

    base_s: float = 0.5
    max_s: float = 30.0
    jitter: float = 0.2
    stable_after_s: float = 30.0
    max_consecutive: int | None = None

    def __post_init__(self) -> None:
        _require(0 <= self.base_s <= self.max_s < math.inf, "backoff", "needs 0 <= base_s <= max_s")
        _require(0 <= self.jitter <= 1, "backoff", "jitter must be between 0 and 1")
        _require(self.stable_after_s > 0, "backoff", "stable_after_s must be greater than 0")
        if self.max_consecutive is not None:
            _require(self.max_consecutive > 0, "backoff", "max_consecutive must be at least 1")

    def delay(self, failures: int, draw: float) -> float:
        """Seconds before the restart after `failures` ends in a row (1 is the first); `draw` is
        in -1…1."""
        if failures <= 1 or self.base_s == 0:
            return 0.0
        # The exponent is capped only so that a very long row can't overflow a float.
        plain = min(self.max_s, self.base_s * 2.0 ** min(failures - 2, 64))
        return max(0.0, min(self.max_s, plain * (1.0 + self.jitter * draw)))


DEFAULT_GRACE = Grace(5.0)
DEFAULT_BACKOFF = Backoff()
NO_BACKOFF = Backoff(base_s=0.0, max_s=0.0, jitter=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """One child. `start` runs for the child's whole life; it calls `context.ready()` when siblings
    that depend on it may start, watches `context.stopping`, and may return Ignored() before it is
    ready, or Stopped() when it ends on purpose. Raises SpecError."""

    id: str
    start: Callable[[ChildContext], Awaitable[Ignored | Stopped | None]]
    restart: Restart = Restart.PERMANENT
    shutdown: Shutdown = DEFAULT_GRACE
    kill_grace_s: float = 2.0
    init_timeout_s: float = 10.0
    kind: Kind = Kind.WORKER
    backoff: Backoff = DEFAULT_BACKOFF
    significant: bool = False
    """Whether its end by itself counts for its supervisor's AutoShutdown."""
    lifecycle: Lifecycle | None = None
    """Told synchronously of every incarnation's begin and end; an actor's address is one."""

    def __post_init__(self) -> None:
        name = f"child {self.id!r}"
        _require(bool(self.id) and "/" not in self.id, name, "an id is not empty and holds no '/'")
        _require(callable(self.start), name, "start must be callable")
        _require(isinstance(self.restart, Restart), name, "restart must be a Restart")
        _require(isinstance(self.kind, Kind), name, "kind must be a Kind")
        match self.shutdown:
            case Grace(seconds=seconds):
                _require(0 < seconds < math.inf, name, "a grace is finite and greater than 0")
            case Forever():
                pass
            case Now():
                # It would leave grandchildren without their own ordered stop.
                _require(self.kind is Kind.WORKER, name, "a supervisor can't be stopped Now")
            case _:
                raise SpecError(name, "shutdown must be Grace, Forever or Now")
        if self.significant:
            _require(
                self.restart is not Restart.PERMANENT, name, "a permanent child is not significant"
            )
        _require(self.kill_grace_s > 0, name, "kill_grace_s must be greater than 0")
        _require(self.init_timeout_s > 0, name, "init_timeout_s must be greater than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSpec:
    """How a supervisor treats its children: it gives up at more than `intensity` restarts within
    `period_s`.

    Intensities multiply from level to level, so upper levels take smaller ones. A dynamic
    supervisor has children only at run time, unordered, stopped all at once. Raises SpecError.
    """

    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: int = 3
    period_s: float = 5.0
    dynamic: bool = False
    max_children: int | None = None
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER

    def __post_init__(self) -> None:
        name = "supervisor"
        _require(isinstance(self.strategy, Strategy), name, "strategy must be a Strategy")
        _require(
            isinstance(self.auto_shutdown, AutoShutdown), name, "auto_shutdown must be AutoShutdown"
        )
        _require(self.intensity >= 0, name, "intensity must be 0 or more")
        _require(0 < self.period_s < math.inf, name, "period_s must be greater than 0")
        if self.dynamic:
            _require(
                self.strategy is Strategy.ONE_FOR_ONE, name, "a dynamic supervisor is one_for_one"
            )
        if self.max_children is not None:
            _require(self.dynamic, name, "only a dynamic supervisor has max_children")
            _require(self.max_children > 0, name, "max_children must be at least 1")

    def refuse_significance(self, child: ChildSpec) -> None:
        """Raises SpecError for a significant child whose end would mean nothing here."""
        _require(
            self.auto_shutdown is not AutoShutdown.NEVER or not child.significant,
            f"child {child.id!r}",
            "a significant child needs a supervisor with auto_shutdown",
        )
