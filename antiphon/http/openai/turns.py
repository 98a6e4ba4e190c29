"""From a parsed request to the Turn that the sessions run: defaults resolved, and whatever the
model's engine can't do refused."""

import hashlib
import json
import secrets
from typing import Any, Protocol, TypeVar

from antiphon.errors import InvalidRequest
from antiphon.events import Capabilities, Sampling, Turn
from antiphon.http.openai.parse import ParsedRequest
from antiphon.http.openai.refusals import unsupported_value
from antiphon.http.openai.schema import (
    ChatCompletionRequest,
    JsonObjectFormat,
    JsonSchemaFormat,
)
from antiphon.http.openai.schemas import check_named_schema
from antiphon.http.openai.tools import check_tools
from antiphon.ids import ModelName, RequestId
from antiphon.ports import SamplingDefaults
from antiphon.records import Principal
from antiphon.tools import Toolbox

N = TypeVar("N", int, float)

_SEED_MASK = 2**63 - 1
"""Engines take unsigned seeds; one bit is left so that seed + choice can't overflow 64."""


def make_turn(
    parsed: ParsedRequest,
    request_id: RequestId,
    defaults: SamplingDefaults,
    capabilities: Capabilities | None,
    principal: Principal | None = None,
) -> Turn:
    """Raises InvalidRequest for what the engine can't do; with `capabilities` None nobody knows
    yet, and the turn itself will be refused if need be."""
    body = parsed.body
    sampling = _sampling(body, defaults)
    salt = None if principal is None else principal.salt
    toolbox = parsed.given.toolbox
    if body.response_format is not None:
        refuse_beside_tools(toolbox, sampling, "response_format")
    if capabilities is not None:
        _refuse_beyond(capabilities, body)
        refuse_calls_beyond(capabilities, toolbox)
        if salt is not None:
            _refuse_beside_salt(capabilities, sampling)
    return Turn(
        request=request_id,
        model=ModelName(body.model),
        messages=parsed.messages,
        sampling=sampling,
        choices=1 if body.n is None else body.n,
        stop=_stops(body.stop),
        max_tokens=(
            body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
        ),
        truncation=body.truncation or "disabled",
        tier=body.service_tier,
        continues_tool=parsed.messages[-1].role == "tool",
        tools=toolbox,
        affinity=body.prompt_cache_key or "",
        seeded=body.seed is not None,
        silent=silent_fields(
            temperature=body.temperature,
            top_p=body.top_p,
            top_k=body.top_k,
            repetition_penalty=body.repetition_penalty,
        ),
        **caller_of(principal),
    )


def caller_of(principal: Principal | None) -> dict[str, Any]:
    """The fields of a turn that say on whose behalf it runs. The local caller is nobody's user, and
    has no plan."""
    if principal is None:
        return {}
    return {
        "tenant": principal.tenant,
        "salt": principal.salt,
        "user": None if principal.key is None else principal.user,
        "plan": principal.plan,
    }


def silent_fields(
    *,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
    repetition_penalty: float | None,
) -> frozenset[str]:
    """Of these, what the client said nothing about. A `top_p` of 0 has settled `top_k`, too."""
    given = {
        "temperature": temperature,
        "top_p": top_p,
        "top_k": 1 if top_p == 0 else top_k,
        "repetition_penalty": repetition_penalty,
    }
    return frozenset(name for name, value in given.items() if value is None)


def needs_schema_check(parsed: ParsedRequest) -> bool:
    """Whether `check_schema` has work, which is enough of it to leave the event loop for."""
    return isinstance(parsed.body.response_format, JsonSchemaFormat) or bool(parsed.given.tools)


def check_schema(parsed: ParsedRequest) -> None:
    """Raises InvalidRequest unless the JSON schemas are some, by their own metaschema."""
    check_tools(parsed.given)
    if isinstance(parsed.body.response_format, JsonSchemaFormat):
        named = parsed.body.response_format.json_schema
        check_named_schema(
            named.name, named.schema, place="response_format.json_schema", what="response_format"
        )


class SaysWhoItIs(Protocol):
    """A request body with the fields by which a client names itself or its users."""

    @property
    def user(self) -> str | None: ...

    @property
    def safety_identifier(self) -> str | None: ...

    @property
    def prompt_cache_key(self) -> str | None: ...


def client_facts(body: SaysWhoItIs) -> dict[str, Any]:
    """What the client said about itself, for the log line: hashed, since it may name a person."""
    given = {
        "user": body.user,
        "safety_identifier": body.safety_identifier,
        "prompt_cache_key": body.prompt_cache_key,
    }
    return {
        name: hashlib.sha256(value.encode("utf-8")).hexdigest()[:16]
        for name, value in given.items()
        if value
    }


def fingerprint(model: ModelName, capabilities: Capabilities | None) -> str:
    """Changes when answers may change though the request and the seed stay the same."""
    engine = (capabilities.engine, capabilities.engine_version) if capabilities else ()
    return f"fp_{hashlib.sha256(repr((model, *engine)).encode()).hexdigest()[:10]}"


def refuse_calls_beyond(capabilities: Capabilities, toolbox: Toolbox | None) -> None:
    """Raises InvalidRequest where a call has to be made, and the engine can't be held to it."""
    if toolbox is not None and toolbox.required and not capabilities.json_schema:
        raise unsupported_value("tool_choice", "the given value", "'none' and 'auto'")


def refuse_beside_tools(toolbox: Toolbox | None, sampling: Sampling, param: str) -> None:
    """Raises InvalidRequest for an answer that is JSON of one form or a call as the model likes."""
    if toolbox is not None and not toolbox.required and sampling.json_schema is not None:
        raise InvalidRequest(
            f"With this server '{param}' can't be JSON while the model may choose to call a "
            "function; set 'tool_choice' to 'none' or 'required'.",
            param,
            "unsupported_value",
        )


def _refuse_beyond(capabilities: Capabilities, body: ChatCompletionRequest) -> None:
    if body.logprobs and not capabilities.logprobs:
        raise unsupported_value("logprobs", True, "false")
    if body.seed is not None and not capabilities.seed:
        raise unsupported_value("seed", body.seed, "none")
    if body.min_tokens and not capabilities.min_tokens:
        raise unsupported_value("min_tokens", body.min_tokens, "0")
    if not capabilities.extras:
        _refuse_extras(body)
    is_json = isinstance(body.response_format, JsonObjectFormat | JsonSchemaFormat)
    if is_json and not capabilities.json_schema:
        raise unsupported_value("response_format", "json", "{'type': 'text'}")


def _refuse_beside_salt(capabilities: Capabilities, sampling: Sampling) -> None:
    if sampling.repetition_penalty != 1 and not capabilities.salted_repetition_penalty:
        raise InvalidRequest(
            "This server keeps the prompts of its tenants apart in a way that leaves no "
            "'repetition_penalty'; use 'frequency_penalty' or 'presence_penalty'.",
            "repetition_penalty",
            "unsupported_value",
        )


def _refuse_extras(body: ChatCompletionRequest) -> None:
    neutral = Sampling()
    asked: dict[str, Any] = {
        "top_k": max(0, body.top_k or 0),
        "min_p": body.min_p,
        "repetition_penalty": body.repetition_penalty,
        "ignore_eos": body.ignore_eos,
    }
    for name, value in asked.items():
        if value and value != getattr(neutral, name):
            raise unsupported_value(name, value, str(getattr(neutral, name)).lower())


def _sampling(body: ChatCompletionRequest, defaults: SamplingDefaults) -> Sampling:
    top_p = _first(body.top_p, defaults.top_p)
    top_k = max(0, _first(body.top_k, defaults.top_k))  # vLLM's clients send -1 for "off"
    if top_p == 0:  # legal in the API, refused by engines: only the likeliest token remains
        top_p, top_k = 1.0, 1
    seed = secrets.randbits(63) if body.seed is None else body.seed & _SEED_MASK
    return Sampling(
        temperature=_first(body.temperature, defaults.temperature),
        top_p=top_p,
        top_k=top_k,
        min_p=body.min_p or 0.0,
        repetition_penalty=_first(body.repetition_penalty, defaults.repetition_penalty),
        presence_penalty=body.presence_penalty or 0.0,
        frequency_penalty=body.frequency_penalty or 0.0,
        seed=seed,
        min_tokens=body.min_tokens or 0,
        ignore_eos=bool(body.ignore_eos),
        logprobs=bool(body.logprobs),
        json_schema=_json_schema(body),
    )


def _first(value: N | None, default: N) -> N:
    return default if value is None else value


def _json_schema(body: ChatCompletionRequest) -> str | None:
    match body.response_format:
        case JsonObjectFormat():
            return '{"type":"object"}'
        case JsonSchemaFormat(json_schema=named):
            return json.dumps(named.schema, ensure_ascii=False)
        case _:
            return None


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)
