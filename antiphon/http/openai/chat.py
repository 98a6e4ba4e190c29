"""`POST /v1/chat/completions`: read, check, open a turn, and answer whole or as a stream.

A stream's headers wait for the first event, so that a refusal has a real status; from then on
failures are told inside the stream.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import trio
from quart import Quart, request
from quart_trio.wrappers import TrioResponse

from antiphon import faults
from antiphon.actors.context.attaching import asked_of, attached, named
from antiphon.actors.context.material import split
from antiphon.actors.routing.route import conversation_key
from antiphon.errors import ModelNotFound
from antiphon.events import Image, Turn
from antiphon.fault_plan import Site
from antiphon.http.asgi import PumpedResponse, Write
from antiphon.http.exchange import Exchange, current_exchange
from antiphon.http.languages import languages_of
from antiphon.http.openai.answer import AnswerCollector
from antiphon.http.openai.body import read_json_body, wall_ms
from antiphon.http.openai.files.images import check_vision
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.moderations.scoring import scoring_of
from antiphon.http.openai.openapi import ANY_TEXT, Operation, mount
from antiphon.http.openai.parse import ParsedRequest, parse_chat, with_images
from antiphon.http.openai.placed import cut_of, placed_headers
from antiphon.http.openai.prompting import Prompted, Prompting
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.parse import digest_of
from antiphon.http.openai.responses.retries import read_sending
from antiphon.http.openai.schema import ChatCompletionRequest, ChatFunctionTool
from antiphon.http.openai.sse import HEARTBEAT, STREAM_HEADERS, ChunkEncoder
from antiphon.http.openai.stored_chat.kept import Heading, KeptTurn, heading_of, kept_answer
from antiphon.http.openai.turns import (
    check_schema,
    client_facts,
    fingerprint,
    make_turn,
    needs_schema_check,
)
from antiphon.http.openai.wire import ChatCompletionBody
from antiphon.http.principal import current_principal
from antiphon.ids import FileId, ModelName, new_response_id
from antiphon.moderating import Moderation
from antiphon.ports import Chat, Responses, TurnStream
from antiphon.retrieval import FileSearching
from antiphon.settings import GenerationSettings, HttpSettings
from antiphon.telemetry import Telemetry
from antiphon.turn_events import ChoiceEnded, TurnEnded, TurnEvent, TurnFailed, TurnPlaced

T = TypeVar("T")

_INLINE_BYTES = 262_144
"""A body of hundreds of thousands of messages takes a third of a second to check, which every other
stream would feel; in a thread it takes turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRoutes:
    """What the handler works with."""

    chat: Chat
    http: Callable[[], HttpSettings]
    generation: Callable[[], GenerationSettings]
    telemetry: Telemetry
    responses: Responses | None = None
    """Keeps what is to be stored; without it nothing can be."""
    moderation: Moderation | None = None
    """Scores what clients want scored; without it nothing can be."""
    prompting: Prompting | None = None
    """Knows the operator's system prompts; without it there are none."""
    files: MessageFiles | None = None
    searching: FileSearching | None = None

    def register(self, app: Quart) -> None:
        create = Operation(
            method="POST",
            rule="/v1/chat/completions",
            name="create_chat_completion",
            handler=self.create,
            summary="Answer a chat, whole or as a stream",
            body=ChatCompletionRequest,
            also=(ChatFunctionTool,),
            answer=ChatCompletionBody,
            media={"text/event-stream": ANY_TEXT},
            errors=(404, 422, 507),
        )
        mount(app, (create,))

    async def create(self) -> TrioResponse:
        """Handle one request. Raises what the error boundary turns into a reply."""
        exchange = current_exchange()
        body = await read_json_body(self.http().max_body_bytes)
        parsed = await self._parse(body)
        exchange.facts.update(client_facts(parsed.body))
        principal = current_principal()
        model = ModelName(parsed.body.model)
        if all(card.name != model for card in self.chat.models(principal.plan)):
            raise ModelNotFound(model)
        scoring = scoring_of(parsed.body.moderation, self.moderation)
        defaults = self.chat.sampling_defaults(model)
        capabilities = self.chat.capabilities(model)
        if needs_schema_check(parsed):
            await trio.to_thread.run_sync(check_schema, parsed)
        turn = make_turn(parsed, exchange.request_id, defaults, capabilities, principal)
        heading = Heading(
            response=new_response_id(),
            model=model,
            created_ms=wall_ms(),
            fingerprint=fingerprint(model, capabilities),
        )
        turn = replace(
            turn,
            response=heading.response,
            scoring=scoring,
            languages=languages_of(request.headers.get("Accept-Language")),
            address=exchange.address or None,
        )
        images = await self._images(parsed, model)
        turn = replace(
            turn,
            messages=with_images(turn.messages, parsed.images, images),
            must_see=bool(images),
        )
        prompted = await self._prompted(turn)
        files = await self._files(parsed)
        turn = replace(turn, messages=named(turn.messages, files))
        stream: TurnStream
        if parsed.body.store and self.responses is not None:
            heading, stream = await self._keep(
                self.responses, parsed, turn, heading, body, prompted, files
            )
        else:
            if turn.truncation == "auto":
                turn = replace(turn, pieces=split(turn.messages))
            turn = await self._with_files(turn, files)
            stream = await self.chat.open_turn(turn if prompted is None else prompted.begun(turn))
        exchange.hold(stream)
        await faults.pause(Site.HTTP_TURN)
        if parsed.body.stream:
            return await self._stream(exchange, stream, parsed, heading)
        return await self._whole(exchange, stream, parsed, heading)

    async def _keep(
        self,
        responses: Responses,
        parsed: ParsedRequest,
        turn: Turn,
        heading: Heading,
        body: bytes,
        prompted: Prompted | None,
        files: Mapping[FileId, str],
    ) -> tuple[Heading, KeptTurn]:
        """Run the turn where it is kept. One that was accepted before goes by its first name."""
        user = current_principal().user
        digest = await _off_the_loop(partial(digest_of, body), len(body))
        sending = read_sending(request.headers, user, digest, is_stored=True)
        new = replace(kept_answer(parsed, turn, sending, heading, user), files=files)
        watcher = await responses.create(new if prompted is None else prompted.answering(new))
        current_exchange().facts["response_id"] = watcher.response.id
        return heading_of(watcher.response), KeptTurn(watcher)

    async def _files(self, parsed: ParsedRequest) -> dict[FileId, str]:
        """Those that its messages bring along, with their names. Raises RecordNotFound,
        InvalidRequest, PayloadTooLarge, StoreError."""
        if self.files is None or not parsed.files:
            return {}
        found = await self.files.found(current_principal().user, parsed.files)
        return {file.id: file.filename for file in found}

    async def _images(self, parsed: ParsedRequest, model: ModelName) -> tuple[Image, ...]:
        """Those that its messages bring along. Raises InvalidRequest, StoreError."""
        if not parsed.images:
            return ()
        principal, first = current_principal(), parsed.images[0].path
        check_vision(self.chat, model, principal.plan, first)
        if self.files is None:
            raise unsupported_value(first, "image_url", "'text'")
        is_kept = bool(parsed.body.store) and self.responses is not None
        return await self.files.images(principal.user, parsed.images, is_kept=is_kept)

    async def _with_files(self, turn: Turn, files: Mapping[FileId, str]) -> Turn:
        """The turn, whose model is shown what it is to see of them. Raises StoreError."""
        asked = asked_of(
            turn,
            user=current_principal().user,
            files=files,
            search=None,
            cards=self.chat.models(turn.plan),
            may_cite=False,
        )
        if self.searching is None or asked is None:
            return turn
        return attached(turn, await self.searching.gather(asked))

    async def _prompted(self, turn: Turn) -> Prompted | None:
        """Raises PromptUnavailable, StoreError."""
        if self.prompting is None:
            return None
        caller = turn.user or turn.tenant or ""

        async def find_key() -> str:
            await trio.lowlevel.checkpoint()
            return conversation_key(caller, turn.affinity, turn.messages)

        return await self.prompting.choose(turn.model, None, find_key)

    async def _parse(self, body: bytes) -> ParsedRequest:
        parse = partial(
            parse_chat,
            body,
            max_choices=self.generation().max_choices,
            can_store=self.responses is not None,
        )
        return await _off_the_loop(parse, len(body))

    async def _whole(
        self, exchange: Exchange, stream: TurnStream, parsed: ParsedRequest, heading: Heading
    ) -> TrioResponse:
        collector = AnswerCollector(parsed.body.n or 1)
        usage, placed = None, None
        while usage is None:
            event = await stream.next_event()
            _note(exchange, event)
            if isinstance(event, TurnPlaced):
                placed, heading = event, self._placed(heading, event)
            usage = collector.add(event)
        content = collector.encode(
            usage,
            response=heading.response,
            model=heading.model,
            created=heading.created,
            fingerprint=heading.fingerprint,
            tier="default" if placed is None else placed.tier,
            with_logprobs=bool(parsed.body.logprobs),
            with_moderation=parsed.body.moderation is not None,
        )
        headers = placed_headers(placed)
        return TrioResponse(content, headers=headers, content_type="application/json")

    async def _stream(
        self, exchange: Exchange, stream: TurnStream, parsed: ParsedRequest, heading: Heading
    ) -> TrioResponse:
        first: TurnEvent | None = None
        placed: TurnPlaced | None = None
        with trio.move_on_after(self.http().headers_after_s):
            # A place alone is no answer yet: a refusal may still come, and has a status.
            while first is None:
                event = await stream.next_event()
                _note(exchange, event)
                if isinstance(event, TurnFailed):
                    raise event.error
                if isinstance(event, TurnPlaced):
                    placed = event
                else:
                    first = event
        exchange.is_stream = True

        async def pump(write: Write) -> None:
            self.telemetry.sse_opened()
            try:
                await self._pump(exchange, stream, parsed, heading, placed, first, write)
            finally:
                self.telemetry.sse_closed()

        return PumpedResponse(pump, STREAM_HEADERS | placed_headers(placed))

    async def _pump(
        self,
        exchange: Exchange,
        stream: TurnStream,
        parsed: ParsedRequest,
        heading: Heading,
        placed: TurnPlaced | None,
        event: TurnEvent | None,
        write: Write,
    ) -> None:
        if event is None:
            await write(HEARTBEAT)
            event = await self._next(exchange, stream, write)
        encoder = ChunkEncoder(
            response=heading.response,
            model=heading.model,
            created=heading.created,
            fingerprint=heading.fingerprint,
            choices=parsed.body.n or 1,
            include_usage=parsed.include_usage,
            with_moderation=parsed.body.moderation is not None,
        )
        if placed is not None:
            self._place(encoder, heading, placed)
        while True:
            if isinstance(event, TurnPlaced):
                self._place(encoder, heading, event)
            data = encoder.encode(event)
            await faults.pause(Site.HTTP_STREAM)
            if data:
                await write(data)
            if isinstance(event, TurnEnded | TurnFailed):
                return
            event = await self._next(exchange, stream, write)

    def _place(self, encoder: ChunkEncoder, heading: Heading, placed: TurnPlaced) -> None:
        heading = self._placed(heading, placed)
        encoder.place(
            model=heading.model,
            tier=placed.tier,
            fingerprint=heading.fingerprint,
            context=cut_of(placed),
        )

    def _placed(self, heading: Heading, placed: TurnPlaced) -> Heading:
        """As the model that answers would have it. What is kept was accepted with its fingerprint,
        and is shown with that one later."""
        if placed.model == heading.model:
            return heading
        fresh = fingerprint(placed.model, self.chat.capabilities(placed.model))
        return replace(
            heading,
            model=placed.model,
            fingerprint=heading.fingerprint if heading.is_kept else fresh,
        )

    async def _next(self, exchange: Exchange, stream: TurnStream, write: Write) -> TurnEvent:
        """The next event, with a comment line for every `heartbeat_s` of silence before it."""
        while True:
            # A plain scope: this runs for every token, and move_on_after costs twice as much.
            deadline = trio.current_time() + self.http().heartbeat_s
            with trio.CancelScope(deadline=deadline):
                event = await stream.next_event()
                _note(exchange, event)
                return event
            await write(HEARTBEAT)


async def _off_the_loop(work: Callable[[], T], size: int) -> T:
    """Do it here when the body is small, and in a thread when it isn't."""
    return work() if size <= _INLINE_BYTES else await trio.to_thread.run_sync(work)


def _note(exchange: Exchange, event: TurnEvent) -> None:
    """Keep what the exchange must know, before the next checkpoint can lose it."""
    match event:
        case TurnPlaced(model=model, moved=moved):
            exchange.facts["model"] = model
            if moved is not None:
                exchange.facts["moved"] = moved
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
