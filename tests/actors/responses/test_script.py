"""The story of a response: which events it has, in which order, and how it stands after them."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.responses.retold import told
from antiphon.actors.responses.script import Script
from antiphon.errors import TurnInterrupted
from antiphon.ids import ItemId, ModelName
from antiphon.narration import (
    Ended,
    ItemClosed,
    ItemOpened,
    Opened,
    PartClosed,
    PartOpened,
    Queued,
    ResponseEvent,
    Started,
    TextAdded,
    TextClosed,
    decode_events,
    encode_events,
)
from antiphon.records import ResponseKind, ResponseStatus
from antiphon.testing.answers import a_response
from antiphon.turn_events import (
    ChoiceEnded,
    Delta,
    FinishReason,
    TurnEnded,
    TurnFailed,
    TurnPlaced,
    Usage,
)

USAGE = Usage(prompt_tokens=3, completion_tokens=2)


def a_script(**fields: object) -> Script:
    numbers = itertools.count()
    return Script(a_response("resp_1", **fields), new_item=lambda: ItemId(f"msg_{next(numbers)}"))


def play(script: Script, *events: object) -> list[ResponseEvent]:
    return [told for event in events for told in script.on_turn(event)]  # type: ignore[arg-type]


def test_where_a_turn_is_placed_is_no_event_and_shows_in_the_response() -> None:
    script = a_script()

    events = play(script, TurnPlaced(model=ModelName("small"), tier="flex", moved="overload"))

    assert events == []
    assert not script.opened
    response = script.response(ResponseStatus.COMPLETED, 1)
    assert (response.model, response.request["service_tier"]) == ("small", "flex")


def test_plain_text_has_the_events_of_the_api_in_their_order() -> None:
    script = a_script()

    events = play(
        script,
        Delta(choice=0, text="Par"),
        Delta(choice=0, text="is"),
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
        TurnEnded(usage=USAGE),
    )
    events += script.end(script.outcome())

    assert events == [
        Opened(status=ResponseStatus.IN_PROGRESS),
        Started(),
        ItemOpened(index=0, item=ItemId("msg_0")),
        PartOpened(index=0),
        TextAdded(index=0, text="Par"),
        TextAdded(index=0, text="is"),
        TextClosed(index=0),
        PartClosed(index=0),
        ItemClosed(index=0, finish=FinishReason.STOP),
        Ended(status=ResponseStatus.COMPLETED),
    ]
    response = script.response(ResponseStatus.COMPLETED, 5)
    assert response.usage is not None
    assert (response.usage.input, response.usage.output) == (3, 2)
    assert response.output[0].status == "completed"
    assert response.output[0].body["content"][0]["text"] == "Paris"


def test_a_queued_response_says_so_before_it_starts() -> None:
    script = a_script()

    events = [*script.queue(), *play(script, Delta(choice=0, text="Hi"))]

    assert events[:3] == [Opened(status=ResponseStatus.QUEUED), Queued(), Started()]
    assert script.queue() == ()


def test_an_empty_answer_still_has_its_item() -> None:
    script = a_script()

    play(script, ChoiceEnded(choice=0, finish_reason=FinishReason.STOP), TurnEnded(usage=USAGE))
    script.end(ResponseStatus.COMPLETED)

    [item] = script.response(ResponseStatus.COMPLETED, 5).output
    assert item.body["content"][0]["text"] == ""


@pytest.mark.parametrize(
    ("finish", "reason"),
    [(FinishReason.LENGTH, "max_output_tokens"), (FinishReason.CONTENT_FILTER, "content_filter")],
)
def test_an_answer_cut_short_is_incomplete_and_says_why(finish: FinishReason, reason: str) -> None:
    script = a_script()

    play(script, Delta(choice=0, text="Once"), ChoiceEnded(choice=0, finish_reason=finish))

    assert script.outcome() is ResponseStatus.INCOMPLETE
    response = script.response(ResponseStatus.INCOMPLETE, 5)
    assert response.incomplete_reason == reason
    assert response.output[0].status == "incomplete"


def test_a_chat_completion_is_complete_whatever_its_choices_ended_with() -> None:
    script = a_script(kind=ResponseKind.CHAT)

    play(script, ChoiceEnded(choice=0, finish_reason=FinishReason.LENGTH))

    assert script.outcome() is ResponseStatus.COMPLETED
    body = script.response(ResponseStatus.COMPLETED, 5).output[0].body
    assert body["finish_reason"] == "length"


def test_what_is_open_when_a_response_fails_is_closed_as_incomplete_with_its_text() -> None:
    script = a_script()
    play(script, Delta(choice=0, text="Once upon"))
    play(script, TurnFailed(error=TurnInterrupted("x"), usage=USAGE))

    events = script.end(ResponseStatus.FAILED)

    assert events == (
        TextClosed(index=0),
        PartClosed(index=0),
        ItemClosed(index=0, finish=None),
        Ended(status=ResponseStatus.FAILED),
    )
    [item] = script.response(ResponseStatus.FAILED, 5).output
    assert item.status == "incomplete"
    assert item.body["content"][0]["text"] == "Once upon"


def test_a_response_that_fails_before_any_text_still_begins_and_ends() -> None:
    events = a_script().end(ResponseStatus.CANCELLED)

    assert events == (
        Opened(status=ResponseStatus.IN_PROGRESS),
        Started(),
        Ended(status=ResponseStatus.CANCELLED),
    )


def test_a_response_ends_once() -> None:
    script = a_script()
    script.end(ResponseStatus.COMPLETED)

    assert script.end(ResponseStatus.FAILED) == ()
    assert script.ended


@given(cut=st.integers(0, 12), batch=st.integers(1, 5))
def test_events_resume_a_script_at_any_of_them(cut: int, batch: int) -> None:
    script = a_script()
    events = [
        *script.queue(),
        *play(
            script,
            Delta(choice=0, text="a"),
            Delta(choice=1, text="b"),
            ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
        ),
    ]
    kept = events[:cut]
    stored = [encode_events(kept[i : i + batch]) for i in range(0, len(kept), batch)]

    resumed = Script.resumed(
        a_response("resp_1"), (event for body in stored for event in decode_events(body))
    )
    rest = resumed.end(ResponseStatus.FAILED)

    whole = [*kept, *rest]
    assert isinstance(whole[0], Opened)
    assert isinstance(whole[-1], Ended)
    text = "".join(event.text for event in kept if isinstance(event, TextAdded))
    output = resumed.response(ResponseStatus.FAILED, 5).output
    assert "".join(item.body["content"][0]["text"] for item in output) == text
    opened = [event.index for event in whole if isinstance(event, ItemOpened)]
    closed = [event.index for event in whole if isinstance(event, ItemClosed)]
    assert sorted(opened) == sorted(closed)


def test_a_response_without_a_log_is_told_from_its_output() -> None:
    script = a_script()
    play(
        script,
        Delta(choice=0, text="Paris"),
        ChoiceEnded(choice=0, finish_reason=FinishReason.STOP),
    )
    script.end(ResponseStatus.COMPLETED)
    response = script.response(ResponseStatus.COMPLETED, 5)

    events = told(response)

    again = Script.resumed(response, events).response(ResponseStatus.COMPLETED, 5)
    assert again.output == response.output
