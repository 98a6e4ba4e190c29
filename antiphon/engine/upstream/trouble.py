"""What goes wrong with an upstream, by what it means for the generation: where else it may be
tried, and what the client is told. Knows no HTTP and no JSON."""

import enum
from dataclasses import dataclass

from antiphon.errors import EngineError


class Kind(enum.Enum):
    """Each with what follows from it, as long as no token has come."""

    UNREACHABLE = "unreachable"
    """No connection: nothing can have begun, and any other replica may be tried."""
    BUSY = "busy"
    """Refused for load, before any work: another replica, or this one later."""
    UNUSABLE = "unusable"
    """The replica refuses everybody: a wrong key, a model that it doesn't serve. Another one."""
    LOST = "lost"
    """The connection ended too early, so nobody works on it any more: one other replica, and no
    third, since the request may be what killed the first two."""
    SILENT = "silent"
    """No byte in time: it may still be at work on it, so it is not tried again."""
    BROKEN = "broken"
    """It failed, or answered what nobody understands. It may have done the work."""
    CONTEXT = "context"
    """The prompt and the answer don't fit its window: the request's own fault."""
    INVALID = "invalid"
    """It refuses the request for what it asks: the request's own fault."""
    UNAVAILABLE = "unavailable"
    """No replica took it in time; it was never begun."""

    @property
    def says_alive(self) -> bool:
        """Whether the replica answered in good order: no reason to stop asking it."""
        return self in (Kind.BUSY, Kind.CONTEXT, Kind.INVALID)

    @property
    def says_gone(self) -> bool:
        """Whether the replica is out of reach until a probe has found it again."""
        return self in (Kind.UNREACHABLE, Kind.LOST)


@dataclass(eq=False)
class Trouble(EngineError):
    """An attempt that failed. `message` may quote the client, so it is shown and never logged;
    `fact` is ours."""

    kind: Kind
    fact: str
    message: str = ""
    retry_after_s: float | None = None

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.fact}"


CODES = {
    Kind.UNREACHABLE: "unavailable",
    Kind.BUSY: "unavailable",
    Kind.UNUSABLE: "unavailable",
    Kind.UNAVAILABLE: "unavailable",
    Kind.LOST: "lost",
    Kind.SILENT: "lost",
    Kind.BROKEN: "upstream_failed",
    Kind.CONTEXT: "context_length",
    Kind.INVALID: "invalid_request",
}
"""The code of the Fault that a driver is told."""
