"""The objects of an answer as they go on the wire; every key that the specification requires is
there, null where it has no value."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.events import TokenLogprob
from antiphon.http.openai.moderations.wire import ChatModeration
from antiphon.ids import ModelName, ResponseId
from antiphon.tools import ToolCall
from antiphon.turn_events import FinishReason, Usage
from antiphon.views import Manifest


class TokenLogprobBody(msgspec.Struct):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[None]


class LogprobsBody(msgspec.Struct):
    content: list[TokenLogprobBody]
    refusal: None = None


class PromptDetails(msgspec.Struct):
    cached_tokens: int


class UsageBody(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class CallBody(msgspec.Struct):
    name: str
    arguments: str


class ToolCallBody(msgspec.Struct, kw_only=True):
    id: str
    type: Literal["function"] = "function"
    function: CallBody


class MessageBody(msgspec.Struct):
    role: str
    content: str | None
    refusal: str | None = None
    """What the reader is told where the policy ended it, whatever came before as `content`."""
    tool_calls: list[ToolCallBody] | UnsetType = UNSET


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
    context: Manifest | UnsetType = UNSET
    """What the model was shown, where that isn't all of the request."""


class ModelBody(msgspec.Struct, kw_only=True):
    id: ModelName
    object: str = "model"
    created: int
    owned_by: str
    max_model_len: int
    """vLLM's word for the window: what a server in front of this one has to know."""
    vision: bool = False
    """Whether it can be shown images."""


class ModelListBody(msgspec.Struct, kw_only=True):
    object: str = "list"
    data: list[ModelBody]


def usage_of(usage: Usage) -> UsageBody:
    """Tokens as clients count them."""
    return UsageBody(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details=PromptDetails(cached_tokens=usage.cached_tokens),
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


def message_of_texts(text: str, refusal: str | None, calls: Sequence[ToolCall] = ()) -> MessageBody:
    """An assistant's. One that is nothing but a refusal or calls has no content."""
    content = None if (refusal is not None or calls) and not text else text
    return MessageBody(
        role="assistant", content=content, refusal=refusal, tool_calls=calls_body(calls)
    )


def calls_body(calls: Sequence[ToolCall]) -> list[ToolCallBody] | UnsetType:
    """Not there at all where there are none."""
    if not calls:
        return UNSET
    return [
        ToolCallBody(id=call.id, function=CallBody(name=call.name, arguments=call.arguments))
        for call in calls
    ]
