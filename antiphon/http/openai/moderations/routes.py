"""`POST /v1/moderations`: what the classifier says of texts. No rule is applied, and nothing of
them is kept."""

from collections.abc import Callable
from dataclasses import dataclass

from quart import Quart
from quart_trio.wrappers import TrioResponse

from antiphon.http.openai.body import json_response, read_json_body
from antiphon.http.openai.moderations.parse import parse_moderation
from antiphon.http.openai.moderations.schema import CreateModeration
from antiphon.http.openai.moderations.wire import ModerationBody, moderation_body
from antiphon.http.openai.openapi import Operation, mount
from antiphon.moderating import Moderation
from antiphon.settings import HttpSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModerationRoutes:
    """What the handler works with."""

    moderation: Moderation
    http: Callable[[], HttpSettings]

    def register(self, app: Quart) -> None:
        create = Operation(
            method="POST",
            rule="/v1/moderations",
            name="create_moderation",
            handler=self.create,
            summary="Classify texts by OpenAI's categories",
            body=CreateModeration,
            answer=ModerationBody,
            errors=(404,),
        )
        mount(app, (create,))

    async def create(self) -> TrioResponse:
        """Raises ModerationUnavailable where nobody can judge now."""
        body = await read_json_body(self.http().max_body_bytes)
        texts = parse_moderation(body, model=self.moderation.model)
        scores = await self.moderation.score(texts)
        return json_response(moderation_body(scores, model=self.moderation.model))
