"""What the end of a supervisor means to its parent: nothing, or an exception of a telling class."""

from typing import assert_never

from antiphon.errors import IntensityExceeded, StartFailed
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Interrupted, describe
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.state import (
    AutoStopped,
    BootFailed,
    Ending,
    Escalated,
    GaveUp,
    OrderedStop,
)


def failure_of(ending: Ending, path: ActorPath, spec: SupervisorSpec) -> BaseException | None:
    """What the supervisor raises; giving up is abnormal, so that a transient one is restarted
    too."""
    match ending:
        case OrderedStop() | AutoStopped():
            return None
        case GaveUp(restarts=restarts):
            return IntensityExceeded(path, restarts, spec.period_s)
        case BootFailed(path=failed, exit=exit):
            return StartFailed(failed, describe(exit))
        case Escalated(exit=Interrupted(kind="SystemExit", message=message)):
            return SystemExit(message)
        case Escalated(exit=Interrupted(message=message)):
            return KeyboardInterrupt(message)
        case Escalated():
            # The parent has been told who is stuck; they let go after all.
            return None
        case _:
            assert_never(ending)
