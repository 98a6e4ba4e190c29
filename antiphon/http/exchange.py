"""One HTTP request from its first byte to its log line, and the turn it holds meanwhile.

It keeps one rule: a turn that was opened is cancelled exactly once unless it ended, synchronously,
wherever the request dies, also between the handler's return and the first byte of its answer.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import structlog
import trio
from hypercorn.typing import HTTPScope
from quart import request

from antiphon.events import CancelCause
from antiphon.http.connection import CONNECTION_KEY, Facts
from antiphon.ids import RequestId, new_request_id
from antiphon.records import Principal
from antiphon.telemetry import Telemetry
from antiphon.turn_events import Usage

log = structlog.get_logger(__name__)

_EXCHANGE_KEY = "antiphon.exchange"
_ACCEPTABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_KNOWN_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_STATUS_WITHOUT_ANSWER = 499
"""nginx's number for a client that left before there was a status."""
UNMATCHED_ROUTE = "unmatched"
_PROMPT_ROUTES = {"/v1/chat/completions", "/v1/responses"}


class Held(Protocol):
    """What an exchange gives back when its client leaves: a turn, or a reader of one."""

    def cancel(self, cause: CancelCause) -> None:
        """Never blocks, idempotent."""


@dataclass(slots=True)
class Exchange:
    """Mutable, with one owner: the ASGI connection that runs it."""

    request_id: RequestId
    method: str
    telemetry: Telemetry
    connection: Facts
    started_at: float = field(default_factory=trio.current_time)
    route: str = UNMATCHED_ROUTE
    status: int = 0
    usage: Usage | None = None
    finish: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    """Further fields of the log line: identifiers a client gave, hashed; never message text."""
    is_quiet: bool = False
    """Polled pages log at debug, so that they don't drown what people do."""
    request_is_read: bool = False
    is_stream: bool = False
    is_answered: bool = False
    cancelled: CancelCause | None = None
    principal: Principal | None = None
    """Who makes the request, once that is known."""
    address: str = ""
    """Where it comes from, as far as the settings let that be believed."""
    warning: str | None = None
    """What its client is warned of, in a header of the answer."""
    _turn: Held | None = None

    @classmethod
    def begin(cls, scope: HTTPScope, telemetry: Telemetry, *, is_quiet: bool = False) -> "Exchange":
        """Open the exchange of an ASGI scope and leave it there for the handlers."""
        exchange = cls(
            request_id=_request_id(scope),
            method=scope["method"] if scope["method"] in _KNOWN_METHODS else "OTHER",
            telemetry=telemetry,
            is_quiet=is_quiet,
            connection=scope["state"].get(CONNECTION_KEY) or Facts(),
            request_is_read=not _has_body(scope),
        )
        cast("dict[str, Any]", scope)[_EXCHANGE_KEY] = exchange
        return exchange

    @property
    def brings_prompt(self) -> bool:
        """Whether it asks for an answer of a model's."""
        return self.method == "POST" and self.route in _PROMPT_ROUTES

    @property
    def elapsed_s(self) -> float:
        return trio.current_time() - self.started_at

    def hold(self, turn: Held) -> None:
        """From now on `turn` is cancelled if the exchange ends before the turn does."""
        self._turn = turn

    def turn_ended(self) -> None:
        """The held turn said its last event: nothing is left to give back."""
        self._turn = None

    def client_left(self) -> None:
        """The connection is gone; after the answer is out, that is just its end."""
        if not self.is_answered:
            if self.is_stream:
                self.telemetry.stream_disconnected()
            slow = self.connection.reader_was_too_slow
            self._release(CancelCause.SLOW_READER if slow else CancelCause.DISCONNECT)

    def broke(self) -> None:
        """The answer ended by a defect of ours."""
        self._release(CancelCause.OWNER_LOST)

    def close(self) -> None:
        """The end, however it came: release, count, and write the one log line."""
        if self._turn is not None:
            self._release(CancelCause.OWNER_LOST if self.is_answered else CancelCause.SHUTDOWN)
        seconds = self.elapsed_s
        status = self.status or _STATUS_WITHOUT_ANSWER
        self.telemetry.http_request_finished(self.route, self.method, status, seconds)
        report = log.debug if self.is_quiet else log.info
        report(
            "request_finished",
            request_id=self.request_id,
            method=self.method,
            route=self.route,
            status=status,
            duration_s=round(seconds, 4),
            prompt_tokens=self.usage.prompt_tokens if self.usage else None,
            completion_tokens=self.usage.completion_tokens if self.usage else None,
            finish=self.finish,
            cancelled=self.cancelled,
            **self.facts,
        )

    def _release(self, cause: CancelCause) -> None:
        self.cancelled = self.cancelled or cause
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.cancel(cause)


def current_exchange() -> Exchange:
    """The exchange of the request that this task handles."""
    return exchange_of(request.scope)


def exchange_of(scope: Any) -> Exchange:
    """The exchange that was begun with an ASGI scope."""
    return cast("Exchange", cast("dict[str, Any]", scope)[_EXCHANGE_KEY])


def _has_body(scope: HTTPScope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


def _request_id(scope: HTTPScope) -> RequestId:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _ACCEPTABLE_ID.fullmatch(value):
            return RequestId(value.decode("ascii"))
    return new_request_id()
