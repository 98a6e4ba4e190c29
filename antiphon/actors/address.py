"""Where an actor can be reached: the permanent part of it, through which incarnations pass.

It owns the mailbox, the replies its actor owes, the monitors and the hand-over. Its supervisor
tells it synchronously when an incarnation begins and ends (`supervision.context.Lifecycle`).
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import structlog
import trio

from antiphon.actors.handoff import Handoff
from antiphon.actors.mailbox import Entry, Mailbox, Overflow
from antiphon.actors.monitor import Down, Monitor
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.errors import ActorCrashed, ActorStopped
from antiphon.ids import ActorPath
from antiphon.supervision.exits import Exit, Killed, Normal, Stopped

log = structlog.get_logger(__name__)

M = TypeVar("M")


class Address(Generic[M]):
    """Made by whoever composes the tree, with the path that the actor will have there; given to
    `actor_child`, and as `address.ref` to everybody who talks to it."""

    __slots__ = (
        "_monitors",
        "_owed",
        "alive",
        "handoff",
        "incarnation",
        "last_exit",
        "mailbox",
        "path",
        "ref",
    )

    def __init__(self, path: str, *, capacity: int, overflow: Overflow = Overflow.REJECT) -> None:
        self.path = ActorPath(path)
        self.mailbox: Mailbox[M] = Mailbox(self.path, capacity=capacity, overflow=overflow)
        self.ref: Ref[M] = Ref(self)
        self.incarnation = 0
        self.alive = False
        self.last_exit: Exit | None = None
        self.handoff = Handoff()
        self._owed: set[Reply[Any]] = set()
        self._monitors: dict[Monitor, None] = {}

    def take(self, *, system_only: bool = False) -> Entry[M] | None:
        """For the actor loop: the next message; from now on its answer is owed by this
        incarnation."""
        entry = self.mailbox.pop_system() if system_only else self.mailbox.pop()
        if entry is not None and entry.reply is not None:
            self._owed.add(entry.reply)
        return entry

    @property
    def owed(self) -> int:
        """Asks that this incarnation has taken and not answered."""
        return len(self._owed)

    def settled(self, reply: Reply[Any], late: bool) -> None:
        """A reply was answered, or its asker left."""
        self._owed.discard(reply)
        if late:
            self.mailbox.late += 1

    def monitor(self, notify: Callable[[Down], None] | None) -> Monitor:
        monitor = Monitor(notify=notify, forget=self._forget)
        if self.alive:
            self._monitors[monitor] = None
        else:
            monitor.fire(self._down())
        return monitor

    def crashed(self) -> None:
        """The actor raised: whoever it owed an answer hears so before any clean-up starts."""
        self.handoff.seal()
        self._fail_owed(Killed())

    # What follows is Lifecycle, called by the supervisor.

    def started(self, path: ActorPath, incarnation: int) -> None:
        self.path = path
        self.mailbox.path = path
        self.mailbox.reopen()
        self.handoff.begin(trio.current_time())
        self.incarnation = incarnation
        self.alive = True

    def exited(self, incarnation: int, exit: Exit) -> None:
        self.incarnation = incarnation
        self.alive = False
        self.last_exit = exit
        self.mailbox.in_flight = None
        if self.handoff.end(exit, trio.current_time()):
            log.warning("handoff_dropped", path=self.path, incarnation=incarnation)
        self._fail_owed(exit)
        monitors, self._monitors = self._monitors, {}
        for monitor in monitors:
            monitor.fire(self._down())

    def gone(self) -> None:
        self.mailbox.close()
        self.handoff.clear()

    def _down(self) -> Down:
        return Down(path=self.path, incarnation=self.incarnation, exit=self.last_exit)

    def _forget(self, monitor: Monitor) -> None:
        self._monitors.pop(monitor, None)

    def _fail_owed(self, exit: Exit) -> None:
        owed, self._owed = self._owed, set()
        for reply in owed:
            # Each gets its own instance: an exception raised in two tasks grows both tracebacks.
            if isinstance(exit, Normal | Stopped):
                reply.fail(ActorStopped(self.path))
            else:
                reply.fail(ActorCrashed(self.path, self.incarnation))
