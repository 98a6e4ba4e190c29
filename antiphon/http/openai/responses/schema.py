"""The request bodies of `/v1/responses` as OpenAI documents them, plus Open Responses' penalties.
Types only: ranges, refusals and input items are elsewhere."""

from typing import Annotated, Any, Literal

import msgspec

from antiphon.events import Detail
from antiphon.http.openai.schema import (
    JsonObjectFormat,
    ModerationOptions,
    PromptCacheOptions,
    Strict,
    TextFormat,
)
from antiphon.records import Rating

Include = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]
"""All but the first and the last name things that no answer of this server has, so nothing of them
is left out."""

LOGPROBS: Include = "message.output_text.logprobs"
RESULTS: Include = "file_search_call.results"


class ContextManagement(Strict, frozen=True):
    """What is done to a conversation that has become long."""

    type: str
    compact_threshold: int | None = None


class ConversationReference(Strict, frozen=True):
    id: str


class StreamOptions(Strict, frozen=True):
    include_obfuscation: bool | None = None


class NamedSchemaFormat(Strict, frozen=True, tag_field="type", tag="json_schema"):
    name: str
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


OutputFormat = TextFormat | JsonObjectFormat | NamedSchemaFormat


class TextOptions(Strict, frozen=True):
    format: OutputFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningOptions(Strict, frozen=True):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    mode: str | None = None
    context: str | None = None


class TextPart(Strict, frozen=True, tag_field="type", tag="input_text"):
    text: str
    prompt_cache_breakpoint: Any = None


class Logprob(Strict, frozen=True):
    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: list[Any] | None = None


class OutputTextPart(Strict, frozen=True, tag_field="type", tag="output_text"):
    text: str
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[Logprob] | None = None


class RefusalPart(Strict, frozen=True, tag_field="type", tag="refusal"):
    refusal: str


class ImagePart(Strict, frozen=True, tag_field="type", tag="input_image"):
    """An image that was uploaded, by its id, or one that is in the request, as a `data:` URL. What
    items say of theirs may be sent back, and counts for nothing."""

    image_url: str | None = None
    file_id: str | None = None
    detail: Detail | None = None
    filename: str | None = None
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    prompt_cache_breakpoint: Any = None


class FilePart(Strict, frozen=True, tag_field="type", tag="input_file"):
    """A file that was uploaded, by its id, or one that is in the request: base64, with or without
    `data:…;base64,` before it."""

    file_id: str | None = None
    filename: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    detail: Literal["auto", "low", "high"] | None = None
    prompt_cache_breakpoint: Any = None


class AudioPart(msgspec.Struct, frozen=True, tag_field="type", tag="input_audio"):
    """Known, so that the refusal can say what it is."""


Part = TextPart | OutputTextPart | RefusalPart | ImagePart | FilePart | AudioPart


class PromptReference(Strict, frozen=True):
    """One of the operator's system prompts, by its name. Without a version it is one in force."""

    id: str
    version: str | None = None
    variables: dict[str, str | TextPart | ImagePart | FilePart] | None = None


class InputMessage(Strict, frozen=True):
    """A message in any of its documented forms: easy, input, or an answer sent back."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[Part]
    type: Literal["message"] | None = None
    id: str | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class ReferenceItem(Strict, frozen=True):
    """An item that is stored already."""

    id: str
    type: Literal["item_reference"] | None = None


NewItem = Annotated[
    dict[str, Any],
    msgspec.Meta(
        extra_json_schema={
            "anyOf": [
                {"$ref": "#/components/schemas/InputMessage"},
                {"$ref": "#/components/schemas/ReferenceItem"},
                {"$ref": "#/components/schemas/FunctionCallItem"},
                {"$ref": "#/components/schemas/FunctionOutputItem"},
                {"$ref": "#/components/schemas/FileSearchItem"},
            ]
        }
    ),
]
"""Decoded one by one, since a message need not say that it is one."""


class FunctionTool(Strict, frozen=True):
    """As responses have it."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    allowed_callers: list[str] | None = None
    defer_loading: bool | None = None
    output_schema: Any = None
    is_async: bool | None = msgspec.field(default=None, name="async")


Tools = Annotated[
    list[dict[str, Any]],
    msgspec.Meta(
        extra_json_schema={
            "items": {
                "anyOf": [
                    {"$ref": "#/components/schemas/FunctionTool"},
                    {"$ref": "#/components/schemas/FileSearchTool"},
                ]
            }
        }
    ),
]
"""Decoded one by one, so that a refusal can say which other kind of tool it was."""


class InputFields(Strict, frozen=True, kw_only=True):
    """What both an answer and a count of its input need."""

    input: str | list[NewItem] | None = None
    instructions: str | None = None
    conversation: str | ConversationReference | None = None
    previous_response_id: str | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    truncation: Literal["auto", "disabled"] | None = None
    tools: Tools | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None

    @property
    def conversation_id(self) -> str | None:
        """The spec's two spellings of one thing."""
        match self.conversation:
            case ConversationReference(id=id):
                return id
            case id:
                return id


class CreateResponse(InputFields, frozen=True, kw_only=True):
    """Null means the same as absent everywhere, as in the API it copies."""

    model: str | None = None
    """With none named, the first one served answers."""

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    background: bool | None = None
    store: bool | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    top_logprobs: int | None = None
    include: list[Include] | None = None
    metadata: dict[str, str] | None = None

    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] | None = None
    service_tier: (
        Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"] | None
    ) = None

    access_programs: Any = None
    background_options: Any = None
    context_management: list[ContextManagement] | None = None
    image: Any = None
    moderation: ModerationOptions | None = None
    prompt: PromptReference | None = None

    @property
    def is_stored(self) -> bool:
        return self.store is not False

    @property
    def wants_logprobs(self) -> bool:
        return LOGPROBS in (self.include or ())

    @property
    def wants_results(self) -> bool:
        return RESULTS in (self.include or ())


class CountInputTokens(InputFields, frozen=True, kw_only=True):
    """With no model named, the first one served counts."""

    model: str | None = None
    personality: str | None = None


class GiveFeedback(Strict, frozen=True):
    rating: Rating
    reason: str | None = None
