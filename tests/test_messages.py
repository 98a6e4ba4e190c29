"""From items to what a model reads."""

import pytest

from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.ids import ItemId
from antiphon.messages import (
    PLACEHOLDER,
    WITHHELD,
    check_results,
    message_of,
    messages_of,
    shown,
)
from antiphon.records import Item
from antiphon.tools import ToolCall


def item(*, type: str = "message", role: str | None = "user", **body) -> Item:
    return Item(id=ItemId("msg_1"), type=type, role=role, body=body, created_ms=1)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb"),
        ([{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}], "a"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([], ""),
    ],
)
def test_text_is_read_wherever_it_stands(content, text):
    assert message_of(item(content=content)) == Message(role="user", content=text)


def test_the_name_of_a_speaker_is_kept():
    assert message_of(item(content="hi", name="ada")).name == "ada"


def test_the_role_may_stand_in_the_body_alone():
    alone = Item(
        id=ItemId("msg_1"), type="message", body={"role": "system", "content": "hi"}, created_ms=1
    )

    assert message_of(alone) == Message(role="system", content="hi")


def test_reasoning_is_not_shown_again():
    assert messages_of([item(type="reasoning", role=None, summary=[]), item(content="hi")]) == (
        Message(role="user", content="hi"),
    )


@pytest.mark.parametrize(
    "unreadable",
    [
        item(type="custom_tool_call", role=None),
        item(role="robot", content="hi"),
        item(content=[{"type": "input_image", "image_url": "x"}]),
        item(content=[{}]),
    ],
    ids=str,
)
def test_what_no_model_can_read_is_refused_and_not_left_out(unreadable):
    with pytest.raises(InvalidRequest) as caught:
        message_of(unreadable)

    assert caught.value.param == "input"
    assert "msg_1" in str(caught.value)


def test_what_was_blocked_has_a_placeholder_and_what_is_said_of_it_is_read():
    blocked = item(content="a bomb")
    refusal = Item(
        id=ItemId("msg_2"),
        type="message",
        role="assistant",
        body={"content": [{"type": "refusal", "refusal": "No."}], WITHHELD: ["msg_1"]},
        created_ms=2,
        status="incomplete",
    )

    assert messages_of((blocked, refusal)) == (
        Message(role="user", content=PLACEHOLDER),
        Message(role="assistant", content="No."),
    )
    assert shown((blocked,)) == ((blocked.id, Message(role="user", content="a bomb")),)


def an_item(kind: str, id: str = "fc_1", **body) -> Item:
    return Item(id=ItemId(id), type=kind, body={"type": kind, **body}, created_ms=1)


CALL = an_item("function_call", call_id="c", name="f", arguments='{"a": 1}')
RESULT = an_item("function_call_output", "fco_1", call_id="c", output="18")


def test_calls_and_results_are_messages_of_their_own():
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    long = an_item("function_call_output", "fco_2", call_id="c", output=parts)

    assert messages_of([CALL, RESULT, long]) == (
        Message(
            role="assistant", content="", call=ToolCall(id="c", name="f", arguments='{"a": 1}')
        ),
        Message(role="tool", content="18", call_id="c"),
        Message(role="tool", content="a\nb", call_id="c"),
    )


def test_a_result_that_no_model_can_read_is_refused():
    image = an_item("function_call_output", call_id="c", output=[{"type": "input_image"}])

    with pytest.raises(InvalidRequest):
        messages_of([image])


def test_the_calls_of_a_kept_chats_message_follow_what_it_says():
    calls = [{"call_id": "c", "name": "f", "arguments": "{}"}]
    said = item(role="assistant", content="Hm.", tool_calls=calls)
    silent = item(role="assistant", content=[{"type": "output_text", "text": ""}], tool_calls=calls)
    call = Message(role="assistant", content="", call=ToolCall(id="c", name="f", arguments="{}"))

    assert messages_of([said]) == (Message(role="assistant", content="Hm."), call)
    assert messages_of([silent]) == (call,)


def test_of_a_call_that_was_blocked_only_that_it_was_made_is_shown():
    refusal = item(type="message", role="assistant", content=[], **{WITHHELD: ["fc_1", "fco_1"]})

    call, result = messages_of([CALL, RESULT, refusal])[:2]

    assert call.call == ToolCall(id="c", name="f", arguments="{}")
    assert (result.content, result.call_id) == (PLACEHOLDER, "c")


def test_a_result_is_of_a_call_that_came_before_it():
    check_results([], [CALL, RESULT])
    check_results([CALL], [RESULT])
    check_results([RESULT], [item(content="what was kept is not gone into")])
    for context, given in (([], [RESULT]), ([], [RESULT, CALL])):
        with pytest.raises(InvalidRequest) as caught:
            check_results(context, given)
        message = "No tool call found for function call output with call_id c."
        assert (str(caught.value), caught.value.param) == (message, "input")
