"""From a parsed request to the NewAnswer that the rest of the server runs: defaults resolved, and
whatever the model's engine can't do refused."""

import json
import secrets
from typing import Any

import msgspec

from antiphon.events import Capabilities, Message, Sampling, Turn
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.responses.parse import ParsedCreate
from antiphon.http.openai.responses.retries import Sending
from antiphon.http.openai.responses.schema import (
    CreateResponse,
    InputFields,
    NamedSchemaFormat,
    ReasoningOptions,
    TextOptions,
)
from antiphon.http.openai.responses.wire import Echo, ReasoningBody
from antiphon.http.openai.schema import JsonObjectFormat
from antiphon.http.openai.turns import (
    caller_of,
    refuse_beside_tools,
    refuse_calls_beyond,
    silent_fields,
)
from antiphon.http.openai.vector_stores.tool import FILE_SEARCH
from antiphon.ids import ModelName, RequestId, new_response_id
from antiphon.ports import NewAnswer, SamplingDefaults
from antiphon.records import Item, JsonObject, Principal, Response, ResponseKind, ResponseStatus
from antiphon.views import Truncation


def make_answer(
    parsed: ParsedCreate,
    sending: Sending,
    *,
    input: tuple[Item, ...],
    model: ModelName,
    request_id: RequestId,
    defaults: SamplingDefaults,
    capabilities: Capabilities | None,
    now_ms: int,
    principal: Principal,
    truncation: Truncation = "auto",
) -> NewAnswer:
    """Raises InvalidRequest for what the engine can't do; with `capabilities` None nobody knows
    yet, and the turn itself will be refused if need be. `truncation` is for turns of a conversation
    whose request says nothing of it."""
    body = parsed.body
    in_force = truncation_of(body, truncation)
    toolbox = parsed.given.toolbox
    if capabilities is not None:
        _refuse_beyond(capabilities, body)
        refuse_calls_beyond(capabilities, toolbox)
    sampling = _sampling(body, defaults)
    # With a stream somebody reads it as it comes: it only outlives its reader.
    nobody_waits = bool(body.background) and not body.stream
    refuse_beside_tools(toolbox, sampling, "text.format")
    response = Response(
        id=new_response_id("resp_"),
        user=principal.user,
        kind=ResponseKind.RESPONSE,
        model=model,
        status=ResponseStatus.QUEUED if nobody_waits else ResponseStatus.IN_PROGRESS,
        created_ms=now_ms,
        request=_echo(body, defaults, in_force),
        metadata=body.metadata or {},
        conversation=parsed.input.conversation,
        previous=parsed.input.previous,
        background=bool(body.background),
        streamed=bool(body.stream),
    )
    turn = Turn(
        request=request_id,
        model=response.model,
        messages=instructions_of(body),
        sampling=sampling,
        max_tokens=body.max_output_tokens,
        truncation=in_force,
        compact=compact_of(body),
        affinity=parsed.input.conversation or body.prompt_cache_key or "",
        response=response.id,
        stored=body.is_stored,
        tier=body.service_tier,
        background=nobody_waits,
        tools=toolbox,
        continues_tool=bool(input) and input[-1].type == "function_call_output",
        silent=silent_fields(
            temperature=body.temperature, top_p=body.top_p, top_k=None, repetition_penalty=None
        ),
        **caller_of(principal),
    )
    return NewAnswer(
        response=response,
        input=input,
        turn=turn,
        search=parsed.given.search,
        stored=body.is_stored,
        claim=sending.claim,
        retry_fingerprint=sending.retry_fingerprint,
        is_retry=sending.is_retry,
    )


def truncation_of(body: InputFields, default: Truncation) -> Truncation:
    """What is in force: a request that brings all its messages is taken at its word."""
    has_history = body.conversation_id is not None or body.previous_response_id is not None
    return body.truncation or (default if has_history else "disabled")


def compact_of(body: CreateResponse) -> int | None:
    """The lowest of what was asked for."""
    entries = body.context_management or ()
    given = [each.compact_threshold for each in entries if each.compact_threshold is not None]
    return min(given, default=None)


def instructions_of(body: InputFields) -> tuple[Message, ...]:
    """What comes before everything else: never part of a conversation's items."""
    if not body.instructions:
        return ()
    return (Message(role="system", content=body.instructions),)


def _refuse_beyond(capabilities: Capabilities, body: CreateResponse) -> None:
    if body.wants_logprobs and not capabilities.logprobs:
        raise unsupported_value("include", "message.output_text.logprobs", "all others")
    if _json_schema(body.text) is not None and not capabilities.json_schema:
        raise unsupported_value("text.format", "json", "{'type': 'text'}")


def _sampling(body: CreateResponse, defaults: SamplingDefaults) -> Sampling:
    top_p = defaults.top_p if body.top_p is None else body.top_p
    top_k = defaults.top_k
    if top_p == 0:  # legal in the API, refused by engines: only the likeliest token remains
        top_p, top_k = 1.0, 1
    return Sampling(
        temperature=defaults.temperature if body.temperature is None else body.temperature,
        top_p=top_p,
        top_k=top_k,
        repetition_penalty=defaults.repetition_penalty,
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        seed=secrets.randbits(63),
        logprobs=body.wants_logprobs,
        json_schema=_json_schema(body.text),
    )


def _json_schema(text: TextOptions | None) -> str | None:
    match text and text.format:
        case JsonObjectFormat():
            return '{"type":"object"}'
        case NamedSchemaFormat(schema=schema):
            return json.dumps(schema, ensure_ascii=False)
        case _:
            return None


def _echo(body: CreateResponse, defaults: SamplingDefaults, truncation: Truncation) -> JsonObject:
    """What the response shows of its request, as plain JSON."""
    reasoning = body.reasoning or ReasoningOptions()
    echo = Echo(
        instructions=body.instructions,
        temperature=defaults.temperature if body.temperature is None else body.temperature,
        top_p=defaults.top_p if body.top_p is None else body.top_p,
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        max_output_tokens=body.max_output_tokens,
        max_tool_calls=body.max_tool_calls,
        text={"format": _format(body.text), "verbosity": "medium"},
        truncation=truncation,
        tool_choice=body.tool_choice or "auto",
        tools=[_tool(tool) for tool in body.tools or ()],
        parallel_tool_calls=body.parallel_tool_calls is not False,
        reasoning=ReasoningBody(effort=reasoning.effort, summary=reasoning.summary),
        store=body.is_stored,
        safety_identifier=body.safety_identifier,
        prompt_cache_key=body.prompt_cache_key,
        user=msgspec.UNSET if body.user is None else body.user,
    )
    plain: JsonObject = msgspec.to_builtins(echo)
    return plain


def _tool(given: dict[str, Any]) -> dict[str, Any]:
    """As OpenAI shows it. That calls fit their schemas is seen to in any case."""
    if given.get("type") == FILE_SEARCH:
        return {name: value for name, value in given.items() if value is not None}
    strict = given.get("strict")
    return {
        "type": "function",
        "name": given["name"],
        "description": given.get("description"),
        "parameters": given.get("parameters"),
        "strict": True if strict is None else strict,
    }


def _format(text: TextOptions | None) -> dict[str, Any]:
    match text and text.format:
        case JsonObjectFormat():
            return {"type": "json_object"}
        case NamedSchemaFormat() as named:
            shown: dict[str, Any] = {
                "type": "json_schema",
                "name": named.name,
                "schema": named.schema,
                "strict": bool(named.strict),
            }
            described = {} if named.description is None else {"description": named.description}
            return shown | described
        case _:
            return {"type": "text"}
