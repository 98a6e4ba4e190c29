"""What workers read of items."""

from dataclasses import replace

from antiphon.actors.workers.lines import LONGEST, Speaker, lines_of, tokens_of, whole
from antiphon.testing.work_store import an_item

ASKED = an_item("1", "user", "Hello?")
SAID = an_item("2", "assistant", "Hi.")


def test_lines_are_what_users_and_models_have_said():
    call = replace(an_item("3", "assistant", ""), type="function_call", body={"name": "f"})
    system = an_item("4", "system", "Be nice.")
    image = replace(an_item("5", "user", ""), body={"content": [{"type": "input_image"}]})

    lines = lines_of([ASKED, call, system, image, SAID])

    assert [(line.speaker, line.text, line.item) for line in lines] == [
        (Speaker.USER, "Hello?", "1"),
        (Speaker.ASSISTANT, "Hi.", "2"),
    ]


def test_what_the_policy_withheld_was_never_said():
    refusal = an_item("3", "assistant", "", withheld=["1"])

    assert [line.item for line in lines_of([ASKED, SAID, refusal])] == ["2"]


def test_tokens_are_as_they_were_counted_else_as_they_are_estimated():
    assert tokens_of(replace(ASKED, tokens=7)) == 7
    assert tokens_of(ASKED) == 2


def test_no_more_is_read_of_an_item_than_is_said_in_conversations():
    assert len(lines_of([an_item("1", "user", "x" * 3 * LONGEST)])[0].text) == LONGEST


def test_a_turn_without_an_answer_at_the_end_is_left_out():
    again = an_item("3", "user", "And?")

    assert whole([ASKED, SAID, again]) == [ASKED, SAID]
    assert whole([again]) == []
    assert whole([again, ASKED, SAID, again]) == [again, ASKED, SAID]
