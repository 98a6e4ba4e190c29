"""The passive snapshot of the tree: plain values, made without sending anybody a message, so that a
stuck child is as visible as a healthy one."""

from dataclasses import dataclass

from antiphon.ids import ActorPath


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxStatistics:
    """A mailbox at one moment. Counters are totals since the address exists."""

    depth: int
    system_depth: int
    capacity: int
    peak: int
    waiting: int
    """Senders that wait for room."""
    oldest_age_s: float | None
    handled: int
    dropped: int
    """Refused or pushed out by the overflow policy."""
    dead: int
    """Sent to a stopped address, or left over when it stopped."""
    expired: int
    """Asks skipped because nobody waited for them any more."""
    late: int
    """Replies that came after their ask had ended."""
    current: str | None
    """The type of the message being handled."""
    current_age_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastExit:
    """How the previous incarnation ended: the exit's class in lower case, one line, and its age."""

    kind: str
    text: str
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCounts:
    """A supervisor's children: all, those with a running task, and of which kind they are."""

    specs: int
    active: int
    supervisors: int
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One child. `restarts` is the total; `restarts_in_window` of `intensity` is its own
    supervision of others, so both are None on a worker, like everything after the mailbox."""

    path: ActorPath
    kind: str
    state: str
    incarnation: int
    restarts: int
    last_exit: LastExit | None
    uptime_s: float | None
    mailbox: MailboxStatistics | None = None
    strategy: str | None = None
    restarts_in_window: int | None = None
    intensity: int | None = None
    period_s: float | None = None
    counts: ChildCounts | None = None
    children: tuple["Node", ...] = ()


def node_at(tree: Node, path: str) -> Node | None:
    """The node of that path in the tree."""
    while tree.path != path:
        on_the_way = (child for child in tree.children if f"{path}/".startswith(f"{child.path}/"))
        child = next(on_the_way, None)
        if child is None:
            return None
        tree = child
    return tree
