"""`GET /v1/models` and `GET /v1/models/{id}`; an id may hold slashes, as Hugging Face names do."""

from dataclasses import dataclass

import msgspec
from quart import Quart
from quart_trio.wrappers import TrioResponse

from antiphon.errors import ModelNotFound
from antiphon.http.openai.openapi import Operation, mount
from antiphon.http.openai.wire import ModelBody, ModelListBody
from antiphon.http.principal import current_principal
from antiphon.ports import Chat, ModelCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRoutes:
    """What the handlers work with."""

    chat: Chat

    def register(self, app: Quart) -> None:
        mount(
            app,
            (
                Operation(
                    method="GET",
                    rule="/v1/models",
                    name="list_models",
                    handler=self.list_all,
                    summary="List the models",
                    answer=ModelListBody,
                    feeds={"model": "$response.body#/data/0/id"},
                ),
                Operation(
                    method="GET",
                    rule="/v1/models/<path:model>",
                    name="retrieve_model",
                    handler=self.get,
                    summary="Show a model",
                    answer=ModelBody,
                ),
            ),
        )

    async def list_all(self) -> TrioResponse:
        return _respond(ModelListBody(data=[self._body(card) for card in self._cards()]))

    async def get(self, model: str) -> TrioResponse:
        for card in self._cards():
            if card.name == model:
                return _respond(self._body(card))
        raise ModelNotFound(model)

    def _cards(self) -> tuple[ModelCard, ...]:
        return self.chat.models(current_principal().plan)

    def _body(self, card: ModelCard) -> ModelBody:
        capabilities = self.chat.capabilities(card.name)
        return ModelBody(
            id=card.name,
            created=card.created,
            owned_by=card.owned_by,
            max_model_len=card.window if capabilities is None else capabilities.window,
            vision=self.chat.sees(card.name) is True,
        )


def _respond(body: ModelBody | ModelListBody) -> TrioResponse:
    return TrioResponse(msgspec.json.encode(body), content_type="application/json")
