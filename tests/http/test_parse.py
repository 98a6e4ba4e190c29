"""Every field of a chat completion request: taken, or refused by name."""

import contextlib
import dataclasses
import json
import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.http.openai.parse import parse_chat
from antiphon.http.openai.schema import ChatCompletionRequest
from antiphon.http.openai.turns import check_schema, client_facts, make_turn
from antiphon.ids import KeyId, RequestId, TenantId, UserId
from antiphon.ports import SamplingDefaults
from antiphon.records import Principal
from antiphon.testing.chat import scripted_capabilities

BASE = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}
ELSEWHERE = {"type": "image_url", "image_url": {"url": "https://example.com/x.png"}}
TOOL = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def parse(**fields):
    return parse_chat(json.dumps(BASE | fields).encode(), max_choices=16)


def refusal(body) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse_chat(body, max_choices=16)
    return caught.value


def messages(*given):
    return {"messages": list(given)}


def user(content):
    return messages({"role": "user", "content": content})


ACCEPTED = [
    {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
    {"stream": True, "stream_options": {"continuous_usage_stats": False}},
    {"stream": None, "stream_options": None},
    {"n": 16},
    {"moderation": {"model": "m"}},
    {"stop": "x"},
    {"stop": ["a", "b", "c", "d"]},
    {"stop": []},
    {"max_tokens": 5, "max_completion_tokens": 5},
    {"seed": -(2**63)},
    {"seed": 2**63 - 1},
    {"temperature": 2, "top_p": 0, "presence_penalty": -2, "frequency_penalty": 2.0},
    {"logprobs": True, "top_logprobs": 0},
    {"response_format": {"type": "text"}},
    {"response_format": {"type": "json_object"}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
    {"top_k": -1, "min_p": 1, "repetition_penalty": 1.1, "min_tokens": 3, "ignore_eos": True},
    {"user": "u", "safety_identifier": "s" * 64, "prompt_cache_key": "k"},
    {"prompt_cache_options": {"ttl": "30m", "mode": "explicit"}, "prompt_cache_retention": "24h"},
    *({"service_tier": tier} for tier in ("auto", "default", "flex", "scale", "priority", "fast")),
    {"parallel_tool_calls": True},
    {"tools": [], "tool_choice": "none", "functions": [], "function_call": "none"},
    {"tools": [TOOL], "tool_choice": "auto"},
    {"tools": [TOOL], "tool_choice": TOOL, "parallel_tool_calls": False},
    messages(
        {"role": "assistant", "content": None, "tool_calls": [CALL | {"index": 0}]},
        {"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "c"},
    ),
    {"modalities": ["text"], "reasoning_effort": "none", "verbosity": "medium", "store": False},
    {"metadata": {}, "logit_bias": {}},
    {"truncation": "auto"},
    user([{"type": "text", "text": "x"}, IMAGE]),
    {name: None for name in ChatCompletionRequest.__struct_fields__ if name not in BASE},
    messages({"role": "assistant", "content": None, "refusal": "no"}),
    messages({"role": "assistant", "content": "a", "annotations": [], "tool_calls": []}),
    messages({"role": "developer", "content": [{"type": "text", "text": "x"}], "name": "d"}),
]

REFUSED = [
    # what this server can't do
    ({"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "tools[0].type", None),
    ({"functions": [{"name": "f"}]}, "functions", "unsupported_parameter"),
    ({"audio": {"voice": "v", "format": "wav"}}, "audio", "unsupported_parameter"),
    ({"prediction": {"type": "content", "content": "x"}}, "prediction", "unsupported_parameter"),
    ({"web_search_options": {}}, "web_search_options", "unsupported_parameter"),
    ({"metadata": {"a": "b"}}, "metadata", "unsupported_parameter"),
    ({"logit_bias": {"50256": -100}}, "logit_bias", "unsupported_parameter"),
    ({"priority": 0}, "priority", "unsupported_parameter"),
    ({"cache_salt": "s"}, "cache_salt", "unsupported_parameter"),
    ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
    ({"tool_choice": TOOL}, "tool_choice", "invalid_value"),
    ({"function_call": "auto"}, "function_call", "unsupported_value"),
    ({"modalities": ["text", "audio"]}, "modalities", "unsupported_value"),
    ({"store": True}, "store", "unsupported_value"),
    ({"reasoning_effort": "high"}, "reasoning_effort", "unsupported_value"),
    ({"verbosity": "low"}, "verbosity", "unsupported_value"),
    ({"logprobs": True, "top_logprobs": 2}, "top_logprobs", "unsupported_value"),
    ({"top_logprobs": 0}, "top_logprobs", None),
    ({"stream_options": {"include_usage": True}}, "stream_options", None),
    (
        {"stream": True, "stream_options": {"continuous_usage_stats": True}},
        *("stream_options.continuous_usage_stats", "unsupported_value"),
    ),
    (
        user([{"type": "text", "text": "x"}, ELSEWHERE]),
        *("messages[0].content[1].image_url.url", "invalid_image_url"),
    ),
    (messages({"role": "system", "content": [IMAGE]}), "messages[0].content[0].type", None),
    (user([{"type": "input_audio", "input_audio": {}}]), "messages[0].content[0].type", None),
    (
        {"messages": [{"role": "system", "content": [{"type": "file", "file": {}}]}]},
        "messages[0].content[0].type",
        None,
    ),
    (user([{"type": "refusal", "refusal": "x"}]), "messages[0].content[0].type", None),
    (messages({"role": "tool", "content": "x", "tool_call_id": "c"}), "messages[0].role", None),
    (messages({"role": "function", "content": "x", "name": "f"}), "messages[0].role", None),
    (
        messages({"role": "assistant", "content": "x", "function_call": CALL["function"]}),
        *("messages[0].function_call", "unsupported_parameter"),
    ),
    # what is out of range
    (messages(), "messages", "empty_array"),
    (user([]), "messages[0].content", "empty_array"),
    ({"model": ""}, "model", None),
    ({"n": 0}, "n", "integer_below_min_value"),
    ({"n": 17}, "n", "integer_above_max_value"),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    ({"max_completion_tokens": 0}, "max_completion_tokens", "integer_below_min_value"),
    ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens", "invalid_value"),
    ({"max_tokens": 1, "min_tokens": 2}, "min_tokens", "invalid_value"),
    ({"seed": 2**63}, "seed", "integer_above_max_value"),
    ({"seed": 10**40}, "seed", "integer_above_max_value"),
    ({"temperature": 2.1}, "temperature", "decimal_above_max_value"),
    ({"temperature": -0.1}, "temperature", "decimal_below_min_value"),
    ({"top_p": 1.1}, "top_p", "decimal_above_max_value"),
    ({"min_p": -1}, "min_p", "decimal_below_min_value"),
    ({"top_k": -2}, "top_k", "integer_below_min_value"),
    ({"presence_penalty": 3}, "presence_penalty", "decimal_above_max_value"),
    ({"frequency_penalty": -3}, "frequency_penalty", "decimal_below_min_value"),
    ({"repetition_penalty": 0}, "repetition_penalty", "decimal_below_min_value"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", None),
    ({"stop": ["a"] * 5}, "stop", "array_above_max_length"),
    ({"stop": ""}, "stop", "empty_string"),
    ({"stop": ["a", ""]}, "stop[1]", "empty_string"),
    ({"safety_identifier": "s" * 65}, "safety_identifier", "string_above_max_length"),
    ({"user": "u" * 513}, "user", "string_above_max_length"),
    ({"prompt_cache_key": "k" * 513}, "prompt_cache_key", "string_above_max_length"),
    # what has the wrong type or name
    ({"temperature": "hot"}, "temperature", "invalid_type"),
    ({"temperature": True}, "temperature", "invalid_type"),
    ({"n": 1.5}, "n", "invalid_type"),
    ({"stream": "yes"}, "stream", "invalid_type"),
    ({"stop": [1]}, "stop[0]", "invalid_type"),
    ({"messages": "hi"}, "messages", "invalid_type"),
    ({"messages": ["hi"]}, "messages[0]", "invalid_type"),
    ({"model": None}, "model", "invalid_type"),
    ({"service_tier": "gold"}, "service_tier", "invalid_value"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", None),
    ({"colour": "red"}, "colour", None),
    ({"stream": True, "stream_options": {"x": 1}}, "stream_options.x", None),
    (messages({"role": "wizard", "content": "x"}), "messages[0].role", "invalid_value"),
    (messages({"content": "x"}), "messages[0].role", "missing_required_parameter"),
    (messages({"role": "user"}), "messages[0].content", "missing_required_parameter"),
    (messages({"role": "assistant"}), "messages[0].content", "missing_required_parameter"),
    (messages({"role": "user", "content": "x", "y": 1}), "messages[0].y", None),
    (user(7), "messages[0].content", "invalid_type"),
    (user(None), "messages[0].content", "invalid_type"),
    (user([{"type": "text"}]), "messages[0].content[0].text", "missing_required_parameter"),
    (user([{"type": "video"}]), "messages[0].content[0].type", "invalid_value"),
    # what databases and tokenizers choke on
    (user("a\x00b"), "messages[0].content", "invalid_string"),
    (user([{"type": "text", "text": "\ud800"}]), "messages[0].content[0].text", "invalid_string"),
    ({"stop": ["ok", "\udfff"]}, "stop[1]", "invalid_string"),
    ({"user": "\x00"}, "user", "invalid_string"),
]


@pytest.mark.parametrize("fields", ACCEPTED, ids=json.dumps)
def test_what_can_be_honoured_is_taken(fields):
    parse(**fields)


@pytest.mark.parametrize(("fields", "param", "code"), REFUSED, ids=json.dumps)
def test_what_cannot_be_honoured_is_refused_by_name(fields, param, code):
    error = refusal(json.dumps(BASE | fields).encode())

    assert error.param == param
    if code is not None:
        assert error.code == code


def test_every_field_is_in_one_of_the_tables():
    tested = {name for fields in ACCEPTED[:-4] for name in fields if fields[name] is not None}
    tested |= {name for fields, _, _ in REFUSED for name in fields}

    assert set(ChatCompletionRequest.__struct_fields__) - tested == set()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xef\xbb\xbf{}",
        b'{"model": "m", "messages": []} trailing',
        b'{"model": "m", "temperature": NaN, "messages": []}',
        b'{"model": "m", "temperature": 1e999, "messages": []}',
        b'{"model": "\xff", "messages": []}',
        b'{"model": "a\x00", "messages": []}',
        b'{"model": "m", "messages": [], "response_format": ' + b"[" * 100_000,
        b'{"model": "m", "messages": [], "tool_choice": ' + b'{"a":' * 100_000,
        b'{"model": "m", "messages": [], "tool_choice": '
        + b"[" * 100_000
        + b"]" * 100_000
        + b', "user": "\\u0000"}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_not_a_json_object_is_refused(body):
    refusal(body)


@pytest.mark.parametrize("text", [r"\ud800", r"a\udc00", r"\uD800\uD800", r"\ud83dx"])
def test_half_a_surrogate_pair_is_named_wherever_it_stands(text):
    body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % text.encode()

    assert (refusal(body).param, refusal(body).code) == ("messages[0].content", "invalid_string")


def test_an_escaped_backslash_before_u0000_is_no_nul():
    parsed = parse_chat(json.dumps(BASE | user("\\u0000")).encode(), max_choices=1)

    assert parsed.messages[0].content == "\\u0000"


def test_an_unknown_field_is_called_as_openai_calls_it():
    assert str(refusal(json.dumps(BASE | {"x": 1}).encode())) == (
        "Unrecognized request argument supplied: x"
    )


def test_a_wrong_type_says_what_was_expected_and_what_came():
    message = str(refusal(json.dumps(BASE | user(7)).encode()))

    assert message == (
        "Invalid type for 'messages[0].content': expected one of a string or an array, "
        "but got an integer instead."
    )


def test_no_message_of_a_refusal_is_longer_than_a_screen():
    for fields, _, _ in REFUSED:
        assert len(str(refusal(json.dumps(BASE | fields).encode()))) < 300
    long_role = messages({"role": "x" * 10_000, "content": "x"})
    assert len(str(refusal(json.dumps(BASE | long_role).encode()))) < 300


def test_text_parts_are_joined_by_lines_and_names_are_kept():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    parsed = parse(**messages({"role": "user", "content": parts, "name": "jane"}))

    assert parsed.messages == (Message(role="user", content="a\nb", name="jane"),)


def turn_of(*, capabilities=None, defaults=None, caller=None, **fields):
    return make_turn(
        parse(**fields), RequestId("r"), defaults or SamplingDefaults(), capabilities, caller
    )


def test_what_the_client_leaves_out_is_the_models_default():
    defaults = SamplingDefaults(temperature=0.6, top_p=0.9, top_k=40, repetition_penalty=1.05)
    silent = turn_of(defaults=defaults).sampling
    spoken = turn_of(defaults=defaults, temperature=0, top_k=-1).sampling

    assert (silent.temperature, silent.top_p, silent.top_k) == (0.6, 0.9, 40)
    assert silent.repetition_penalty == 1.05
    assert (spoken.temperature, spoken.top_k) == (0.0, 0)


def test_a_seed_is_unsigned_and_never_overflows_with_the_choices():
    assert turn_of(seed=-1).sampling.seed == 2**63 - 1
    assert turn_of(seed=7).sampling.seed == 7
    assert turn_of().sampling.seed != turn_of().sampling.seed


def test_a_top_p_of_zero_keeps_only_the_likeliest_token():
    sampling = turn_of(top_p=0, top_k=50).sampling

    assert (sampling.top_p, sampling.top_k) == (1.0, 1)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"logprobs": True}, "logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_the_engine_cannot_do_is_refused_once_it_is_known(fields, param):
    capabilities = scripted_capabilities(logprobs=False, json_schema=False)
    with pytest.raises(InvalidRequest) as caught:
        turn_of(capabilities=capabilities, **fields)

    assert (caught.value.param, caught.value.code) == (param, "unsupported_value")
    turn_of(**fields)


def test_a_repetition_penalty_is_refused_where_it_would_cost_a_tenant_its_privacy():
    capabilities = msgspec.structs.replace(scripted_capabilities(), salted_repetition_penalty=False)
    local = Principal(user=UserId("u"), tenant=TenantId("t"), scopes=frozenset())
    known = dataclasses.replace(local, key=KeyId("key"))

    turn = turn_of(capabilities=capabilities, caller=local, repetition_penalty=1.1)
    assert (turn.tenant, turn.salt) == ("t", None)
    turn = turn_of(capabilities=capabilities, caller=known, repetition_penalty=1)
    assert (turn.tenant, turn.salt) == ("t", "t")
    with pytest.raises(InvalidRequest) as caught:
        turn_of(capabilities=capabilities, caller=known, repetition_penalty=1.1)
    assert (caught.value.param, caught.value.code) == ("repetition_penalty", "unsupported_value")


def test_json_formats_reach_the_engine_as_a_schema():
    schema = {"type": "object", "properties": {"é": {"type": "string"}}}
    format_ = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}

    assert turn_of(response_format={"type": "json_object"}).sampling.json_schema == (
        '{"type":"object"}'
    )
    assert json.loads(turn_of(response_format=format_).sampling.json_schema) == schema
    assert turn_of().sampling.json_schema is None


@pytest.mark.parametrize(
    ("schema", "param"),
    [
        ({"name": "n", "schema": {"type": "wizard"}}, "response_format.json_schema.schema"),
        ({"name": "n", "schema": {"minLength": -1}}, "response_format.json_schema.schema"),
        ({"name": "n"}, "response_format.json_schema.schema"),
        ({"name": "", "schema": {}}, "response_format.json_schema.name"),
        ({"name": "n", "schema": {"x": "y" * 70_000}}, "response_format.json_schema.schema"),
        ({"name": "n", "schema": {"$ref": "http://a/b"}}, "response_format.json_schema.schema"),
        (
            {"name": "n", "schema": {"properties": {"a": {"anyOf": [{"$ref": "b.json"}]}}}},
            "response_format.json_schema.schema",
        ),
    ],
)
def test_a_schema_that_is_none_is_refused_before_the_engine_sees_it(schema, param):
    body = parse(response_format={"type": "json_schema", "json_schema": schema})
    with pytest.raises(InvalidRequest) as caught:
        check_schema(body)

    assert caught.value.param == param


def test_a_reference_within_the_schema_and_one_that_is_only_data_are_taken():
    schema = {
        "$defs": {"a": {"type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/a"}, "$ref": {"const": {"$ref": "http://a/b"}}},
    }
    named = {"name": "n", "schema": schema}

    check_schema(parse(response_format={"type": "json_schema", "json_schema": named}))


def test_a_deeply_nested_schema_is_refused():
    schema: dict = {}
    for _ in range(900):
        schema = {"items": schema}
    body = parse(
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    )

    with pytest.raises(InvalidRequest):
        check_schema(body)


@pytest.mark.parametrize("depth", [500, 900])
def test_a_schema_that_is_deep_where_no_keyword_is_says_so_too(depth):
    """What no check follows is followed when references are looked for."""
    schema = {"type": "object"}
    for _ in range(depth):
        schema = {"made_up": schema}

    body = parse(
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    )

    with pytest.raises(InvalidRequest, match="nested too deeply"):
        check_schema(body)


@pytest.mark.parametrize("depth", [500, *range(900, 1000, 10)])
def test_a_nul_is_refused_however_deep_it_stands(depth):
    text = '{"a":' * depth + '"\\u0000"' + "}" * depth

    error = refusal(f'{{"model": "m", "messages": [], "audio": {text}}}'.encode())

    assert "NUL" in str(error) or "nested too deeply" in str(error)
    assert len(str(error)) < 500


def test_what_may_name_a_person_is_logged_as_a_hash():
    facts = client_facts(parse(user="jane", prompt_cache_key="k").body)

    assert set(facts) == {"user", "prompt_cache_key"}
    assert all(re.fullmatch("[0-9a-f]{16}", value) for value in facts.values())


# A fixed alphabet: Hypothesis takes seconds to build its table of all of Unicode the first time.
_TEXT = st.text('a\x00\ud800é"\\', max_size=4)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_REPEATABLE = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
_FIELD = st.sampled_from([*ChatCompletionRequest.__struct_fields__, "unknown"])


@_REPEATABLE
@given(st.dictionaries(_FIELD, _JSON, max_size=4), st.booleans())
def test_no_json_makes_anything_but_a_request_or_a_refusal(fields, on_top):
    body = json.dumps((BASE if on_top else {}) | fields).encode("utf-8", "surrogatepass")
    with contextlib.suppress(InvalidRequest):
        parse_chat(body, max_choices=16)


@_REPEATABLE
@given(st.binary(max_size=60))
def test_no_bytes_make_anything_but_a_refusal(body):
    refusal(body)
