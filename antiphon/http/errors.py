"""What a client is told when something goes wrong: one table from errors to status, envelope and
retry advice, in OpenAI's shape (`message`, `type`, `param`, `code`, always all four)."""

import math
from dataclasses import dataclass

import msgspec
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from antiphon.errors import (
    ActorCrashed,
    ActorStopped,
    AddressSuspended,
    AskTimeout,
    ContextLengthExceeded,
    ConversationLocked,
    Draining,
    EngineUnavailable,
    GenerationFailed,
    HostLost,
    HostProtocolError,
    HostStartFailed,
    IdempotencyMismatch,
    InvalidRequest,
    KeySuspended,
    MailboxFull,
    MaxChildren,
    ModelNotFound,
    ModerationUnavailable,
    NoActor,
    NotPermitted,
    Overloaded,
    PayloadTooLarge,
    PromptUnavailable,
    QueueExpired,
    QueueFull,
    RateLimited,
    RecordNotFound,
    ResponseInProgress,
    StorageFull,
    StoreFailed,
    StoreUnavailable,
    TurnInterrupted,
    Unauthenticated,
    UnknownCursor,
)
from antiphon.http.limits import rate_limit_headers
from antiphon.turn_events import RateLimit

_MAX_RETRY_AFTER_S = 60.0
"""openai-node ignores advice over 60 s and openai-python gives up at 120 s."""
_SHORT_RETRY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply:
    """One error as it goes on the wire.

    `retry_is_safe` becomes `x-should-retry`: true where the request was refused before any work,
    false where work may have been done; None leaves the decision to the client.
    """

    status: int
    message: str
    type: str
    param: str | None = None
    code: str | None = None
    retry_after_s: float | None = None
    retry_is_safe: bool | None = None
    limits: tuple[RateLimit, ...] = ()
    allow: str | None = None
    is_expected: bool = True
    """False for a defect of ours, which is logged with its traceback."""


class ErrorDetail(msgspec.Struct):
    """What went wrong, for people (`message`) and programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(msgspec.Struct):
    """The body of every answer that isn't a success."""

    error: ErrorDetail


def error_body(reply: ErrorReply) -> bytes:
    """The JSON body; also what an error event in a stream carries."""
    detail = ErrorDetail(message=reply.message, type=reply.type, param=reply.param, code=reply.code)
    return msgspec.json.encode(ErrorBody(detail))


def error_headers(reply: ErrorReply) -> dict[str, str]:
    """The headers that advise a client: when to retry, and whether at all."""
    headers = rate_limit_headers(reply.limits)
    if reply.retry_after_s is not None:
        # A client's own limit is told as it is: one of a day doesn't end within a minute.
        longest = math.inf if reply.status == 429 else _MAX_RETRY_AFTER_S
        wait = min(max(reply.retry_after_s, 0.0), longest)
        headers["Retry-After"] = str(max(1, math.ceil(wait)))
        headers["retry-after-ms"] = str(max(1, math.ceil(wait * 1000)))
    if reply.retry_is_safe is not None:
        headers["x-should-retry"] = "true" if reply.retry_is_safe else "false"
    if reply.allow is not None:
        headers["Allow"] = reply.allow
    if reply.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def describe_error(error: BaseException) -> ErrorReply:
    """The reply for an error of any kind; what is not known is a defect, and says nothing."""
    message = str(error)
    match error:
        case InvalidRequest(param=param, code=code):
            return _invalid(400, message, param=param, code=code)
        case ContextLengthExceeded():
            return _invalid(400, message, param="messages", code="context_length_exceeded")
        case ModelNotFound():
            return _invalid(404, message, param="model", code="model_not_found")
        case RecordNotFound(param=param):
            return _invalid(404, message, param=param, code="not_found")
        case UnknownCursor():
            return _invalid(400, message, param="after", code="invalid_cursor")
        case ConversationLocked():
            return _invalid(400, message, param="conversation", code="conversation_locked")
        case ResponseInProgress():
            return _invalid(400, message, code="response_in_progress")
        case IdempotencyMismatch():
            return _invalid(422, message, code="idempotency_key_reused")
        case Unauthenticated():
            return _denied(401, message, "authentication_error", "invalid_api_key")
        case NotPermitted():
            return _denied(403, message, "permission_error", "insufficient_scope")
        case StoreUnavailable(retry_after_s=after, refused=refused):
            return _without_store(after, refused=refused)
        case StorageFull():
            return _storage_full()
        case StoreFailed():
            return _interrupted(500, "The server could not store this request.", "storage_failed")
        case PayloadTooLarge():
            return _invalid(413, message, code="request_too_large")
        case RateLimited(retry_after_s=after, limits=limits):
            return ErrorReply(
                status=429,
                message=message,
                type="rate_limit_error",
                code="rate_limit_exceeded",
                retry_after_s=after,
                # An SDK that is told to wait longer than it likes comes back at once instead.
                retry_is_safe=after is not None and after <= _MAX_RETRY_AFTER_S,
                limits=limits,
            )
        case KeySuspended():
            return _denied(403, message, "permission_error", "key_suspended")
        case AddressSuspended():
            return _denied(403, message, "permission_error", "address_suspended")
        case Overloaded(retry_after_s=after):
            return _refused(message, "overloaded_error", "overloaded", after)
        case QueueFull(retry_after_s=after):
            return _refused(message, "overloaded_error", "overloaded", after)
        case QueueExpired(retry_after_s=after):
            return _refused(message, "overloaded_error", "queue_timeout", after)
        case ModerationUnavailable(retry_after_s=after):
            return _refused(message, "server_error", "moderation_unavailable", after)
        case EngineUnavailable(retry_after_s=after):
            return _refused(message, "server_error", "engine_unavailable", after)
        case PromptUnavailable(retry_after_s=after):
            return _refused(message, "server_error", "prompt_unavailable", after)
        case Draining(retry_after_s=after):
            return _refused(message, "server_error", "server_stopping", after)
        case MaxChildren() | MailboxFull():
            message = "The server is overloaded; try again shortly."
            return _refused(message, "overloaded_error", "overloaded", _SHORT_RETRY_S)
        case NoActor():
            message = "The service is restarting; try again shortly."
            return _refused(message, "server_error", "engine_unavailable", _SHORT_RETRY_S)
        case HostStartFailed():
            message = "The engine is restarting; try again shortly."
            return _refused(message, "server_error", "engine_unavailable", _SHORT_RETRY_S)
        case HostLost() | HostProtocolError():
            message = "The engine failed while it worked on this request."
            return _interrupted(503, message, "engine_lost")
        case TurnInterrupted():
            return _interrupted(503, message, "interrupted")
        case ActorStopped() | AskTimeout():
            message = "The server could not finish this request."
            return _interrupted(503, message, "interrupted")
        case ActorCrashed():
            message = "The server failed while it worked on this request."
            return _interrupted(500, message, "internal_error")
        case GenerationFailed(code="invalid_schema", detail=detail):
            message = f"Invalid schema for response_format: {detail}"
            return _invalid(400, message, param="response_format", code="invalid_schema")
        case GenerationFailed(code="invalid_sampling", detail=detail):
            return _invalid(400, f"Invalid sampling parameters: {detail}", code="invalid_sampling")
        case GenerationFailed(code="invalid_request", detail=detail):
            return _invalid(400, f"The model's server refuses this request: {detail}")
        case GenerationFailed(code="context_length", detail=detail):
            return _invalid(400, detail, param="messages", code="context_length_exceeded")
        case GenerationFailed(code="capacity"):
            message = "The engine ran out of memory for this request."
            return _interrupted(503, message, "engine_capacity")
        case GenerationFailed(code=code):
            return _interrupted(500, "The engine could not finish this request.", code)
        case HTTPException():
            return _of_http_exception(error)
        case _:
            return ErrorReply(
                status=500,
                message="The server had an error while processing your request.",
                type="server_error",
                code="internal_error",
                retry_is_safe=False,
                is_expected=False,
            )


def _invalid(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> ErrorReply:
    return ErrorReply(
        status=status, message=message, type="invalid_request_error", param=param, code=code
    )


def _refused(message: str, type_: str, code: str, retry_after_s: float) -> ErrorReply:
    """Refused before any work."""
    return ErrorReply(
        status=503,
        message=message,
        type=type_,
        code=code,
        retry_after_s=retry_after_s,
        retry_is_safe=True,
    )


def _denied(status: int, message: str, type_: str, code: str) -> ErrorReply:
    return ErrorReply(status=status, message=message, type=type_, code=code, retry_is_safe=False)


def _without_store(retry_after_s: float, *, refused: bool) -> ErrorReply:
    """What was begun may have been written: whether to retry is then the client's own judgement,
    and a turn that comes again is recognised."""
    return ErrorReply(
        status=503,
        message="The server can't reach its database; try again shortly.",
        type="server_error",
        code="store_unavailable",
        retry_after_s=retry_after_s,
        retry_is_safe=True if refused else None,
    )


def _storage_full() -> ErrorReply:
    """507 and not 503: a retry doesn't help, and load balancers must not take the server for one
    that is down, since what is stored can be read."""
    return _interrupted(507, "The server has no space left to store this.", "storage_full")


def _interrupted(status: int, message: str, code: str) -> ErrorReply:
    """Work was begun, so whether a retry doubles it is not ours to say."""
    return ErrorReply(
        status=status, message=message, type="server_error", code=code, retry_is_safe=False
    )


_HTTP_CODES = {
    404: "unknown_url",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
    415: "unsupported_media_type",
}


_HTTP_MESSAGES = {
    404: "Unknown request URL. Please check the URL for typos.",
    405: "This method is not allowed on this URL (HINT: perhaps you meant to use another one?).",
    408: "The request body did not arrive in time.",
    413: "The request body is too large.",
}


def _of_http_exception(error: HTTPException) -> ErrorReply:
    status = error.code or 500
    allow = None
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        allow = ", ".join(sorted(error.valid_methods))
    return ErrorReply(
        status=status,
        message=_HTTP_MESSAGES.get(status) or error.description or error.name,
        type="invalid_request_error" if status < 500 else "server_error",
        code=_HTTP_CODES.get(status),
        allow=allow,
    )
