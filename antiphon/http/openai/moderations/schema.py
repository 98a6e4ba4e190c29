"""The request body of `/v1/moderations` as OpenAI documents it. Types only."""

from typing import Annotated

import msgspec

from antiphon.http.openai.schema import Strict

MAX_INPUTS = 128


class ModeratedText(Strict, frozen=True, tag_field="type", tag="text"):
    text: str


class ModeratedImage(msgspec.Struct, frozen=True, tag_field="type", tag="image_url"):
    """Known, so that the refusal can say what it is."""


class CreateModeration(Strict, frozen=True):
    """Parts are one input together; strings are one each."""

    input: (
        str
        | Annotated[
            list[str | ModeratedText | ModeratedImage],
            msgspec.Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_INPUTS}),
        ]
    )
    model: str | None = None
