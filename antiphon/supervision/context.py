"""What a running child is given by its supervisor, and what listens to its life from outside.

Nothing here decides anything: the supervisor does.
"""

import math
from collections.abc import Callable
from typing import Protocol

import trio

from antiphon.ids import ActorPath
from antiphon.supervision.exits import Exit
from antiphon.supervision.tree import MailboxStatistics, Node


class Lifecycle(Protocol):
    """Told of a child's incarnations, synchronously and in order; must neither raise nor block."""

    def started(self, path: ActorPath, incarnation: int) -> None:
        """An incarnation is about to run."""

    def exited(self, incarnation: int, exit: Exit) -> None:
        """That incarnation ended; another one may follow."""

    def gone(self) -> None:
        """No other incarnation follows, unless somebody starts one by hand. Idempotent."""


class ChildContext:
    """One incarnation's view of its place in the tree."""

    __slots__ = (
        "_notify_ready",
        "_notify_stuck",
        "_stop_callbacks",
        "children_probe",
        "incarnation",
        "leaving",
        "mailbox_probe",
        "path",
        "stop_deadline",
        "stopping",
    )

    def __init__(
        self,
        *,
        path: ActorPath,
        incarnation: int,
        notify_ready: Callable[[], None],
        notify_stuck: Callable[[tuple[str, ...]], None],
    ) -> None:
        self.path = path
        self.incarnation = incarnation
        self.stopping = trio.Event()
        """Set when the child is told to stop."""
        self.stop_deadline = math.inf
        """When it will be cancelled, on Trio's clock; meaningful once `stopping` is set."""
        self.leaving = False
        """Whether the ordered stop is for good: no next incarnation is planned."""
        self.mailbox_probe: Callable[[], MailboxStatistics] | None = None
        self.children_probe: Callable[[], Node] | None = None
        self._notify_ready = notify_ready
        self._notify_stuck = notify_stuck
        self._stop_callbacks: list[Callable[[], None]] = []

    def ready(self) -> None:
        """Say that siblings which wait for this child may start. Idempotent."""
        self._notify_ready()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Have `callback` called synchronously when the stop is ordered, at once if it was, and
        again if the deadline moves closer or the stop turns out to be for good."""
        self._stop_callbacks.append(callback)
        if self.stopping.is_set():
            callback()

    def observe(self, probe: Callable[[], MailboxStatistics]) -> None:
        """Let the tree's snapshot read this child's mailbox without sending it a message."""
        self.mailbox_probe = probe

    def observe_children(self, probe: Callable[[], Node]) -> None:
        """Let the tree's snapshot descend into this child, which is a supervisor."""
        self.children_probe = probe

    def report_stuck(self, paths: tuple[str, ...]) -> None:
        """Say that this child is over but for tasks below it that ignore their cancellation."""
        self._notify_stuck(paths)

    def order_stop(self, *, deadline: float, leaving: bool) -> None:
        """For the supervisor only: tell the child to stop, or to hurry, or that it is for good."""
        news = not self.stopping.is_set() or deadline < self.stop_deadline
        self.stop_deadline = min(self.stop_deadline, deadline)
        if leaving and not self.leaving:
            self.leaving = news = True
        if news:
            self.stopping.set()
            for callback in self._stop_callbacks:
                callback()
