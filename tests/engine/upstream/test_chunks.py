"""Chunks of each server, in the shapes that they were seen in."""

import json

import pytest

from antiphon.engine.upstream.chunks import Chunk, read_chunk
from antiphon.engine.upstream.sse import Event
from antiphon.engine.upstream.trouble import Kind, Trouble
from antiphon.events import EndReason, TokenLogprob

USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}


def read(value: object) -> Chunk:
    return read_chunk(Event(json.dumps(value)))


def choice(delta: object = None, end: object = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": end, **fields}]}


@pytest.mark.parametrize(
    "value",
    [
        choice({"role": "assistant", "content": ""}),
        choice({"role": "assistant", "content": None}),  # llama-server
        choice({"role": None, "content": None, "reasoning_content": None}),  # SGLang
        choice({"role": "assistant"}),
        choice(None),
        choice({}, ""),
        {"choices": []},
        {"choices": None, "usage": None},
        {},
    ],
)
def test_a_role_or_nothing_is_no_token(value):
    assert read(value) == Chunk()


@pytest.mark.parametrize(
    "value",
    [
        choice({"content": "hi"}),
        choice({"role": "assistant", "content": "hi"}),  # the role in every chunk
        choice({"content": [{"type": "text", "text": "hi"}]}),
        {"choices": [{"index": 0, "text": "hi", "finish_reason": None}]},
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]},
    ],
)
def test_text_is_found_wherever_it_stands(value):
    assert read(value) == Chunk(text="hi", is_token=True)


def test_a_thought_is_a_token_and_no_text():
    assert read(choice({"reasoning_content": "hmm"})) == Chunk(is_token=True)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("stop", EndReason.STOP),
        ("eos_token", EndReason.STOP),
        ("stop_sequence", EndReason.STOP),
        ("length", EndReason.LENGTH),
        ("content_filter", EndReason.CONTENT_FILTER),
    ],
)
def test_an_end_is_understood(reason, end):
    assert read(choice({}, reason)).end is end


@pytest.mark.parametrize("reason", ["abort", "error", "tool_calls", 3, {"type": "stop"}])
def test_an_end_that_nobody_asked_for_is_a_failure(reason):
    with pytest.raises(Trouble) as caught:
        read(choice({}, reason))

    assert caught.value.kind is Kind.BROKEN


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [], "usage": USAGE},  # OpenAI, vLLM, llama-server
        {"usage": USAGE},
        choice({}, "stop") | {"usage": USAGE},  # beside the last choice
        choice({"content": "hi"}) | {"usage": USAGE},  # in every chunk
    ],
)
def test_usage_is_found_wherever_it_stands(value):
    chunk = read(value)

    assert (chunk.prompt_tokens, chunk.completion_tokens) == (9, 3)


def test_what_a_cache_had_of_a_prompt_is_read_where_it_is_said():
    usage = USAGE | {"prompt_tokens_details": {"cached_tokens": 8}}

    assert read({"choices": [], "usage": usage}).cached_tokens == 8
    assert read({"choices": [], "usage": USAGE | {"prompt_tokens_details": None}}) == read(
        {"choices": [], "usage": USAGE}
    )


@pytest.mark.parametrize("usage", [None, {}, [], {"prompt_tokens": "9"}, {"prompt_tokens": -1}])
def test_usage_that_is_none_counts_nothing(usage):
    assert read({"choices": [], "usage": usage}) == Chunk()


def test_logprobs_come_with_their_bytes():
    entries = [{"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": []}]
    chat = read(choice({"content": "é"}, logprobs={"content": entries}))
    text = {"text": "a b", "logprobs": {"tokens": ["a", " b"], "token_logprobs": [None, -1]}}

    assert chat.logprobs == (TokenLogprob(text="é", data="é".encode(), logprob=-0.5),)
    assert [entry.logprob for entry in read({"choices": [text]}).logprobs] == [0.0, -1.0]


def test_a_lone_surrogate_is_replaced():
    assert read_chunk(Event('{"choices": [{"delta": {"content": "a\\ud83d"}}]}')).text == "a\ufffd"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("not json", Kind.BROKEN),
        ("[" * 100_000, Kind.BROKEN),
        ("[]", Kind.BROKEN),
        ('{"choices": ["x"]}', Kind.BROKEN),
        ('{"choices": [{"delta": "x"}]}', Kind.BROKEN),
        ('{"error": {"message": "queue full", "code": 503}}', Kind.BUSY),
    ],
)
def test_what_is_no_chunk_is_a_failure(data, kind):
    with pytest.raises(Trouble) as caught:
        read_chunk(Event(data))

    assert caught.value.kind is kind


@pytest.mark.parametrize("data", ["boom", '{"code": 500, "message": "boom"}', '{"message": "x"}'])
def test_an_event_named_error_is_one_whatever_it_holds(data):
    with pytest.raises(Trouble):
        read_chunk(Event(data, is_error=True))
