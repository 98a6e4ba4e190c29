"""The objects of an answer as they go on the wire; every key that the specification requires is
there, null where it has no value."""

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.events import FinishReason, TokenLogprob, Usage
from antiphon.http.openai.moderations.wire import ChatModeration
from antiphon.ids import ModelName, ResponseId


class TokenLogprobBody(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[None]


class LogprobsBody(msgspec.Struct):
    content: list[TokenLogprobBody]
    refusal: None = None


class UsageBody(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class MessageBody(msgspec.Struct):
    role: str
    content: str | None
    refusal: str | None = None
    """What the reader is told where the policy ended it, whatever came before as `content`."""


class ChoiceBody(msgspec.Struct):
    index: int
    message: MessageBody
    logprobs: LogprobsBody | None
    finish_reason: FinishReason


class ChatCompletionBody(msgspec.Struct, kw_only=True):
    id: ResponseId
    object: str = "chat.completion"
    created: int
    model: ModelName
    choices: list[ChoiceBody]
    usage: UsageBody
    service_tier: str = "default"
    system_fingerprint: str
    moderation: ChatModeration | UnsetType = UNSET
    """Where the request asked for it."""


class ModelBody(msgspec.Struct, kw_only=True):
    id: ModelName
    object: str = "model"
    created: int
    owned_by: str
    max_model_len: int
    """vLLM's word for the window: what a server in front of this one has to know."""


class ModelListBody(msgspec.Struct, kw_only=True):
    object: str = "list"
    data: list[ModelBody]


def usage_of(usage: Usage) -> UsageBody:
    """Tokens as clients count them."""
    return UsageBody(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
    )


def logprobs_of(entries: tuple[TokenLogprob, ...] | list[TokenLogprob]) -> LogprobsBody:
    """Only the sampled token's: the engine gives no alternatives."""
    return LogprobsBody(
        content=[
            TokenLogprobBody(
                token=entry.text, logprob=entry.logprob, bytes=list(entry.data), top_logprobs=[]
            )
            for entry in entries
        ]
    )


def message_of_texts(text: str, refusal: str | None) -> MessageBody:
    """An assistant's. One that is nothing but a refusal has no content."""
    content = None if refusal is not None and not text else text
    return MessageBody(role="assistant", content=content, refusal=refusal)
