"""Kept chat completions as they go on the wire: the completion once more, with what it was asked
for, and the messages of its request."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.events import Message
from antiphon.http.openai.conversations.wire import ReceiptObject
from antiphon.http.openai.lists import ListBody
from antiphon.http.openai.moderations.wire import ChatModeration, chat_moderation
from antiphon.http.openai.wire import (
    ChoiceBody,
    LogprobsBody,
    PromptDetails,
    TokenLogprobBody,
    ToolCallBody,
    UsageBody,
    calls_body,
    message_of_texts,
)
from antiphon.judged import judged_of
from antiphon.messages import CALLS, message_of, text_and_images
from antiphon.records import Item, Response, ResponseStatus, TokenUsage
from antiphon.tools import ToolCall
from antiphon.turn_events import FinishReason


class KeptCompletion(msgspec.Struct, kw_only=True):
    """A completion that is kept. `status` is ours, and there only when the completion isn't whole:
    it still runs, was cancelled, or failed."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChoiceBody]
    usage: UsageBody
    service_tier: str = "default"
    system_fingerprint: str
    metadata: dict[str, str]
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    seed: int
    status: ResponseStatus | UnsetType = UNSET
    moderation: ChatModeration | UnsetType = UNSET


class KeptMessage(msgspec.Struct, kw_only=True):
    id: str
    role: str
    content: str | None
    content_parts: list[dict[str, Any]] | UnsetType = UNSET
    """Where it has images; their URLs are this server's, of their files' contents."""
    refusal: None = None
    name: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    tool_calls: list[ToolCallBody] | UnsetType = UNSET


class DeletedCompletion(msgspec.Struct, kw_only=True):
    id: str
    object: Literal["chat.completion.deleted"] = "chat.completion.deleted"
    deleted: Literal[True] = True
    receipt: ReceiptObject


CompletionList = ListBody[KeptCompletion]
MessageList = ListBody[KeptMessage]


def completion_body(response: Response) -> KeptCompletion:
    """The completion as it is."""
    asked = response.request
    counted = response.usage or TokenUsage()
    is_whole = response.status is ResponseStatus.COMPLETED
    return KeptCompletion(
        id=response.id,
        created=response.created_ms // 1000,
        model=response.model,
        choices=[
            _choice(index, item, with_logprobs=asked["logprobs"])
            for index, item in enumerate(response.output)
        ],
        usage=UsageBody(
            counted.input, counted.output, counted.total, PromptDetails(counted.cached)
        ),
        service_tier=asked.get("service_tier", "default"),
        system_fingerprint=asked["system_fingerprint"],
        metadata=response.metadata,
        temperature=asked["temperature"],
        top_p=asked["top_p"],
        presence_penalty=asked["presence_penalty"],
        frequency_penalty=asked["frequency_penalty"],
        seed=asked["seed"],
        status=UNSET if is_whole else response.status,
        moderation=chat_moderation(judged_of(asked["judged"])) if "judged" in asked else UNSET,
    )


def message_body(item: Item) -> KeptMessage:
    """A message of the request."""
    message = message_of(item)
    assert message is not None, "a chat's input is messages"
    calls = _calls(item)
    return KeptMessage(
        id=item.id,
        role=message.role,
        content=None if calls and not message.content else message.content,
        content_parts=_parts(message) if message.images else UNSET,
        name=UNSET if message.name is None else message.name,
        tool_call_id=UNSET if message.call_id is None else message.call_id,
        tool_calls=calls_body(calls),
    )


def _parts(message: Message) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": each}
        if isinstance(each, str)
        else {
            "type": "image_url",
            "image_url": {"url": f"/v1/files/{each.file}/content", "detail": each.detail},
        }
        for each in text_and_images(message)
    ]


def _choice(index: int, item: Item, *, with_logprobs: bool) -> ChoiceBody:
    parts: list[dict[str, Any]] = item.body["content"]
    texts = [part for part in parts if part["type"] == "output_text"]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    logprobs = [
        msgspec.convert(entry, TokenLogprobBody) for part in texts for entry in part["logprobs"]
    ]
    # A choice that was cut has no reason that the API knows; "stop" would call it whole.
    finish = item.body.get("finish_reason") or FinishReason.LENGTH
    return ChoiceBody(
        index=index,
        message=message_of_texts(
            "".join(part["text"] for part in texts),
            "".join(refusals) if refusals else None,
            _calls(item),
        ),
        logprobs=LogprobsBody(content=logprobs) if with_logprobs else None,
        finish_reason=FinishReason(finish),
    )


def _calls(item: Item) -> list[ToolCall]:
    return [
        ToolCall(id=call["call_id"], name=call["name"], arguments=call["arguments"])
        for call in item.body.get(CALLS, ())
    ]
