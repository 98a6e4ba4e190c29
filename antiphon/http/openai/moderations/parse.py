"""A request to `/v1/moderations`, read and checked: what remains is texts, one for each result."""

import msgspec

from antiphon.errors import InvalidRequest, ModelNotFound
from antiphon.http.openai.bounds import check_length, empty_array
from antiphon.http.openai.decode import decode_body
from antiphon.http.openai.moderations.schema import (
    MAX_INPUTS,
    CreateModeration,
    ModeratedImage,
    ModeratedText,
)
from antiphon.http.openai.moderations.scoring import OPENAI_MODELS
from antiphon.http.openai.refusals import unsupported_value

_DECODER = msgspec.json.Decoder(CreateModeration)
MAX_CHARACTERS = 131_072
"""Of all texts together: a second or two of the classifier's time."""


def parse_moderation(body: bytes, *, model: str) -> tuple[str, ...]:
    """Raises InvalidRequest; ModelNotFound for one that is neither `model` nor a name of
    OpenAI's."""
    request = decode_body(body, _DECODER, {"type": "'text'"})
    if request.model is not None and request.model not in (model, *OPENAI_MODELS):
        raise ModelNotFound(request.model)
    if isinstance(request.input, str):
        check_length("input", request.input, MAX_CHARACTERS)
        return (request.input,)
    if not request.input:
        raise empty_array("input")
    if len(request.input) > MAX_INPUTS:
        raise InvalidRequest(
            "Invalid 'input': array too long. Expected an array with maximum length "
            f"{MAX_INPUTS}, but got an array with length {len(request.input)} instead.",
            "input",
            "array_above_max_length",
        )
    texts = [each for each in request.input if isinstance(each, str)]
    if texts and len(texts) != len(request.input):
        raise InvalidRequest(
            "Invalid 'input': expected an array of strings or an array of parts, not of both.",
            "input",
            "invalid_type",
        )
    for index, each in enumerate(request.input):
        if isinstance(each, ModeratedImage):
            raise unsupported_value(f"input[{index}].type", "image_url", "'text'")
    parts = [each.text for each in request.input if isinstance(each, ModeratedText)]
    if sum(map(len, (*texts, *parts))) > MAX_CHARACTERS:
        raise InvalidRequest(
            f"Invalid 'input': too long. Expected at most {MAX_CHARACTERS} characters in all.",
            "input",
            "string_above_max_length",
        )
    return tuple(texts) or ("\n".join(parts),)
