"""The vocabulary of the supervision core: its state, the events it takes, the effects it asks for.

All frozen, all plain data: no task, no clock, no scope.
"""

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.errors import AntiphonError
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Exit
from antiphon.supervision.reports import Report
from antiphon.supervision.spec import ChildSpec, SupervisorSpec


class Phase(enum.Enum):
    """Where a child is in its life. STARTING to KILLING have a task; STUCK has one that nobody can
    end."""

    DOWN = "down"
    WAITING = "waiting"
    """Down until its restart is due."""
    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"
    """Told to stop, within its grace."""
    KILLING = "killing"
    """Cancelled."""
    STUCK = "stuck"


LIVE = frozenset({Phase.STARTING, Phase.UP})
LEAVING = frozenset({Phase.STOPPING, Phase.KILLING})


class Origin(enum.Enum):
    """Who asked for a child that has not been ready yet; decides what its failure means."""

    BOOT = "boot"
    ADDED = "added"
    REVIVED = "revived"
    PROVEN = "proven"
    """It has been ready once: failures are restarts."""


class Mode(enum.Enum):
    BOOTING = "booting"
    RUNNING = "running"
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One child. `wanted` is the goal; `phase` is what is."""

    spec: ChildSpec
    origin: Origin
    wanted: bool = True
    phase: Phase = Phase.DOWN
    bounce: bool = False
    """To be stopped and started again because of a sibling."""
    attempt: bool = False
    """Its next start counts in the restart window."""
    incarnation: int = 0
    due: float | None = None
    """When the current phase is over, whatever happens."""
    since: float = 0.0
    up_since: float | None = None
    failures: int = 0
    restarts: int = 0
    condemned: Exit | None = None
    """What its end will count as, whatever it says itself."""
    last_exit: Exit | None = None
    last_exit_at: float = 0.0
    start_tokens: tuple[int, ...] = ()
    stop_tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedStop:
    """The parent, or whoever runs the tree, asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """More restarts than the limits allow."""

    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFailed:
    """A child could not be started the first time."""

    path: ActorPath
    exit: Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalated:
    """A child's end that no restart can answer: Interrupted, or Stuck while it was wanted."""

    exit: Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoStopped:
    """Its significant children have ended by themselves."""

    path: ActorPath
    """The child whose end was the last straw."""


Ending = OrderedStop | GaveUp | BootFailed | Escalated | AutoStopped


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One supervisor. Children are in start order."""

    path: ActorPath
    spec: SupervisorSpec
    children: Mapping[str, Child] = field(default_factory=dict)
    mode: Mode = Mode.BOOTING
    window: tuple[float, ...] = ()
    """When the restarts that still count were made."""
    ending: Ending | None = None
    last_straw: ActorPath | None = None
    """A significant child's end that calls for an AutoShutdown once the boot is complete."""
    leaving: bool = False
    """The stop is for good, so children are told that no incarnation follows."""
    cutoff: float = math.inf
    """From here on the remaining children are cancelled all at once."""
    deadline: float = math.inf
    """From here on what remains is stuck."""


# Events.


@dataclass(frozen=True, slots=True)
class Boot:
    """Start the children the state was made with."""


@dataclass(frozen=True, slots=True)
class Ready:
    id: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Exited:
    """`draw` is a random number in -1…1 for the jitter of a restart."""

    id: str
    incarnation: int
    exit: Exit
    draw: float = 0.0


@dataclass(frozen=True, slots=True)
class Due:
    """A time that an Arm effect asked for has come; `id` None is the supervisor's own."""

    id: str | None


@dataclass(frozen=True, slots=True)
class StopOrdered:
    deadline: float = math.inf
    leaving: bool = True


@dataclass(frozen=True, slots=True)
class StartChild:
    spec: ChildSpec
    token: int | None = None


@dataclass(frozen=True, slots=True)
class TerminateChild:
    id: str
    token: int


@dataclass(frozen=True, slots=True)
class RestartChild:
    id: str
    token: int


@dataclass(frozen=True, slots=True)
class RecycleChild:
    """Stop it, with whoever its strategy takes along, and start them again; or start it if down."""

    id: str
    token: int


@dataclass(frozen=True, slots=True)
class DeleteChild:
    id: str
    token: int


Event = (
    Boot
    | Ready
    | Exited
    | Due
    | StopOrdered
    | StartChild
    | TerminateChild
    | RestartChild
    | RecycleChild
    | DeleteChild
)

# Effects, to be carried out in order.


@dataclass(frozen=True, slots=True)
class Start:
    spec: ChildSpec
    incarnation: int


@dataclass(frozen=True, slots=True)
class Stop:
    id: str
    deadline: float
    leaving: bool


@dataclass(frozen=True, slots=True)
class Cancel:
    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Arm:
    id: str | None
    due: float


@dataclass(frozen=True, slots=True)
class Ended:
    """Tell whoever listens to this child's life that an incarnation is over."""

    spec: ChildSpec
    incarnation: int
    exit: Exit


@dataclass(frozen=True, slots=True)
class Gone:
    """Tell them that no other one follows."""

    spec: ChildSpec


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's result: an exit, an error to raise, or None for done."""

    token: int
    result: Exit | AntiphonError | None


@dataclass(frozen=True, slots=True)
class Say:
    report: Report


@dataclass(frozen=True, slots=True)
class Booted:
    """Every child is up: the supervisor itself is ready."""


@dataclass(frozen=True, slots=True)
class Over:
    """No child runs any more, except those named, which are stuck."""

    ending: Ending
    stuck: tuple[str, ...]


Effect = Start | Stop | Cancel | Arm | Ended | Gone | Answer | Say | Booted | Over
