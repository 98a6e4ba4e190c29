"""Parsing alone: what is taken, and how each refusal is worded."""

import json
from typing import Any

import msgspec
import pytest

from antiphon.errors import InvalidRequest, RecordNotFound
from antiphon.http.openai.responses.parse import digest_of, parse_count, parse_create
from antiphon.messages import message_of

NOW_MS = 1_700_000_000_000


def create(**fields: Any):
    return parse_create(json.dumps({"model": "m", "input": "hi"} | fields).encode(), NOW_MS)


def refused(**fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        create(**fields)
    return caught.value


HARMLESS: list[dict[str, Any]] = [
    {"tools": []},
    {"tool_choice": "auto"},
    {"tool_choice": "none"},
    {"parallel_tool_calls": False},
    {"max_tool_calls": 3},
    {"truncation": "disabled"},
    {"truncation": "auto"},
    {"context_management": [{"type": "compaction", "compact_threshold": 1000}]},
    {"context_management": [{"type": "compaction"}]},
    {"text": {"verbosity": "medium"}},
    {"text": {"format": {"type": "text"}}},
    {"reasoning": {"effort": "none", "summary": "auto"}},
    {"reasoning": {}},
    {"service_tier": "flex"},
    {"include": ["reasoning.encrypted_content", "file_search_call.results"]},
    {"stream": True, "stream_options": {"include_obfuscation": True}},
    {"prompt_cache_options": {"ttl": "30m", "mode": "implicit"}},
    {"prompt_cache_retention": "24h"},
    {"user": "u", "safety_identifier": "s", "prompt_cache_key": "k"},
    {"top_logprobs": 0},
    {"store": False, "previous_response_id": "resp_1"},
    {"background": True},
    {"context_management": []},
    {"presence_penalty": 1, "frequency_penalty": -1},
]


@pytest.mark.parametrize("fields", HARMLESS, ids=str)
def test_what_can_be_honoured_is_taken(fields):
    create(**fields)


@pytest.mark.parametrize("name", sorted(create().body.__struct_fields__))
def test_null_means_absent(name):
    if name in {"model", "input"}:
        return
    assert getattr(create(**{name: None}).body, name) is None


UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"text": {"verbosity": "high"}}, "text.verbosity"),
    ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
    ({"reasoning": {"summary": "detailed"}}, "reasoning.summary"),
    ({"context_management": [{"type": "editing"}]}, "context_management[0].type"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, "input[0].type"),
    ({"input": [{"type": "custom_tool_call_output"}]}, "input[0].type"),
    (
        {"input": [{"role": "system", "content": [{"type": "input_image", "file_id": "f"}]}]},
        "input[0].content[0].type",
    ),
    (
        {"input": [{"role": "assistant", "content": [{"type": "input_file", "file_id": "f"}]}]},
        "input[0].content[0].type",
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]},
        "input[0].content[0].type",
    ),
    (
        {"input": [{"role": "system", "content": [{"type": "refusal", "refusal": "x"}]}]},
        "input[0].content[0].type",
    ),
]


@pytest.mark.parametrize(("fields", "param"), UNSUPPORTED, ids=str)
def test_what_cannot_be_honoured_is_refused_by_name(fields, param):
    error = refused(**fields)

    assert error.param == param
    assert error.code in {"unsupported_parameter", "unsupported_value"}


INVALID: list[tuple[dict[str, Any], str | None]] = [
    ({"model": ""}, "model"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
    ({"max_output_tokens": 15}, "max_output_tokens"),
    ({"temperature": 2.1}, "temperature"),
    ({"top_p": -0.1}, "top_p"),
    ({"max_tool_calls": -1}, "max_tool_calls"),
    ({"safety_identifier": "x" * 65}, "safety_identifier"),
    ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
    ({"metadata": {"k" * 65: ""}}, "metadata"),
    ({"metadata": {"k": "v" * 513}}, "metadata.k"),
    ({"metadata": {"k": 1}}, "metadata[...]"),
    ({"stream_options": {}}, "stream_options"),
    ({"truncation": "some"}, "truncation"),
    (
        {"context_management": [{"type": "compaction", "compact_threshold": 0}]},
        "context_management[0].compact_threshold",
    ),
    ({"include": ["all"]}, "include[0]"),
    ({"nonsense": 1}, "nonsense"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"input": []}, "input"),
    ({"input": None}, "input"),
    ({"input": 5}, "input"),
    ({"input": ["x"]}, "input[0]"),
    ({"input": [{"type": "nonsense"}]}, "input[0].type"),
    ({"input": [{"type": "item_reference"}]}, "input[0].id"),
    ({"input": [{"id": "msg_1", "status": "completed"}]}, "input[0].status"),
    ({"input": [{"role": "robot", "content": ""}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": []}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": "x", "name": "n"}]}, "input[0].name"),
    ({"input": "a\x00b"}, "input"),
    ({"input": [{"role": "user", "content": "\ud800"}]}, "input[0].content"),
    ({"conversation": "conv_1", "store": False}, "conversation"),
    ({"background": True, "store": False}, "background"),
    ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "previous_response_id"),
]


@pytest.mark.parametrize(("fields", "param"), INVALID, ids=str)
def test_what_is_wrong_is_named(fields, param):
    assert refused(**fields).param == param


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"conversation": "nonsense"}, "conversation"),
        ({"conversation": {"id": "conv_a\n"}}, "conversation"),
        ({"previous_response_id": "chatcmpl-1"}, "response"),
    ],
)
def test_an_id_that_cannot_be_one_is_not_found(fields, kind):
    with pytest.raises(RecordNotFound) as caught:
        create(**fields)

    assert caught.value.kind == kind


@pytest.mark.parametrize("where", [{"conversation": "conv_1"}, {"previous_response_id": "resp_1"}])
@pytest.mark.parametrize("given", [None, []])
def test_a_turn_may_go_on_without_words_of_its_own(where, given):
    assert create(input=given, **where).input.items == ()


def test_every_form_of_a_message_is_kept_in_one():
    spellings = [
        "hi",
        [{"role": "user", "content": "hi"}],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    ]
    bodies = [create(input=spelling).input.items[0].body for spelling in spellings]

    assert bodies == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    ] * len(spellings)


def test_an_assistants_words_are_output_however_they_are_sent():
    for content in ("yo", [{"type": "input_text", "text": "yo"}]):
        item = create(input=[{"role": "assistant", "content": content}]).input.items[0]
        assert item.body["content"] == [
            {"type": "output_text", "text": "yo", "annotations": [], "logprobs": []}
        ]


def test_parts_are_lines_to_the_model():
    content = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    item = create(input=[{"role": "user", "content": content}]).input.items[0]

    assert message_of(item).content == "a\nb"


def test_the_digest_is_of_the_meaning_not_of_the_spelling():
    assert digest_of(b'{"a": 1, "b": [2]}') == digest_of(b'{"b":[2],"a":1}')
    assert digest_of(b'{"a": 1}') != digest_of(b'{"a": 2}')


def test_whatever_can_be_decoded_has_a_digest():
    def nested(depth: int) -> bytes:
        inner = b'[{"a":' * depth + b"1" + b"}]" * depth
        return b'{"model":"m","input":[{"type":"x"}],"tools":' + inner + b"}"

    for depth in range(50, 1200, 25):
        try:
            msgspec.json.decode(nested(depth))
        except RecursionError:
            return
        digest_of(nested(depth))


def test_a_count_needs_no_model():
    parsed = parse_count(b'{"input": "hi"}', NOW_MS)

    assert parsed.body.model is None
    assert len(parsed.input.items) == 1


def test_a_count_refuses_what_would_change_the_prompt():
    for body in (b'{"input":"x","tools":[{}]}', b'{"input":"x","personality":"friendly"}'):
        with pytest.raises(InvalidRequest):
            parse_count(body, NOW_MS)
