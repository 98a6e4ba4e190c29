"""The renderer alone: from narration to bytes."""

import json
from dataclasses import replace

import openresponses_types as spec
import pytest
from pydantic import BaseModel

from antiphon.errors import HostLost, StoreUnavailable
from antiphon.events import TokenLogprob
from antiphon.http.openai.responses.render import EventRenderer
from antiphon.ids import LOCAL_USER, ItemId, ModelName, ResponseId
from antiphon.narration import (
    ArgumentsAdded,
    ArgumentsClosed,
    CallOpened,
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartOpened,
    Started,
    TextAdded,
    TextClosed,
)
from antiphon.records import Response, ResponseError, ResponseKind, ResponseStatus
from antiphon.testing.responses import answered, message_events, story
from antiphon.turn_events import FinishReason

RESPONSE = Response(
    id=ResponseId("resp_1"),
    user=LOCAL_USER,
    kind=ResponseKind.RESPONSE,
    model=ModelName("m"),
    status=ResponseStatus.IN_PROGRESS,
    created_ms=1_700_000_000_123,
    request={"instructions": "Be kind."},
    metadata={"a": "b"},
)
SPECIFIED: dict[str, type[BaseModel]] = {
    "response.created": spec.ResponseCreatedStreamingEvent,
    "response.queued": spec.ResponseQueuedStreamingEvent,
    "response.in_progress": spec.ResponseInProgressStreamingEvent,
    "response.output_item.added": spec.ResponseOutputItemAddedStreamingEvent,
    "response.content_part.added": spec.ResponseContentPartAddedStreamingEvent,
    "response.output_text.delta": spec.ResponseOutputTextDeltaStreamingEvent,
    "response.output_text.done": spec.ResponseOutputTextDoneStreamingEvent,
    "response.content_part.done": spec.ResponseContentPartDoneStreamingEvent,
    "response.output_item.done": spec.ResponseOutputItemDoneStreamingEvent,
    "response.completed": spec.ResponseCompletedStreamingEvent,
    "response.incomplete": spec.ResponseIncompleteStreamingEvent,
    "response.failed": spec.ResponseFailedStreamingEvent,
    "error": spec.ErrorStreamingEvent,
}


def decode(data: bytes) -> list[dict]:
    """The payloads, after checking the frame of each."""
    payloads = []
    for block in data.decode().split("\n\n")[:-1]:
        event, body = block.split("\n")
        payload = json.loads(body.removeprefix("data: "))
        assert event == f"event: {payload['type']}"
        assert body.startswith("data: ")
        payloads.append(payload)
    assert data == b"" or data.endswith(b"\n\n")
    return payloads


def whole(*texts: str, **options) -> bytes:
    renderer = EventRenderer(with_logprobs=False, **options)
    ended = answered(RESPONSE, *texts)
    return renderer.render((*story(*texts), Ended(status=ended.status)), ended)


def test_the_order_is_the_documented_one_and_numbers_count_from_zero():
    events = decode(whole("Hel", "lo"))

    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "queued",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(11))


def test_every_event_is_what_open_responses_says():
    for event in decode(whole("Hel", "lo")):
        SPECIFIED[event["type"]].model_validate(event)


def test_done_events_hold_the_whole_text():
    events = {event["type"]: event for event in decode(whole("Hel", "lo"))}

    assert events["response.output_text.done"]["text"] == "Hello"
    assert events["response.content_part.done"]["part"]["text"] == "Hello"
    item = events["response.output_item.done"]["item"]
    assert item == events["response.completed"]["response"]["output"][0]
    assert (item["status"], item["content"][0]["text"]) == ("completed", "Hello")
    assert events["response.completed"]["response"]["completed_at"] == 1_700_000_001


def test_what_comes_before_the_answer_shows_none_of_it():
    for event in decode(whole("Hel", "lo"))[:3]:
        response = event["response"]
        assert response["status"] == event["type"].removeprefix("response.").replace(
            "created", "queued"
        )
        assert response["output"] == []
        assert response["completed_at"] is None
        assert response["usage"]["total_tokens"] == 0
        assert response["instructions"] == "Be kind."


@pytest.mark.parametrize("after", [-1, 0, 4, 6, 9, 10, 99])
def test_a_stream_after_a_number_is_the_rest_of_the_whole_stream(after):
    full = decode(whole("Hel", "lo"))

    assert decode(whole("Hel", "lo", after=after)) == full[after + 1 :]


def test_events_in_any_batches_are_the_same_bytes():
    ended = answered(RESPONSE, "Hel", "lo")
    renderer = EventRenderer(with_logprobs=False)
    events = (*story("Hel", "lo"), Ended(status=ended.status))
    singly = b"".join(renderer.render((event,), ended) for event in events)

    assert singly == whole("Hel", "lo")


def test_text_needs_no_escape_it_does_not_get():
    text = 'a"\\\n\r\u2028\x00é😀\x1f'
    delta = decode(whole(text))[5]

    assert delta["delta"] == text


@pytest.mark.parametrize("status", [ResponseStatus.CANCELLED, ResponseStatus.INCOMPLETE])
def test_a_cancelled_stream_ends_as_incomplete_and_says_cancelled_inside(status):
    ended = answered(RESPONSE, "Hel", status=status)
    renderer = EventRenderer(with_logprobs=False)
    last = decode(renderer.render((*story("Hel"), Ended(status=status)), ended))[-1]

    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == status
    assert last["response"]["completed_at"] is None
    SPECIFIED[last["type"]].model_validate(last)


def test_a_failed_stream_says_why():
    failure = ResponseError(code="server_error", message="It was interrupted.")
    ended = replace(answered(RESPONSE, "Hel", status=ResponseStatus.FAILED), error=failure)
    renderer = EventRenderer(with_logprobs=False)
    last = decode(
        renderer.render((Opened(status=ended.status), Ended(status=ended.status)), ended)
    )[-1]

    assert last["type"] == "response.failed"
    assert last["response"]["error"] == {
        "code": "server_error",
        "message": "It was interrupted.",
    }
    SPECIFIED[last["type"]].model_validate(last)


@pytest.mark.parametrize("finish", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER, None])
def test_an_item_that_was_cut_is_incomplete(finish):
    renderer = EventRenderer(with_logprobs=False)
    item = decode(renderer.render(message_events("x", finish=finish), RESPONSE))[-1]["item"]

    assert item["status"] == "incomplete"


@pytest.mark.parametrize("wanted", [True, False])
def test_logprobs_are_shown_to_those_who_asked(wanted):
    token = TokenLogprob(text="é", data="é".encode(), logprob=-0.5)
    renderer = EventRenderer(with_logprobs=wanted)
    events = decode(
        renderer.render(
            (
                ItemOpened(index=0, item=ItemId("msg_1")),
                PartOpened(index=0),
                TextAdded(index=0, text="é", logprobs=(token,)),
                TextAdded(index=0, text="!"),
                TextClosed(index=0),
            ),
            RESPONSE,
        )
    )
    entry = {"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": []}
    expected = [entry] if wanted else []

    assert [event["logprobs"] for event in events[2:]] == [expected, [], expected]
    for event in events:
        SPECIFIED[event["type"]].model_validate(event)


def test_items_of_several_answers_keep_apart():
    renderer = EventRenderer(with_logprobs=False)
    events = decode(
        renderer.render(
            (
                Opened(status=ResponseStatus.IN_PROGRESS),
                Started(),
                ItemOpened(index=1, item=ItemId("msg_b")),
                PartOpened(index=1),
                *message_events("left", item="msg_a", index=0),
                TextAdded(index=1, text="right"),
                TextClosed(index=1),
            ),
            RESPONSE,
        )
    )
    texts = {
        (event["item_id"], event["output_index"]): event["text"]
        for event in events
        if event["type"] == "response.output_text.done"
    }

    assert texts == {("msg_a", 0): "left", ("msg_b", 1): "right"}


@pytest.mark.parametrize("error", [StoreUnavailable("it is away"), HostLost("killed")])
def test_an_error_has_the_flat_and_the_nested_form_and_the_next_number(error):
    renderer = EventRenderer(with_logprobs=False)
    renderer.render(story("Hel"), RESPONSE)
    (event,) = decode(renderer.render_error(error))

    assert event["type"] == "error"
    assert event["sequence_number"] == len(story("Hel"))
    for key in ("code", "message", "param"):
        assert event[key] == event["error"][key]
    assert event["error"]["type"] == "server_error"
    assert "it is away" not in event["message"]
    SPECIFIED["error"].model_validate(event)


def test_a_call_has_the_events_of_the_specification():
    called = ItemId("fc_1")
    events = [
        Opened(status=ResponseStatus.IN_PROGRESS),
        Started(),
        CallOpened(index=0, item=called, call="call_1", name="f"),
        ArgumentsAdded(index=0, text='{"a":'),
        ArgumentsAdded(index=0, text="1}"),
        ArgumentsClosed(index=0),
        ItemClosed(index=0, finish=FinishReason.TOOL_CALLS),
    ]

    payloads = decode(EventRenderer(with_logprobs=False).render(events, RESPONSE))[2:]

    item = {"id": called, "type": "function_call", "call_id": "call_1", "name": "f"}
    place = {"item_id": called, "output_index": 0}
    assert [{k: v for k, v in each.items() if k != "sequence_number"} for each in payloads] == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": item | {"status": "in_progress", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", **place, "delta": '{"a":'},
        {"type": "response.function_call_arguments.delta", **place, "delta": "1}"},
        {
            "type": "response.function_call_arguments.done",
            **place,
            "name": "f",
            "arguments": '{"a":1}',
        },
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": item | {"status": "completed", "arguments": '{"a":1}'},
        },
    ]
    kinds = [
        spec.ResponseOutputItemAddedStreamingEvent,
        spec.ResponseFunctionCallArgumentsDeltaStreamingEvent,
        spec.ResponseFunctionCallArgumentsDeltaStreamingEvent,
        spec.ResponseFunctionCallArgumentsDoneStreamingEvent,
        spec.ResponseOutputItemDoneStreamingEvent,
    ]
    for kind, payload in zip(kinds, payloads, strict=True):
        kind.model_validate(payload)


def test_a_call_that_was_cut_is_incomplete():
    events = [
        Opened(status=ResponseStatus.IN_PROGRESS),
        CallOpened(index=0, item=ItemId("fc_1"), call="call_1", name="f"),
        ArgumentsAdded(index=0, text='{"a'),
        ItemClosed(index=0, finish=FinishReason.LENGTH),
    ]

    last = decode(EventRenderer(with_logprobs=False).render(events, RESPONSE))[-1]
    assert (last["item"]["status"], last["item"]["arguments"]) == ("incomplete", '{"a')
