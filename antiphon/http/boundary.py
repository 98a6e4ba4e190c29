"""The Quart application both listeners are made of: every error becomes one reply, every reply
carries the request's id, and a defect is logged once, here."""

from collections.abc import Callable

import structlog
import trio
from quart import ResponseReturnValue
from quart.wrappers import Request, Response
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers import TrioRequest, TrioResponse
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from antiphon.errors import AddressSuspended, RateLimited
from antiphon.http.asgi import ExchangeConnection
from antiphon.http.auth import bearer_token
from antiphon.http.body_stream import PacedRequest
from antiphon.http.brakes import Brakes
from antiphon.http.errors import ErrorReply, describe_error, error_body, error_headers
from antiphon.http.exchange import Exchange, current_exchange, exchange_of
from antiphon.settings import HttpSettings
from antiphon.telemetry import Telemetry

log = structlog.get_logger(__name__)


class BoundedApp(QuartTrio):
    """QuartTrio with one error boundary around every request."""

    asgi_http_class: type[TrioASGIHTTPConnection] = ExchangeConnection
    request_class: type[TrioRequest] = PacedRequest

    def __init__(
        self,
        name: str,
        settings: Callable[[], HttpSettings],
        telemetry: Telemetry,
        *,
        is_openai: bool,
    ) -> None:
        super().__init__(name, static_folder=None)
        self.telemetry = telemetry
        self.is_quiet = not is_openai
        self.brakes: Brakes | None = None
        self._is_openai = is_openai
        self._settings = settings
        self.config["RESPONSE_TIMEOUT"] = None
        self.url_map.strict_slashes = False  # a redirect would lose the body of a POST
        self.url_map.merge_slashes = False
        self.register_error_handler(Exception, self._on_error)

    def bound_bodies(self) -> None:
        """Take the bounds on a request's body as they are now, before the request is made."""
        settings = self._settings()
        self.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
        self.config["BODY_TIMEOUT"] = settings.body_timeout_s

    async def handle_request(self, request: Request) -> Response | WerkzeugResponse:
        if self.brakes is not None and (refusal := self._refused(request, self.brakes)) is not None:
            return refusal
        async with self.request_context(request) as context:
            exchange = current_exchange()
            if request.url_rule is not None:
                exchange.route = request.url_rule.rule
            try:
                response = await self.full_dispatch_request(context)
                self._note_answer(exchange, response.status_code)
                return response
            except trio.Cancelled:
                raise
            except BaseExceptionGroup as group:
                crashes, rest = group.split(Exception)
                if crashes is not None:
                    reply = describe_error(crashes)
                    self.log_failure(exchange, crashes, reply)
                if rest is not None or crashes is None:
                    raise rest or group from None
                return _respond(reply)

    async def handle_user_exception(
        self, error: Exception | BaseExceptionGroup[BaseException]
    ) -> HTTPException | ResponseReturnValue:
        """Groups go to `handle_request` whole: quart-trio would take one member and lose the rest,
        and with a cancellation among them even that one."""
        if isinstance(error, BaseExceptionGroup):
            raise error
        return await super().handle_user_exception(error)

    def answer_headers(self, exchange: Exchange) -> list[tuple[str, str]]:
        """What every answer carries."""
        headers: list[tuple[str, str]] = [("x-request-id", exchange.request_id)]
        if exchange.warning is not None:
            headers.append(("x-antiphon-warning", exchange.warning))
        if self._is_openai:
            headers.append(("openai-processing-ms", str(int(exchange.elapsed_s * 1000))))
            headers.append(("openai-version", "2020-10-01"))
        return headers

    def log_failure(self, exchange: Exchange, error: BaseException, reply: ErrorReply) -> None:
        """Log a defect with its traceback and the request's id; expected errors are replies."""
        exchange.facts["error"] = reply.code or reply.type
        if not reply.is_expected:
            log.error("request_failed", request_id=exchange.request_id, exc_info=error)

    def _refused(self, request: Request, brakes: Brakes) -> TrioResponse | None:
        """Before anything is done for the request: it has no context, and its body is unread."""
        exchange = exchange_of(request.scope)
        client = request.scope.get("client")
        try:
            exchange.address = brakes.arrive(
                client[0] if client else None,
                ",".join(request.headers.getlist("x-forwarded-for")),
                bearer_token(request.headers.get("authorization")),
            )
        except (RateLimited, AddressSuspended) as error:
            exchange.is_quiet = True  # told once a minute, not for each
            reply = describe_error(error)
            self.log_failure(exchange, error, reply)
            return _respond(reply)
        return None

    def _note_answer(self, exchange: Exchange, status: int) -> None:
        abuse = None if self.brakes is None else self.brakes.abuse
        principal = exchange.principal
        if abuse is not None and principal is not None and exchange.brings_prompt and status == 200:
            abuse.answered(principal, exchange.address)

    async def _on_error(self, error: Exception) -> ResponseReturnValue:
        reply = describe_error(error)
        self.log_failure(current_exchange(), error, reply)
        return _respond(reply)


def _respond(reply: ErrorReply) -> TrioResponse:
    return TrioResponse(
        error_body(reply),
        status=reply.status,
        headers=error_headers(reply),
        content_type="application/json",
    )
