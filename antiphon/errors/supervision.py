"""What the supervision tree and its actors refuse or fail with."""

from dataclasses import dataclass
from typing import ClassVar

from antiphon.errors.base import AntiphonError
from antiphon.ids import ActorPath


class SupervisionError(AntiphonError):
    """The supervision tree refuses or gives up."""


@dataclass(eq=False)
class SpecError(SupervisionError):
    """A specification that could never work, refused when it is made."""

    subject: str
    problem: str
    sentence: ClassVar[str] = "{subject}: {problem}"


@dataclass(eq=False)
class StartFailed(SupervisionError):
    """A child was not ready at boot; what had started was stopped again in reverse order."""

    path: ActorPath
    reason: str
    sentence: ClassVar[str] = "{path} did not start: {reason}"


@dataclass(eq=False)
class AlreadyPresent(SupervisionError):
    """A child of that id exists, running or not."""

    path: ActorPath
    sentence: ClassVar[str] = "{path} is already present"


@dataclass(eq=False)
class CommandRefused(SupervisionError):
    """An operator's command would do harm that its name doesn't tell."""

    path: ActorPath
    reason: str
    sentence: ClassVar[str] = "{path} takes no commands: {reason}"


@dataclass(eq=False)
class MaxChildren(SupervisionError):
    """A dynamic supervisor holds as many children as it may; restarting ones count."""

    path: ActorPath
    limit: int
    sentence: ClassVar[str] = "{path} already has {limit} children"


@dataclass(eq=False)
class IntensityExceeded(SupervisionError):
    """A supervisor stopped its children because they needed too many restarts: abnormal on
    purpose."""

    path: ActorPath
    restarts: int
    period_s: float
    sentence: ClassVar[str] = "{path} gave up after {restarts} restarts in {period_s:g} s"


class ActorError(AntiphonError):
    """A message did not get its answer, for a reason other than what it asked."""


@dataclass(eq=False)
class ActorCrashed(ActorError):
    """The callee crashed while it handled the message; the message is not delivered again."""

    path: ActorPath
    incarnation: int
    sentence: ClassVar[str] = "{path} crashed (incarnation {incarnation})"


@dataclass(eq=False)
class ActorStopped(ActorError):
    """The callee stopped; whoever still waited hears so at once."""

    path: ActorPath
    sentence: ClassVar[str] = "{path} stopped"


@dataclass(eq=False)
class NoActor(ActorError):
    """Nobody is registered under that path."""

    path: ActorPath
    sentence: ClassVar[str] = "no actor at {path}"


@dataclass(eq=False)
class MailboxFull(ActorError):
    """The callee's bounded lane is full and its overflow policy is to refuse."""

    path: ActorPath
    capacity: int
    sentence: ClassVar[str] = "mailbox of {path} is full ({capacity})"


@dataclass(eq=False)
class AskTimeout(ActorError):
    """No reply before the deadline; a later one is dropped and counted."""

    path: ActorPath
    waited_s: float
    sentence: ClassVar[str] = "{path} did not answer within {waited_s:g} s"


@dataclass(eq=False)
class CallCycle(ActorError):
    """The ask would come back to an actor that is waiting in the same chain."""

    chain: tuple[ActorPath, ...]

    def __str__(self) -> str:
        return f"call cycle: {' -> '.join(self.chain)}"


@dataclass(eq=False)
class WouldDeadlock(ActorError):
    """A child that is still starting called the supervisor that waits for it."""

    path: ActorPath
    sentence: ClassVar[str] = "{path} is waiting for the caller to start"
