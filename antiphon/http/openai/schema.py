"""The request body of `POST /v1/chat/completions` as OpenAI documents it, plus vLLM's sampling
extras. Types only: ranges and refusals are in `parse`."""

from typing import Annotated, Any, Literal

import msgspec

from antiphon.events import Detail


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of the request; a field it doesn't know is an error, never ignored."""


class ModerationConfig(Strict, frozen=True):
    mode: Literal["score", "block"]


class ModerationPolicy(Strict, frozen=True):
    """Without a mode there are scores alone."""

    input: ModerationConfig | None = None
    output: ModerationConfig | None = None


class ModerationOptions(Strict, frozen=True):
    """The answer has the scores of its input and output; with the mode `block`, what is flagged is
    blocked."""

    model: str
    policy: ModerationPolicy | None = None


class TextPart(Strict, frozen=True, tag_field="type", tag="text"):
    text: str


class RefusalPart(Strict, frozen=True, tag_field="type", tag="refusal"):
    refusal: str


class ImageUrl(Strict, frozen=True):
    """`data:image/…;base64,…`: nothing is fetched from elsewhere."""

    url: str
    detail: Detail | None = None


class ImagePart(Strict, frozen=True, tag_field="type", tag="image_url"):
    image_url: ImageUrl
    prompt_cache_breakpoint: Any = None


class AudioPart(msgspec.Struct, frozen=True, tag_field="type", tag="input_audio"):
    """Known, so that the refusal can say what it is."""


class GivenFile(Strict, frozen=True):
    """By its id, or in the request: base64, with or without `data:…;base64,` before it."""

    file_id: str | None = None
    filename: str | None = None
    file_data: str | None = None


class FilePart(Strict, frozen=True, tag_field="type", tag="file"):
    file: GivenFile
    prompt_cache_breakpoint: Any = None


Part = TextPart | RefusalPart | ImagePart | AudioPart | FilePart


class SystemMessage(Strict, frozen=True, tag_field="role", tag="system"):
    content: str | list[Part]
    name: str | None = None


class DeveloperMessage(Strict, frozen=True, tag_field="role", tag="developer"):
    content: str | list[Part]
    name: str | None = None


class UserMessage(Strict, frozen=True, tag_field="role", tag="user"):
    content: str | list[Part]
    name: str | None = None


class AssistantMessage(Strict, frozen=True, tag_field="role", tag="assistant"):
    content: str | list[Part] | None = None
    refusal: str | None = None
    name: str | None = None
    annotations: Any = None
    """Answers carry it, so clients that send an answer back send it too."""
    audio: Any = None
    tool_calls: list[dict[str, Any]] | None = None
    function_call: Any = None


class ToolMessage(Strict, frozen=True, tag_field="role", tag="tool"):
    """The result of a call."""

    content: str | list[Part]
    tool_call_id: str
    name: str | None = None


class FunctionMessage(msgspec.Struct, frozen=True, tag_field="role", tag="function"):
    """Known, so that the refusal can say what it is."""


ChatMessage = (
    SystemMessage
    | DeveloperMessage
    | UserMessage
    | AssistantMessage
    | ToolMessage
    | FunctionMessage
)


class StreamOptions(Strict, frozen=True):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None
    continuous_usage_stats: bool | None = None


class JsonSchema(Strict, frozen=True):
    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextFormat(Strict, frozen=True, tag_field="type", tag="text"):
    pass


class JsonObjectFormat(Strict, frozen=True, tag_field="type", tag="json_object"):
    pass


class JsonSchemaFormat(Strict, frozen=True, tag_field="type", tag="json_schema"):
    json_schema: JsonSchema


class FunctionBody(Strict, frozen=True):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatFunctionTool(Strict, frozen=True):
    """As chat completions have it."""

    type: Literal["function"]
    function: FunctionBody


class CalledFunction(Strict, frozen=True):
    name: str
    arguments: str


class ChatCall(Strict, frozen=True):
    """A call that the assistant has made, as it was sent; some clients send the index of its chunk
    back, too."""

    id: str
    type: Literal["function"]
    function: CalledFunction
    index: int | None = None


ChatTools = Annotated[
    list[dict[str, Any]],
    msgspec.Meta(extra_json_schema={"items": {"$ref": "#/components/schemas/ChatFunctionTool"}}),
]
"""Decoded one by one, so that a refusal can say which other kind of tool it was."""


class PromptCacheOptions(Strict, frozen=True):
    ttl: str | None = None
    mode: str | None = None
    prewarm: bool | None = None
    comparison_response_id: str | None = None


class ChatCompletionRequest(Strict, frozen=True):
    """Null means the same as absent everywhere, as in the API it copies."""

    model: str
    messages: list[ChatMessage]

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None

    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None

    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    parallel_tool_calls: bool | None = None

    tools: ChatTools | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None
    function_call: Any = None
    modalities: list[str] | None = None
    audio: Any = None
    prediction: Any = None
    web_search_options: Any = None
    moderation: ModerationOptions | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    logit_bias: dict[str, float] | None = None
    priority: int | None = None
    cache_salt: str | None = None
    truncation: Literal["auto", "disabled"] | None = None
    """Of the Responses API: with `auto` the oldest turns are left out where not all fit."""
