"""The chunk encoder is pure, and its chunks add up for every SDK."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.errors import HostLost
from antiphon.events import TokenLogprob
from antiphon.http.openai.sse import HEARTBEAT, ChunkEncoder
from antiphon.ids import ModelName, ResponseId
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import ChoiceEnded, Delta, FinishReason, TurnEnded, TurnFailed, Usage

USAGE = Usage(prompt_tokens=3, completion_tokens=4)


def encoder(choices=1, include_usage=False):
    return ChunkEncoder(
        response=ResponseId("chatcmpl-1"),
        model=ModelName('m"ö'),
        created=7,
        fingerprint="fp_1",
        choices=choices,
        include_usage=include_usage,
    )


def payloads(data: bytes) -> list:
    """The JSON payloads of a piece of stream; `[DONE]` stays a string."""
    events = data.decode("utf-8").split("\n\n")
    assert events.pop() == ""
    found = []
    for event in events:
        assert event.startswith("data: ")
        assert "\n" not in event
        text = event.removeprefix("data: ")
        found.append(text if text == "[DONE]" else json.loads(text))
    return found


def run(events, **options):
    machine = encoder(**options)
    return [payload for event in events for payload in payloads(machine.encode(event))]


def ended(choice=0, reason=FinishReason.STOP):
    return ChoiceEnded(choice=choice, finish_reason=reason)


def text(content, choice=0):
    return Delta(choice=choice, text=content)


def test_a_stream_is_role_with_text_then_text_then_finish_then_done():
    first, second, finish, done = run([text("Hel"), text("lo"), ended(), TurnEnded(usage=USAGE)])

    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "Hel"}
    assert second["choices"][0]["delta"] == {"content": "lo"}
    assert finish["choices"] == [
        {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    ]
    assert done == "[DONE]"


def test_identity_is_the_same_in_every_chunk():
    chunks = run([text("a"), text("b"), ended(), TurnEnded(usage=USAGE)], include_usage=True)

    heads = [{key: chunk[key] for key in ("id", "created", "model")} for chunk in chunks[:-1]]
    assert heads == [{"id": "chatcmpl-1", "created": 7, "model": 'm"ö'}] * 4
    assert {chunk["object"] for chunk in chunks[:-1]} == {"chat.completion.chunk"}
    assert {chunk["system_fingerprint"] for chunk in chunks[:-1]} == {"fp_1"}


def test_empty_text_makes_no_chunk():
    machine = encoder()

    assert machine.encode(text("")) == b""
    assert machine.encode(text("a")) != b""
    assert machine.encode(text("")) == b""


def test_a_choice_without_text_still_gets_its_role_and_an_empty_last_delta():
    opening, finish = run([ended(reason=FinishReason.LENGTH)])

    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert finish["choices"][0]["delta"] == {}
    assert finish["choices"][0]["finish_reason"] == "length"


def test_roles_come_in_choice_order_even_if_texts_do_not():
    chunks = run([text("c", choice=2), text("a", choice=0)], choices=3)

    roles = [c["choices"][0]["index"] for c in chunks if "role" in c["choices"][0]["delta"]]
    assert roles == [0, 1, 2]


def test_usage_comes_last_without_choices_and_only_when_asked_for():
    *chunks, usage, done = run([text("a"), ended(), TurnEnded(usage=USAGE)], include_usage=True)

    assert [chunk["usage"] for chunk in chunks] == [None, None]
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert done == "[DONE]"
    assert all("usage" not in chunk for chunk in run([text("a"), ended()]))


def test_a_failure_is_an_error_payload_and_then_done():
    *_, error, done = run([text("a"), TurnFailed(error=HostLost(reason="x"))])

    assert set(error) == {"error"}
    assert set(error["error"]) == {"message", "type", "param", "code"}
    assert done == "[DONE]"


def test_logprobs_travel_with_their_text_also_when_no_text_left_yet():
    entry = TokenLogprob(text="a", data=b"a", logprob=-1.0)
    held, given_ = run(
        [Delta(choice=0, text="", logprobs=(entry,)), Delta(choice=0, text="a", logprobs=(entry,))]
    )

    for chunk in (held, given_):
        assert chunk["choices"][0]["logprobs"]["content"] == [
            {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}
        ]


def test_the_heartbeat_is_a_comment():
    assert HEARTBEAT.startswith(b":")
    assert HEARTBEAT.endswith(b"\n\n")


_TEXTS = st.text('a"\\\n\u2028é😀', max_size=6)
_DELTAS = st.lists(st.tuples(st.integers(0, 2), _TEXTS), max_size=12)


@settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(_DELTAS, st.permutations([0, 1, 2]))
def test_what_a_client_adds_up_is_what_was_said(deltas, order):
    said = ["", "", ""]
    events = []
    for choice, content in deltas:
        said[choice] += content
        events.append(text(content, choice=choice))
    chunks = run([*events, *map(ended, order), TurnEnded(usage=USAGE)], choices=3)
    assert chunks.pop() == "[DONE]"

    heard, roles, finishes = ["", "", ""], ["", "", ""], ["", "", ""]
    for chunk in chunks:
        (choice,) = chunk["choices"]
        index, delta = choice["index"], choice["delta"]
        assert not finishes[index], "nothing follows the finish reason"
        heard[index] += delta.get("content", "")
        roles[index] += delta.get("role", "")
        finishes[index] += choice["finish_reason"] or ""

    assert heard == said
    assert roles == ["assistant"] * 3
    assert finishes == ["stop"] * 3


@pytest.mark.parametrize(
    "content", ['"', "\\", "\n\n", "\r", "\x1f", "\u2028", "\x7f", "😀", "data:"]
)
def test_no_text_can_break_out_of_its_event(content):
    (chunk,) = run([text(content)])

    assert chunk["choices"][0]["delta"]["content"] == content


def test_a_call_is_named_in_its_first_chunk_and_its_arguments_follow():
    chunks = run(
        [
            CallStarted(choice=0, call=0, id="call_1", name="f"),
            CallDelta(choice=0, call=0, text='{"a":'),
            CallDelta(choice=0, call=0, text="1}"),
            CallEnded(choice=0, call=0),
            CallStarted(choice=0, call=1, id="call_2", name="g"),
            ended(reason=FinishReason.TOOL_CALLS),
        ]
    )

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    first = {"index": 0, "id": "call_1", "type": "function"}
    second = {"index": 1, "id": "call_2", "type": "function"}
    assert deltas == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [first | {"function": {"name": "f", "arguments": ""}}],
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {"tool_calls": [second | {"function": {"name": "g", "arguments": ""}}]},
        {},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_calls_after_text_and_of_a_later_choice_keep_the_roles_in_order():
    chunks = run(
        [
            text("Hm."),
            CallStarted(choice=0, call=0, id="call_1", name="f"),
            CallStarted(choice=2, call=0, id="call_2", name="f"),
        ],
        choices=3,
    )

    roles = [
        (choice["index"], choice["delta"].get("role"))
        for each in chunks
        for choice in each["choices"]
    ]
    assert [entry for entry in roles if entry[1]] == [(n, "assistant") for n in range(3)]
