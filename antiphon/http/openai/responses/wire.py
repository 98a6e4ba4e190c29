"""The response object and its items as they go on the wire.

Every key that the specifications require is there, null where it has no value and where null is
allowed. Usage never is null: strict readers of OpenAI's schema refuse that, and Open Responses'
refuse its absence, so what hasn't been counted yet is zero.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.lists import ListBody
from antiphon.http.openai.moderations.wire import ResponseModeration, response_moderation
from antiphon.judged import judged_of
from antiphon.messages import SEARCH
from antiphon.records import (
    Feedback,
    Item,
    JsonObject,
    Rating,
    Response,
    ResponseStatus,
    TokenUsage,
)
from antiphon.views import Manifest


class InputDetails(msgspec.Struct):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(msgspec.Struct):
    reasoning_tokens: int


class UsageBody(msgspec.Struct):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class ErrorBody(msgspec.Struct):
    code: str
    message: str


class IncompleteBody(msgspec.Struct):
    reason: str


class ConversationBody(msgspec.Struct):
    id: str


class ReasoningBody(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None


class PromptBody(msgspec.Struct, kw_only=True):
    id: str
    version: str
    variables: dict[str, Any] | UnsetType | None = UNSET
    """As they were given."""


class Echo(msgspec.Struct, kw_only=True):
    """The parameters that a response shows again: what `records.Response.request` holds."""

    instructions: str | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    text: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"format": {"type": "text"}, "verbosity": "medium"}
    )
    truncation: Literal["auto", "disabled"] = "disabled"
    tool_choice: str | dict[str, Any] = "auto"
    tools: list[dict[str, Any]] = msgspec.field(default_factory=list)
    parallel_tool_calls: bool = True
    top_logprobs: int = 0
    reasoning: ReasoningBody = msgspec.field(default_factory=ReasoningBody)
    service_tier: str = "default"
    store: bool = True
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    user: str | UnsetType = UNSET
    prompt: PromptBody | UnsetType = UNSET
    """The system prompt that it began with, and which version that was."""


class FeedbackBody(msgspec.Struct, kw_only=True):
    object: Literal["response.feedback"] = "response.feedback"
    response_id: str
    rating: Rating
    reason: str | None
    created_at: int


class ResponseBody(Echo, kw_only=True):
    """A response."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: ResponseStatus
    completed_at: int | None
    background: bool
    model: str
    error: ErrorBody | None
    incomplete_details: IncompleteBody | None
    conversation: ConversationBody | None
    previous_response_id: str | None
    metadata: dict[str, str]
    output: list[dict[str, Any]]
    usage: UsageBody
    moderation: ResponseModeration | UnsetType = UNSET
    """Where the request asked for it, or the policy ended the response."""
    context: Manifest | UnsetType = UNSET
    """What the model was shown, and what not; from when that is known."""
    feedback: FeedbackBody | UnsetType = UNSET
    """What a person thought of it, where somebody has said so."""


class DeletedBody(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True
    receipt: ReceiptObject


class InputTokensBody(msgspec.Struct, kw_only=True):
    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


_OURS = frozenset({"judged", "prompt_key"})
"""What is kept beside the request and isn't shown as it is."""

ResponseList = ListBody[ResponseBody]
ItemList = ListBody[dict[str, Any]]


def response_body(
    response: Response, *, with_logprobs: bool, with_results: bool = False
) -> ResponseBody:
    """The response as it is; what its searches found only with `with_results`."""
    judged = response.request.get("judged")
    is_done = response.status is ResponseStatus.COMPLETED
    ended_ms = response.completed_ms if is_done else None
    reason = response.incomplete_reason
    body = msgspec.convert(
        {name: value for name, value in response.request.items() if name not in _OURS}
        | {
            "id": response.id,
            "created_at": response.created_ms // 1000,
            "status": response.status,
            "completed_at": ended_ms and ended_ms // 1000,
            "background": response.background,
            "model": response.model,
            "error": response.error and ErrorBody(response.error.code, response.error.message),
            "incomplete_details": reason and IncompleteBody(reason),
            "conversation": response.conversation and ConversationBody(response.conversation),
            "previous_response_id": response.previous,
            "metadata": response.metadata,
            "output": [
                item_body(item, with_logprobs=with_logprobs, with_results=with_results)
                for item in response.output
            ],
            "usage": usage_body(response.usage or TokenUsage()),
        },
        ResponseBody,
    )
    if judged is not None:
        body.moderation = response_moderation(judged_of(judged))
    if response.feedback is not None:
        body.feedback = feedback_body(response.feedback)
    return body


def feedback_body(feedback: Feedback) -> FeedbackBody:
    return FeedbackBody(
        response_id=feedback.response,
        rating=feedback.rating,
        reason=feedback.reason,
        created_at=feedback.created_ms // 1000,
    )


def usage_body(usage: TokenUsage) -> UsageBody:
    """Tokens as clients count them."""
    return UsageBody(
        input_tokens=usage.input,
        input_tokens_details=InputDetails(cached_tokens=usage.cached),
        output_tokens=usage.output,
        output_tokens_details=OutputDetails(reasoning_tokens=usage.reasoning),
        total_tokens=usage.total,
    )


def item_body(item: Item, *, with_logprobs: bool = True, with_results: bool = True) -> JsonObject:
    """An item with its id and status; without log-probabilities, and without what a search found,
    where nobody asked for them."""
    body: JsonObject = {"id": item.id, "type": item.type, "status": item.status or "completed"}
    body |= item.body
    if not with_results and item.type == SEARCH:
        body["results"] = None
    if not with_logprobs and isinstance(body.get("content"), list):
        body["content"] = [
            part | {"logprobs": []} if part.get("logprobs") else part for part in body["content"]
        ]
    return body
