"""`/v1/responses` once they are there: show, show again as a stream, list, cancel, delete, rate."""

from collections.abc import Callable
from dataclasses import dataclass

from quart import request
from quart_trio.wrappers import TrioResponse

from antiphon.errors import RecordNotFound
from antiphon.http.exchange import current_exchange
from antiphon.http.openai.body import json_response, read_json_body, wall_ms
from antiphon.http.openai.conversations.wire import receipt_object
from antiphon.http.openai.lists import (
    check_include,
    check_text,
    fetch,
    list_body,
    one_more,
    parse_flag,
    parse_integer,
    parse_page,
)
from antiphon.http.openai.responses.parse import conversation_id as conversation_of
from antiphon.http.openai.responses.parse import parse_feedback
from antiphon.http.openai.responses.parse import response_id as response_of
from antiphon.http.openai.responses.render import EventRenderer
from antiphon.http.openai.responses.schema import LOGPROBS, RESULTS, Include
from antiphon.http.openai.responses.streams import Reading
from antiphon.http.openai.responses.wire import DeletedBody, feedback_body, item_body, response_body
from antiphon.http.principal import current_principal
from antiphon.ids import ModelName, ResponseId
from antiphon.ports import Responses
from antiphon.records import Feedback, ResponseKind
from antiphon.settings import HttpSettings
from antiphon.storage import StoreAccess
from antiphon.telemetry import Telemetry

_MAX_MODEL_CHARACTERS = 200
HIGHEST_NUMBER = 2**53
"""The largest integer that every JSON reader keeps whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRoutes:
    """What the handlers work with."""

    responses: Responses
    store: StoreAccess
    http: Callable[[], HttpSettings]
    telemetry: Telemetry
    now_ms: Callable[[], int] = wall_ms

    async def get(self, response_id: str) -> TrioResponse:
        """The response as it stands, or all its events from the first on."""
        id = response_of(response_id)
        check_include(request.args)
        parse_flag(request.args, "include_obfuscation")
        user, after = current_principal().user, _starting_after()
        if not parse_flag(request.args, "stream"):
            found = await self.store.run(lambda store: store.response(user, id))
            if found is None:
                raise _unknown(id)
            return json_response(
                response_body(found, with_logprobs=_wants(LOGPROBS), with_results=_wants(RESULTS))
            )
        watcher = await self.responses.watch(user, id)
        reading = Reading(
            exchange=current_exchange(),
            watcher=watcher,
            http=self.http,
            telemetry=self.telemetry,
        )
        renderer = EventRenderer(
            with_logprobs=_wants(LOGPROBS), with_results=_wants(RESULTS), after=after
        )
        return await reading.as_stream(renderer)

    async def list_all(self) -> TrioResponse:
        """Ours: the API it copies can't list."""
        page = parse_page(request.args)
        model = request.args.get("model")
        if model is not None:
            check_text("model", model, _MAX_MODEL_CHARACTERS)
        given = request.args.get("conversation")
        conversation = None if given is None else conversation_of(given)
        user = current_principal().user
        found = await fetch(
            self.store,
            page,
            lambda store: store.responses(
                user,
                one_more(page),
                kind=ResponseKind.RESPONSE,
                conversation=conversation,
                model=None if model is None else ModelName(model),
            ),
        )
        return json_response(
            list_body(
                found,
                page,
                lambda each: response_body(each, with_logprobs=False),
                lambda each: each.id,
            )
        )

    async def cancel(self, response_id: str) -> TrioResponse:
        """Also one in the foreground; again is harmless."""
        id = response_of(response_id)
        ended = await self.responses.cancel(current_principal().user, id)
        return json_response(response_body(ended, with_logprobs=False))

    async def delete(self, response_id: str) -> TrioResponse:
        id = response_of(response_id)
        user, now = current_principal().user, self.now_ms()
        receipt = await self.store.run(lambda store: store.delete_response(user, id, now))
        if receipt is None:
            raise _unknown(id)
        return json_response(DeletedBody(id=id, receipt=receipt_object(receipt, ())))

    async def input_items(self, response_id: str) -> TrioResponse:
        id = response_of(response_id)
        check_include(request.args)
        page, user = parse_page(request.args), current_principal().user
        found = await fetch(
            self.store, page, lambda store: store.input_items(user, id, one_more(page))
        )
        if found is None:
            raise _unknown(id)
        return json_response(list_body(found, page, item_body, lambda each: str(each["id"])))

    async def rate(self, response_id: str) -> TrioResponse:
        """Ours: what a person thought of it."""
        id = response_of(response_id)
        given = parse_feedback(await read_json_body(self.http().max_body_bytes))
        feedback = Feedback(
            response=id, rating=given.rating, reason=given.reason, created_ms=self.now_ms()
        )
        user = current_principal().user
        if not await self.store.run(lambda store: store.set_feedback(user, feedback)):
            raise _unknown(id)
        return json_response(feedback_body(feedback))


def _starting_after() -> int:
    """Without a stream it says nothing, and SDKs send it all the same."""
    return parse_integer(request.args, "starting_after", -1, -1, HIGHEST_NUMBER)


def _wants(what: Include) -> bool:
    return what in (*request.args.getlist("include"), *request.args.getlist("include[]"))


def _unknown(id: ResponseId) -> RecordNotFound:
    return RecordNotFound("response", id, "response_id")
