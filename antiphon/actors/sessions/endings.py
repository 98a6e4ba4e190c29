"""How a turn that did not complete is told and counted. Tables only."""

from antiphon.errors import (
    AntiphonError,
    EngineUnavailable,
    GenerationFailed,
    Overloaded,
    QueueExpired,
    QueueFull,
    RateLimited,
)
from antiphon.events import CancelCause

REASONS = {
    CancelCause.DISCONNECT: "the client disconnected",
    CancelCause.SLOW_READER: "the client read too slowly",
    CancelCause.REQUESTED: "it was cancelled",
    CancelCause.DEADLINE: "the answer took too long",
    CancelCause.SHUTDOWN: "the server is shutting down",
    CancelCause.POLICY: "the policy ended it",
    CancelCause.OWNER_LOST: "the request's handler ended",
    CancelCause.FAILED: "another choice of it failed",
}


FORGONE = (GenerationFailed, EngineUnavailable, QueueExpired)
"""For these a second attempt at a call is given up, if it has said nothing yet, and not the turn:
such as for a schema that the engine can't be held to."""


def rejection(error: AntiphonError) -> str | None:
    """The word for a turn that was refused for how much is asked of the server, and not for what it
    asked."""
    match error:
        case QueueFull():
            return "queue_full"
        case QueueExpired():
            return "queue_deadline"
        case EngineUnavailable():
            return "engine_unavailable"
        case Overloaded():
            return "overloaded"
        case RateLimited():
            return "rate_limited"
        case _:
            return None
