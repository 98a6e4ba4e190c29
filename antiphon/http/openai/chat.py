"""`POST /v1/chat/completions`: read, check, open a turn, and answer whole or as a stream.

A stream's headers wait for the first event, so that a refusal has a real status; from then on
failures are told inside the stream.
"""

import time
from dataclasses import dataclass
from functools import partial

import trio
from quart import Quart, request
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from antiphon.errors import PayloadTooLarge
from antiphon.events import ChoiceEnded, TurnEnded, TurnEvent, TurnFailed
from antiphon.http.asgi import PumpedResponse, Write
from antiphon.http.exchange import Exchange, current_exchange
from antiphon.http.openai.answer import AnswerCollector
from antiphon.http.openai.parse import ParsedRequest, parse_chat
from antiphon.http.openai.sse import HEARTBEAT, ChunkEncoder
from antiphon.http.openai.turns import (
    check_schema,
    client_facts,
    fingerprint,
    make_turn,
    needs_schema_check,
)
from antiphon.ids import ModelName, new_response_id
from antiphon.ports import Chat, Telemetry, TurnStream
from antiphon.settings import GenerationSettings, HttpSettings

_STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    # A pipelined request behind a long stream would hide that the client left.
    "connection": "close",
}

_INLINE_BYTES = 262_144
"""A body of hundreds of thousands of messages takes a third of a second to check, which every other
stream would feel; in a thread it takes turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRoutes:
    """What the handler works with."""

    chat: Chat
    http: HttpSettings
    generation: GenerationSettings
    telemetry: Telemetry

    def register(self, app: Quart) -> None:
        app.add_url_rule(
            "/v1/chat/completions",
            view_func=self.create,
            methods=["POST"],
            endpoint="create_chat_completion",
        )

    async def create(self) -> TrioResponse:
        """Handle one request. Raises what the error boundary turns into a reply."""
        exchange = current_exchange()
        body = await _read_json_body(self.http.max_body_bytes)
        parsed = await self._parse(body)
        exchange.facts.update(client_facts(parsed.body))
        model = ModelName(parsed.body.model)
        defaults = self.chat.sampling_defaults(model)
        capabilities = self.chat.capabilities(model)
        if needs_schema_check(parsed.body):
            await trio.to_thread.run_sync(check_schema, parsed.body)
        turn = make_turn(parsed, exchange.request_id, defaults, capabilities)
        stream = await self.chat.open_turn(turn)
        exchange.hold(stream)
        if parsed.body.stream:
            return await self._stream(exchange, stream, parsed)
        return await self._whole(exchange, stream, parsed)

    async def _parse(self, body: bytes) -> ParsedRequest:
        parse = partial(parse_chat, body, max_choices=self.generation.max_choices)
        return parse() if len(body) <= _INLINE_BYTES else await trio.to_thread.run_sync(parse)

    async def _whole(
        self, exchange: Exchange, stream: TurnStream, parsed: ParsedRequest
    ) -> TrioResponse:
        created = int(time.time())
        collector = AnswerCollector(parsed.body.n or 1)
        usage = None
        while usage is None:
            event = await stream.next_event()
            _note(exchange, event)
            usage = collector.add(event)
        model = ModelName(parsed.body.model)
        content = collector.encode(
            usage,
            response=new_response_id(),
            model=model,
            created=created,
            fingerprint=fingerprint(model, self.chat.capabilities(model)),
            with_logprobs=bool(parsed.body.logprobs),
        )
        return TrioResponse(content, content_type="application/json")

    async def _stream(
        self, exchange: Exchange, stream: TurnStream, parsed: ParsedRequest
    ) -> TrioResponse:
        created = int(time.time())
        first: TurnEvent | None = None
        with trio.move_on_after(self.http.headers_after_s):
            first = await stream.next_event()
            _note(exchange, first)
            if isinstance(first, TurnFailed):
                raise first.error
        exchange.is_stream = True

        async def pump(write: Write) -> None:
            self.telemetry.sse_opened()
            try:
                await self._pump(exchange, stream, parsed, created, first, write)
            finally:
                self.telemetry.sse_closed()

        return PumpedResponse(pump, _STREAM_HEADERS)

    async def _pump(
        self,
        exchange: Exchange,
        stream: TurnStream,
        parsed: ParsedRequest,
        created: int,
        event: TurnEvent | None,
        write: Write,
    ) -> None:
        if event is None:
            await write(HEARTBEAT)
            event = await self._next(exchange, stream, write)
        model = ModelName(parsed.body.model)
        encoder = ChunkEncoder(
            response=new_response_id(),
            model=model,
            created=created,
            fingerprint=fingerprint(model, self.chat.capabilities(model)),
            choices=parsed.body.n or 1,
            include_usage=parsed.include_usage,
        )
        while True:
            data = encoder.encode(event)
            if data:
                await write(data)
            if isinstance(event, TurnEnded | TurnFailed):
                return
            event = await self._next(exchange, stream, write)

    async def _next(self, exchange: Exchange, stream: TurnStream, write: Write) -> TurnEvent:
        """The next event, with a comment line for every `heartbeat_s` of silence before it."""
        while True:
            # A plain scope: this runs for every token, and move_on_after costs twice as much.
            with trio.CancelScope(deadline=trio.current_time() + self.http.heartbeat_s):
                event = await stream.next_event()
                _note(exchange, event)
                return event
            await write(HEARTBEAT)


def _note(exchange: Exchange, event: TurnEvent) -> None:
    """Keep what the exchange must know, before the next checkpoint can lose it."""
    match event:
        case ChoiceEnded(finish_reason=reason):
            exchange.finish = reason
        case TurnEnded(usage=usage):
            exchange.usage = usage
            exchange.turn_ended()
        case TurnFailed(error=error, usage=usage):
            exchange.usage = usage
            exchange.finish = "error"
            exchange.facts["error"] = type(error).__name__
            exchange.turn_ended()
        case _:
            pass


async def _read_json_body(max_bytes: int) -> bytes:
    """The body, bounded in size and time by the application's configuration. Raises
    PayloadTooLarge, RequestTimeout, UnsupportedMediaType."""
    if request.content_length is not None and request.content_length > max_bytes:
        raise PayloadTooLarge(max_bytes)
    if request.content_encoding not in {None, "identity"}:
        raise UnsupportedMediaType("Compressed request bodies are not supported.")
    if request.mimetype and request.mimetype != "application/json":
        raise UnsupportedMediaType(
            f"Unsupported content type: '{request.mimetype[:100]}'. This API method only accepts "
            "'application/json' requests, but you specified a different Content-Type header."
        )
    try:
        return await request.get_data(cache=False, as_text=False, parse_form_data=False)
    except RequestEntityTooLarge:  # a chunked body, whose length nobody announced
        raise PayloadTooLarge(max_bytes) from None
