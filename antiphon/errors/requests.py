"""What a client is told: the fault, or the misfortune, of one request."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from antiphon.errors.base import AntiphonError


def _seconds(seconds: float) -> str:
    """Rounded up: who comes then finds room."""
    return f"{math.ceil(seconds * 1000)} ms" if seconds < 1 else f"{math.ceil(seconds)} s"


class RequestError(AntiphonError):
    """What a client is told: never a reason to restart anything."""


@dataclass(eq=False)
class InvalidRequest(RequestError):
    """A field of the request is wrong; `param` is its path as OpenAI writes it."""

    message: str
    param: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class ContextLengthExceeded(RequestError):
    """Prompt and answer don't fit the window, all in tokens. `qualifier` is "at least " where the
    prompt was too long to be worth counting."""

    window: int
    prompt_tokens: int
    max_tokens: int
    qualifier: str = ""

    def __str__(self) -> str:
        if self.prompt_tokens >= self.window:
            return (
                f"This model's maximum context length is {self.window} tokens. However, your "
                f"messages resulted in {self.qualifier}{self.prompt_tokens} tokens. Please reduce "
                "the length of the messages."
            )
        return (
            f"This model's maximum context length is {self.window} tokens. However, you requested "
            f"{self.prompt_tokens + self.max_tokens} tokens ({self.prompt_tokens} in the messages, "
            f"{self.max_tokens} in the completion). Please reduce the length of the messages or "
            "completion."
        )


@dataclass(eq=False)
class ModelNotFound(RequestError):
    """The client named a model that this server doesn't serve."""

    model: str
    sentence: ClassVar[str] = (
        "The model `{model:.200}` does not exist or you do not have access to it."
    )


@dataclass(eq=False)
class RecordNotFound(RequestError):
    """Unknown, deleted, or somebody else's: the caller can't tell which."""

    kind: str
    id: str
    param: str | None = None
    sentence: ClassVar[str] = "No {kind} found with id '{id:.200}'."


@dataclass(eq=False)
class UnknownCursor(RequestError):
    """`after` names nothing in the list."""

    after: str
    sentence: ClassVar[str] = "No item found with id '{after:.200}' to continue after."


@dataclass(eq=False)
class ConversationLocked(RequestError):
    """One turn at a time: another one runs, perhaps on another server."""

    conversation: str
    sentence: ClassVar[str] = (
        "Another process is currently operating on this conversation. Please retry in a few "
        "seconds."
    )


@dataclass(eq=False)
class ResponseInProgress(RequestError):
    """Cancel it first, or wait for its end."""

    response: str
    sentence: ClassVar[str] = "Response '{response}' is still in progress."


@dataclass(eq=False)
class IdempotencyMismatch(RequestError):
    """The same key, another request."""

    key: str
    sentence: ClassVar[str] = (
        "The idempotency key '{key:.100}' was already used with a different request."
    )


@dataclass(eq=False)
class Unauthenticated(RequestError):
    """`problem` never holds any part of the secret."""

    problem: str

    def __str__(self) -> str:
        return self.problem


@dataclass(eq=False)
class NotPermitted(RequestError):
    """The key is good and lacks a scope."""

    scope: str
    sentence: ClassVar[str] = "This needs a key with the scope '{scope}'."


@dataclass(eq=False)
class PayloadTooLarge(RequestError):
    """The body is over the limit, in bytes."""

    limit: int
    sentence: ClassVar[str] = "The request body is larger than {limit} bytes."


@dataclass(eq=False)
class RateLimited(RequestError):
    """The caller's own limit, not the server's: `limit` of `unit` (`requests per minute`,
    `tokens per day`, `concurrent requests`, ...) is used up."""

    unit: str
    limit: float
    retry_after_s: float | None
    """None: what was asked for is more than the limit by itself, and no waiting helps."""
    limits: tuple[Any, ...] = ()
    """`turn_events.RateLimit` of each limit, as it stands."""

    def __str__(self) -> str:
        unit = self.unit.replace("requests", "request") if self.limit == 1 else self.unit
        bound = f"{self.limit:.12g} {unit}"
        if self.retry_after_s is None:
            return (
                f"Request too large: the limit is {bound}. Shorten the prompt, or lower max_tokens."
            )
        return f"Rate limit reached: {bound}. Please try again in {_seconds(self.retry_after_s)}."


@dataclass(eq=False)
class KeySuspended(RequestError):
    """The key is good, and its owner is not to be served for now."""

    reason: str
    sentence: ClassVar[str] = "This API key is suspended: {reason}. Contact the operator."


@dataclass(eq=False)
class AddressSuspended(RequestError):
    """Whoever comes from there is not to be served for now."""

    reason: str
    sentence: ClassVar[str] = (
        "Requests from this address are suspended: {reason}. Contact the operator."
    )


@dataclass(eq=False)
class Overloaded(RequestError):
    """The first token would come later than the class of the request allows, on every pool."""

    predicted_s: float
    objective_s: float
    retry_after_s: float
    sentence: ClassVar[str] = (
        "The server is overloaded: the first token would take {predicted_s:.1f} s. Please try "
        "again in {retry_after_s:.0f} s."
    )


@dataclass(eq=False)
class QueueFull(RequestError):
    """As much work waits as may wait; `retry_after_s` is when a place is expected."""

    reason: str
    retry_after_s: float
    sentence: ClassVar[str] = (
        "The server is overloaded ({reason}); try again in {retry_after_s:.1f} s."
    )


@dataclass(eq=False)
class QueueExpired(RequestError):
    """The request waited for a slot until its queue deadline."""

    waited_s: float
    retry_after_s: float
    sentence: ClassVar[str] = "No slot became free within {waited_s:.1f} s; try again later."


@dataclass(eq=False)
class ModerationUnavailable(RequestError):
    """Nobody could judge a text, and the request was for nothing else."""

    reason: str
    retry_after_s: float
    sentence: ClassVar[str] = "Moderation is not available: {reason}. Please try again shortly."


@dataclass(eq=False)
class EngineUnavailable(RequestError):
    """No engine host is ready; it is starting or being restarted."""

    retry_after_s: float
    sentence: ClassVar[str] = "The engine is starting; try again shortly."


@dataclass(eq=False)
class PromptUnavailable(RequestError):
    """The settings name a system prompt that can't be used: nothing is answered without it."""

    retry_after_s: float
    sentence: ClassVar[str] = (
        "The system prompt of this server can't be used now. Please try again shortly."
    )


@dataclass(eq=False)
class Draining(RequestError):
    """The server is stopping and takes no new work."""

    retry_after_s: float
    sentence: ClassVar[str] = "The server is shutting down."


@dataclass(eq=False)
class TurnInterrupted(RequestError):
    """The server ended an answer that had begun; what was delivered stands."""

    reason: str
    sentence: ClassVar[str] = "The answer was interrupted: {reason}."
