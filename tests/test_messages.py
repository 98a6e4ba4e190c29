"""From items to what a model reads."""

import pytest

from antiphon.errors import InvalidRequest
from antiphon.events import Message
from antiphon.ids import ItemId
from antiphon.messages import PLACEHOLDER, WITHHELD, message_of, messages_of, shown
from antiphon.records import Item


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
        item(type="function_call", role=None),
        item(role="robot", content="hi"),
        item(content=[{"type": "input_image", "image_url": "x"}]),
        item(content=[{"type": "input_file", "file_id": "file-1"}]),
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
