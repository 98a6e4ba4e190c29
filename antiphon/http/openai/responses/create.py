"""`POST /v1/responses` and `POST /v1/responses/input_tokens`: read, check, and answer whole, as a
stream, or at once while the work goes on in the background."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import trio
from quart import request
from quart_trio.wrappers import TrioResponse

from antiphon import faults
from antiphon.actors.context.attaching import asked_of, attached
from antiphon.actors.context.looking import with_images_found
from antiphon.actors.context.material import material
from antiphon.context_settings import ContextSettings
from antiphon.errors import ModelNotFound, RecordNotFound, RequestError
from antiphon.events import CancelCause, Sampling, Turn
from antiphon.fault_plan import Site
from antiphon.http.exchange import current_exchange
from antiphon.http.languages import languages_of
from antiphon.http.openai.body import json_response, read_json_body, wall_ms
from antiphon.http.openai.files.images import check_vision, first_image
from antiphon.http.openai.files.inline import MessageFiles
from antiphon.http.openai.moderations.scoring import scoring_of
from antiphon.http.openai.placed import placed_headers
from antiphon.http.openai.prompting import Prompted, Prompting
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.answers import instructions_of, make_answer, truncation_of
from antiphon.http.openai.responses.arm_key import arm_key
from antiphon.http.openai.responses.errors import told_about
from antiphon.http.openai.responses.items import references_in, with_found
from antiphon.http.openai.responses.parse import (
    ParsedCount,
    ParsedCreate,
    ParsedInput,
    check_schemas,
    has_schemas,
    parse_count,
    parse_create,
)
from antiphon.http.openai.responses.render import EventRenderer
from antiphon.http.openai.responses.retries import read_sending
from antiphon.http.openai.responses.schema import CreateResponse, InputFields
from antiphon.http.openai.responses.streams import Reading
from antiphon.http.openai.responses.wire import InputTokensBody, response_body
from antiphon.http.openai.turns import client_facts
from antiphon.http.principal import current_principal
from antiphon.ids import ModelName, UserId
from antiphon.messages import IMAGE, files_in
from antiphon.moderating import Moderation
from antiphon.ports import Chat, Responses
from antiphon.records import Accepted, Item
from antiphon.retrieval import FileSearching
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess
from antiphon.telemetry import Telemetry
from antiphon.views import Truncation

T = TypeVar("T")

_INLINE_BYTES = 262_144
"""A body of thousands of items takes long enough to check for every other stream to feel it; in a
thread it takes turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRoutes:
    """What the handlers work with."""

    responses: Responses
    store: StoreAccess
    chat: Chat
    http: Callable[[], HttpSettings]
    telemetry: Telemetry
    moderation: Moderation | None = None
    """Scores what clients want scored; without it nothing can be."""
    prompting: Prompting | None = None
    """Knows the operator's system prompts; without it there are none."""
    context: Callable[[], ContextSettings] = ContextSettings
    files: MessageFiles | None = None
    searching: FileSearching | None = None
    now_ms: Callable[[], int] = wall_ms

    async def create(self) -> TrioResponse:
        """Handle one request. Raises what the error boundary turns into a reply."""
        exchange, principal = current_exchange(), current_principal()
        user = principal.user
        now_ms = self.now_ms()
        raw = await read_json_body(self.http().max_body_bytes)
        parsed = await _parsed(raw, partial(parse_create, raw, now_ms))
        body = parsed.body
        exchange.facts.update(client_facts(body))
        sending = read_sending(request.headers, user, parsed.digest, is_stored=body.is_stored)
        model = self._known(body.model)
        defaults = self.chat.sampling_defaults(model)
        scoring = scoring_of(body.moderation, self.moderation)
        await _check_schemas(parsed)
        items = await self._items(user, model, parsed.input, now_ms, is_kept=body.is_stored)
        prompted = await self._prompted(model, body, parsed.input, items)
        new = make_answer(
            parsed,
            sending,
            input=items,
            model=model,
            request_id=exchange.request_id,
            defaults=defaults,
            capabilities=self.chat.capabilities(model),
            now_ms=now_ms,
            principal=principal,
            truncation=self.context().truncation,
        )
        turn = replace(
            new.turn,
            scoring=scoring,
            languages=languages_of(request.headers.get("Accept-Language")),
            address=exchange.address or None,
        )
        new = replace(new, turn=turn)
        new = new if prompted is None else prompted.answering(new)
        try:
            watcher = await self.responses.create(new)
        except RequestError as error:
            raise told_about(error) from error
        if watcher.response.background and not body.stream:
            watcher.cancel(CancelCause.DISCONNECT)  # it goes on without a reader
            exchange.facts["response_id"] = watcher.response.id
            return json_response(response_body(watcher.response, with_logprobs=False))
        reading = Reading(
            exchange=exchange, watcher=watcher, http=self.http, telemetry=self.telemetry
        )
        await faults.pause(Site.HTTP_TURN)
        if body.stream:
            return await reading.as_stream(
                EventRenderer(with_logprobs=body.wants_logprobs, with_results=body.wants_results)
            )
        ended = await reading.to_the_end()
        answer = json_response(
            response_body(ended, with_logprobs=body.wants_logprobs, with_results=body.wants_results)
        )
        answer.headers.update(placed_headers(watcher.placed))
        return answer

    async def count(self) -> TrioResponse:
        """The tokens of a prompt, as the model itself would see it."""
        user = current_principal().user
        raw = await read_json_body(self.http().max_body_bytes)
        now_ms = self.now_ms()
        parsed = await _parsed(raw, partial(parse_count, raw, now_ms))
        await _check_schemas(parsed)
        model = self._known(parsed.body.model)
        truncation = truncation_of(parsed.body, self.context().truncation)
        came = await self._came(user, parsed.input, truncation)
        items = await self._items(user, model, parsed.input, now_ms, is_kept=False)
        prompted = await self._prompted(model, parsed.body, parsed.input, items)
        made = material(
            prompt=None if prompted is None else prompted.message,
            instructions=instructions_of(parsed.body),
            came=came,
            input=items,
            may_split=parsed.input.conversation is None and parsed.input.previous is None,
        )
        turn = Turn(
            request=current_exchange().request_id,
            model=model,
            messages=made.messages,
            pieces=made.pieces,
            truncation=truncation,
            tools=parsed.given.toolbox,
            sampling=Sampling(),
        )
        if self.files is not None:
            turn = await with_images_found(turn, user, self.store, self.files.settings())
        turn = await self._with_files(user, turn, parsed, (*came.context, *items))
        try:
            tokens = await self.chat.count_tokens(turn)
        except RequestError as error:
            raise told_about(error) from error
        return json_response(InputTokensBody(input_tokens=tokens))

    async def _prompted(
        self, model: ModelName, body: InputFields, given: ParsedInput, items: tuple[Item, ...]
    ) -> Prompted | None:
        """Raises RecordNotFound, InvalidRequest, PromptUnavailable, StoreError."""
        asked = body.prompt if isinstance(body, CreateResponse) else None
        cache_key = body.prompt_cache_key if isinstance(body, CreateResponse) else None
        if self.prompting is None:
            if asked is not None:
                raise RecordNotFound("prompt", asked.id, "prompt.id")
            return None
        user = current_principal().user
        find_key = partial(arm_key, self.store, user, given, items, cache_key)
        return await self.prompting.choose(model, asked, find_key)

    def _known(self, name: str | None) -> ModelName:
        """With none named, the first one. Raises ModelNotFound."""
        names = [card.name for card in self.chat.models(current_principal().plan)]
        if name is None and names:
            return names[0]
        if name not in names:
            raise ModelNotFound(name or "")
        return ModelName(name)

    async def _items(
        self,
        user: UserId,
        model: ModelName,
        given: ParsedInput,
        now_ms: int,
        *,
        is_kept: bool,
    ) -> tuple[Item, ...]:
        """Raises RecordNotFound, InvalidRequest, PayloadTooLarge, StoreError."""
        items = given.items
        found: tuple[Item, ...] = ()
        if (image := first_image(items, "input")) is not None:
            check_vision(self.chat, model, current_principal().plan, image)
            if self.files is None:
                raise unsupported_value(f"{image}.type", IMAGE, "'input_text'")
        if self.files is not None:
            items = await self.files.placed(user, items, is_kept=is_kept)
        if ids := references_in(items):
            found = await self.store.run(lambda store: store.find_items(user, ids))
        return with_found(items, found, now_ms)

    async def _with_files(
        self, user: UserId, turn: Turn, parsed: ParsedCount, items: tuple[Item, ...]
    ) -> Turn:
        """As the turn itself would be. Raises RecordNotFound, InvalidRequest, StoreError."""
        asked = asked_of(
            turn,
            user=user,
            files=files_in(items),
            search=parsed.given.search,
            cards=self.chat.models(current_principal().plan),
            may_cite=True,
        )
        if self.searching is None or asked is None:
            return turn
        return attached(turn, await self.searching.gather(asked))

    async def _came(self, user: UserId, given: ParsedInput, truncation: Truncation) -> Accepted:
        """What a turn there would see."""
        if given.conversation is None and given.previous is None:
            return Accepted(context=())
        return await self.store.run(
            lambda store: store.context(
                user,
                conversation=given.conversation,
                previous=given.previous,
                whole=truncation == "disabled",
                memory_default=self.context().memory,
            )
        )


async def _parsed(body: bytes, parse: Callable[[], T]) -> T:
    if len(body) <= _INLINE_BYTES:
        return parse()
    return await trio.to_thread.run_sync(parse)


async def _check_schemas(parsed: ParsedCreate | ParsedCount) -> None:
    if has_schemas(parsed):
        await trio.to_thread.run_sync(check_schemas, parsed)
