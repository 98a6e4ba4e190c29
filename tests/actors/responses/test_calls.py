"""The story of a response that calls functions."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.responses.retold import told
from antiphon.actors.responses.script import Script
from antiphon.ids import ItemId
from antiphon.messages import CALLS
from antiphon.narration import (
    ArgumentsAdded,
    ArgumentsClosed,
    CallOpened,
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    PartOpened,
    RefusalAdded,
    RefusalClosed,
    RefusalOpened,
    ResponseEvent,
    Started,
    TextAdded,
    TextClosed,
    decode_events,
    encode_events,
)
from antiphon.records import ResponseKind, ResponseStatus
from antiphon.testing.answers import a_response
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    Refused,
    TurnEnded,
    TurnEvent,
    Usage,
)

ENDED = TurnEnded(usage=Usage(prompt_tokens=3, completion_tokens=9))
CALLED = FinishReason.TOOL_CALLS


def a_script(choices: int = 1, **fields: object) -> Script:
    numbers = itertools.count()
    return Script(
        a_response("resp_1", **fields),
        choices=choices,
        new_item=lambda: ItemId(f"msg_{next(numbers)}"),
    )


def call(
    number: int, arguments: str = "{}", *, choice: int = 0, cut: bool = False
) -> list[TurnEvent]:
    started = CallStarted(choice=choice, call=number, id=f"call_{number}", name=f"f{number}")
    deltas = [CallDelta(choice=choice, call=number, text=each) for each in arguments]
    return [started, *deltas, *([] if cut else [CallEnded(choice=choice, call=number)])]


def end(reason: FinishReason, choice: int = 0) -> ChoiceEnded:
    return ChoiceEnded(choice=choice, finish_reason=reason)


def play(script: Script, *events: TurnEvent) -> list[ResponseEvent]:
    told = [each for event in events for each in script.on_turn(event)]
    return [*told, *script.end(script.outcome())]


def items_of(events: list[ResponseEvent]) -> list[ItemId]:
    return [event.item for event in events if isinstance(event, ItemOpened | CallOpened)]


def test_calls_are_items_of_their_own_after_the_text() -> None:
    script = a_script()
    said = Delta(choice=0, text="Hm.")
    events = play(script, said, *call(0, "{}"), *call(1, "[]"), end(CALLED), ENDED)

    message, first, second = items_of(events)
    assert events == [
        Opened(status=ResponseStatus.IN_PROGRESS),
        Started(),
        ItemOpened(index=0, item=message),
        PartOpened(index=0),
        TextAdded(index=0, text="Hm."),
        TextClosed(index=0),
        PartClosed(index=0),
        ItemClosed(index=0, finish=FinishReason.STOP),
        CallOpened(index=1, item=first, call="call_0", name="f0"),
        ArgumentsAdded(index=1, text="{"),
        ArgumentsAdded(index=1, text="}"),
        ArgumentsClosed(index=1),
        ItemClosed(index=1, finish=CALLED),
        CallOpened(index=2, item=second, call="call_1", name="f1"),
        ArgumentsAdded(index=2, text="["),
        ArgumentsAdded(index=2, text="]"),
        ArgumentsClosed(index=2),
        ItemClosed(index=2, finish=CALLED),
        Ended(status=ResponseStatus.COMPLETED),
    ]
    assert first.startswith("fc_")
    output = script.response(ResponseStatus.COMPLETED, 5).output
    assert [item.type for item in output] == ["message", "function_call", "function_call"]
    assert output[1].body == {
        "type": "function_call",
        "call_id": "call_0",
        "name": "f0",
        "arguments": "{}",
    }
    assert {item.status for item in output} == {"completed"}


def test_an_answer_that_is_a_call_has_no_message() -> None:
    script = a_script()
    play(script, *call(0), end(CALLED), ENDED)

    [item] = script.response(ResponseStatus.COMPLETED, 5).output
    assert item.type == "function_call"
    assert item.tokens is not None


def test_a_call_that_is_cut_is_incomplete_and_so_is_the_response() -> None:
    script = a_script()
    events = play(script, *call(0, '{"a', cut=True), end(FinishReason.LENGTH), ENDED)

    assert not any(isinstance(event, ArgumentsClosed) for event in events)
    assert events[-1] == Ended(status=ResponseStatus.INCOMPLETE)
    response = script.response(script.outcome(), 5)
    assert response.incomplete_reason == "max_output_tokens"
    assert [item.status for item in response.output] == ["incomplete"]


def test_whole_calls_before_the_longest_answer_are_whole_and_the_response_is_not() -> None:
    script = a_script()
    play(script, *call(0), end(FinishReason.LENGTH), ENDED)

    response = script.response(script.outcome(), 5)
    assert (response.status, response.output[0].status) == (
        ResponseStatus.INCOMPLETE,
        "completed",
    )


def test_a_refusal_in_the_middle_of_a_call_is_a_message_after_it() -> None:
    script = a_script()
    refused = Refused(choice=0, text="No.")
    cut = end(FinishReason.CONTENT_FILTER)
    events = play(script, *call(0, '{"a', cut=True), refused, cut, ENDED)

    assert (
        events[-7:]
        == [
            ItemClosed(index=0, finish=FinishReason.CONTENT_FILTER),
            ItemOpened(index=1, item=ItemId("msg_0")),
            RefusalOpened(index=1),
            RefusalAdded(index=1, text="No."),
            RefusalClosed(index=1),
            PartClosed(index=1),
            ItemClosed(index=1, finish=FinishReason.CONTENT_FILTER),
            Ended(status=ResponseStatus.INCOMPLETE),
        ][-7:]
    )
    assert script.response(script.outcome(), 5).incomplete_reason == "content_filter"


def test_in_a_chat_calls_are_part_of_their_choices_message() -> None:
    script = a_script(choices=2, kind=ResponseKind.CHAT)
    told_ = play(
        script,
        *call(0, choice=0),
        Delta(choice=1, text="Hm."),
        end(FinishReason.STOP, 1),
        *call(1, choice=0),
        end(CALLED, 0),
        ENDED,
    )

    assert {e.index for e in told_ if isinstance(e, CallOpened)}.isdisjoint({0, 1})
    first, second = script.response(ResponseStatus.COMPLETED, 5).output
    assert [each["call_id"] for each in first.body[CALLS]] == ["call_0", "call_1"]
    assert (first.type, first.body["finish_reason"]) == ("message", CALLED)
    assert CALLS not in second.body
    assert second.body["content"][0]["text"] == "Hm."


@pytest.mark.parametrize("kind", list(ResponseKind))
@settings(deadline=None)
@given(cut=st.integers(0, 30))
def test_a_story_that_a_crash_has_cut_can_be_ended_and_loses_no_argument(
    kind: ResponseKind, cut: int
) -> None:
    script = a_script(kind=kind)
    events = play(
        script,
        Delta(choice=0, text="Hm."),
        *call(0, '{"a":1}'),
        *call(1, "{}"),
        end(CALLED),
        ENDED,
    )
    kept = decode_events(encode_events(events[:cut]))

    resumed = Script.resumed(a_response("resp_1", kind=kind), kept)
    whole = [*kept, *resumed.end(ResponseStatus.FAILED)]

    opened = [e.index for e in whole if isinstance(e, ItemOpened | CallOpened)]
    assert sorted(opened) == sorted(e.index for e in whole if isinstance(e, ItemClosed))
    said = "".join(event.text for event in kept if isinstance(event, ArgumentsAdded))
    output = resumed.response(ResponseStatus.FAILED, 5).output
    calls = [
        each
        for item in output
        for each in ([item.body] if item.type == "function_call" else item.body.get(CALLS, []))
    ]
    assert "".join(each["arguments"] for each in calls) == said


@pytest.mark.parametrize("kind", list(ResponseKind))
def test_a_response_without_a_log_is_told_from_its_output(kind: ResponseKind) -> None:
    script = a_script(kind=kind)
    play(script, Delta(choice=0, text="Hm."), *call(0), *call(1), end(CALLED), ENDED)
    response = script.response(ResponseStatus.COMPLETED, 5)

    again = Script.resumed(response, told(response)).response(ResponseStatus.COMPLETED, 5)

    strip = [(item.type, item.body, item.status) for item in response.output]
    assert [(item.type, item.body, item.status) for item in again.output] == strip
