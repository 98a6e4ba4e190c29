"""What is searched for when somebody asks in the middle of a conversation."""

import pytest

from antiphon.actors.files.asking import leans, searched_for

BEFORE = ("When was the old lighthouse on the northern cape built?", "Tell me about harbours.")


@pytest.mark.parametrize(
    "question",
    [
        "And what did it cost?",
        "What did its builders have to live without for so many years?",
        "Who lives there now, and what do people say of them in town?",
        "What about the keeper who came to the cape after the war?",
        "And the keepers of the harbour lights in the southern bay?",
        "Why?",
        "Was hat er gekostet?",
        "What\u2019s its name, according to those who have seen the plans?",
    ],
)
def test_a_question_that_leans_on_what_was_said_is_searched_for_with_it(question: str):
    assert leans(question)
    assert searched_for(question, BEFORE) == (question, f"{question}\n{BEFORE[0]}")
    assert searched_for(question, ()) == (question,)


@pytest.mark.parametrize(
    "question",
    [
        "Which materials were used for the roof of the town hall?",
        "How many people visit the Viktor Wynd Museum every year?",
        "Android phones need which charger in the office building?",
        "What does President Biden say of those who want to cut his budget?",
    ],
)
def test_one_that_stands_by_itself_is_searched_for_as_it_is(question: str):
    assert not leans(question)
    assert searched_for(question, BEFORE) == (question,)


def test_where_nothing_is_asked_nothing_is_searched_for():
    assert searched_for(" ", BEFORE) == (" ",)


def test_it_goes_back_to_what_stands_by_itself_and_no_further_than_two_messages():
    before = ("And its height?", "How old is the lighthouse on the northern cape?", "Hello there!")

    assert searched_for("Why?", before) == ("Why?", "\n".join(("Why?", *before[:2])))
    assert searched_for("Why?", ("So?", "Why?", BEFORE[0]))[1] == "Why?\nSo?\nWhy?"


def test_of_a_long_message_before_it_only_the_beginning_counts():
    _, searched = searched_for("And it?", ("x" * 10_000,))

    assert len(searched) < 500
