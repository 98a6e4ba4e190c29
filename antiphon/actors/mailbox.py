"""The queue of one address: a system lane that never refuses, a bounded user lane, one reader.

It belongs to the address and so survives incarnations. It is on the hot path of every message, so
it is two deques and one parked task; it knows neither actors nor supervision.
"""

import enum
from collections import deque
from typing import Any, Generic, TypeVar

import structlog
import trio

from antiphon.actors.reply import Reply
from antiphon.errors import ActorStopped, MailboxFull, SpecError
from antiphon.ids import ActorPath
from antiphon.supervision.tree import MailboxStatistics

log = structlog.get_logger(__name__)

M = TypeVar("M")


class Overflow(enum.Enum):
    """What happens to a message for a full user lane."""

    BLOCK = "block"
    """`put` and `ask` wait for room; `put_nowait` and `tell` raise MailboxFull."""
    REJECT = "reject"
    """The sender gets MailboxFull."""
    DROP_OLDEST = "drop_oldest"
    """The oldest message makes room; if it was an ask, its asker gets MailboxFull."""


class Entry(Generic[M]):
    """A queued message, when it came, and the reply slot if somebody waits for an answer."""

    __slots__ = ("at", "message", "reply")

    def __init__(self, message: M, reply: Reply[Any] | None, at: float) -> None:
        self.message = message
        self.reply = reply
        self.at = at


class Mailbox(Generic[M]):
    """Many writers, one reader. Raises SpecError for a capacity below 1."""

    def __init__(
        self, path: ActorPath, *, capacity: int, overflow: Overflow = Overflow.REJECT
    ) -> None:
        if capacity < 1:
            raise SpecError(f"mailbox of {path}", "capacity must be at least 1")
        self.path = path
        self.capacity = capacity
        self.overflow = overflow
        self.closed = False
        self.in_flight: Entry[M] | None = None
        self.in_flight_since = 0.0
        self._system: deque[Entry[M]] = deque()
        self._user: deque[Entry[M]] = deque()
        self._reader: trio.lowlevel.Task | None = None
        self._writers = trio.lowlevel.ParkingLot()
        self._peak = 0
        self._handled = 0
        self._dropped = 0
        self._dead = 0
        self._expired = 0
        self.late = 0

    def __len__(self) -> int:
        return len(self._system) + len(self._user)

    def put_system(self, message: M, reply: Reply[Any] | None = None) -> None:
        """Queue ahead of every user message. Never refuses; a closed mailbox counts it as dead."""
        if self.closed:
            self._bury(message, reply)
            return
        self._system.append(Entry(message, reply, trio.current_time()))
        if self._reader is not None:
            self.wake()

    def put_nowait(self, message: M, reply: Reply[Any] | None = None) -> None:
        """Queue now or not at all. Raises MailboxFull as the overflow policy says."""
        if self.closed:
            self._bury(message, reply)
            return
        user = self._user
        depth = len(user) + 1
        if depth > self.capacity:
            self._make_room()
            depth = self.capacity
        if depth > self._peak:
            self._peak = depth
        user.append(Entry(message, reply, trio.current_time()))
        if self._reader is not None:
            self.wake()

    async def put(self, message: M, reply: Reply[Any] | None = None) -> None:
        """Queue, and under Overflow.BLOCK wait for room first. Raises MailboxFull otherwise."""
        await trio.lowlevel.checkpoint()
        if self.overflow is Overflow.BLOCK:
            while len(self._user) >= self.capacity and not self.closed:
                await self._writers.park()
        self.put_nowait(message, reply)

    def pop(self) -> Entry[M] | None:
        """The next entry that somebody still wants, system lane first; None when there is none.

        The entry is recorded as in flight before anything can be awaited, so that a cancellation
        can't lose it (trio's receive may be followed by a Cancelled at the very next checkpoint).
        """
        entry = self.pop_system()
        while entry is None and self._user:
            entry = self._wanted(self._user.popleft())
            if self._writers:
                self._writers.unpark()
        return entry

    def pop_system(self) -> Entry[M] | None:
        """As pop, of the system lane alone."""
        while self._system:
            entry = self._wanted(self._system.popleft())
            if entry is not None:
                return entry
        return None

    def done(self) -> None:
        """The entry in flight has been handled."""
        self._handled += 1
        self.in_flight = None

    async def wait(self) -> None:
        """Park the one reader until a message comes or `wake` is called; may return early."""
        if self._reader is not None:
            raise RuntimeError(f"mailbox of {self.path} has a reader already")
        self._reader = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._reader = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def wake(self) -> None:
        """Let the reader look again."""
        reader, self._reader = self._reader, None
        if reader is not None:
            trio.lowlevel.reschedule(reader)

    async def get(self) -> M:
        """The next message, taken and counted as handled: for readers that are no actor loop."""
        await trio.lowlevel.checkpoint()
        while (entry := self.pop()) is None:
            await self.wait()
        self.done()
        return entry.message

    def close(self) -> None:
        """Take no more; every queued asker gets ActorStopped at once. Idempotent."""
        self.closed = True
        left = [*self._system, *self._user]
        self._system.clear()
        self._user.clear()
        self._writers.unpark_all()
        for entry in left:
            self._bury(entry.message, entry.reply)

    def reopen(self) -> None:
        """A child that had stopped is started again under the same address."""
        self.closed = False

    def statistics(self) -> MailboxStatistics:
        now = trio.current_time()
        oldest = min((lane[0].at for lane in (self._system, self._user) if lane), default=None)
        current = self.in_flight
        return MailboxStatistics(
            depth=len(self._user),
            system_depth=len(self._system),
            capacity=self.capacity,
            peak=self._peak,
            waiting=len(self._writers),
            oldest_age_s=None if oldest is None else now - oldest,
            handled=self._handled,
            dropped=self._dropped,
            dead=self._dead,
            expired=self._expired,
            late=self.late,
            current=None if current is None else type(current.message).__name__,
            current_age_s=None if current is None else now - self.in_flight_since,
        )

    def _wanted(self, entry: Entry[M]) -> Entry[M] | None:
        now = trio.current_time()
        reply = entry.reply
        if reply is not None and (reply.closed or reply.deadline <= now):
            self._expired += 1
            return None
        self.in_flight = entry
        self.in_flight_since = now
        return entry

    def _make_room(self) -> None:
        self._dropped += 1
        if self.overflow is not Overflow.DROP_OLDEST:
            raise MailboxFull(self.path, self.capacity)
        oldest = self._user.popleft()
        if oldest.reply is not None:
            oldest.reply.fail(MailboxFull(self.path, self.capacity))
        log.debug("message_dropped", path=self.path, type=type(oldest.message).__name__)

    def _bury(self, message: M, reply: Reply[Any] | None) -> None:
        self._dead += 1
        if reply is not None:
            reply.fail(ActorStopped(self.path))
        log.debug("dead_letter", path=self.path, type=type(message).__name__)
