"""Which answers of a model are titles, and what stands in for one."""

import pytest

from antiphon.actors.workers import titles
from antiphon.actors.workers.lines import Line, Speaker

EXCHANGE = (
    Line(speaker=Speaker.USER, text="How do I sort a list of numbers in Python?"),
    Line(speaker=Speaker.ASSISTANT, text="Call sorted(), which returns a new list."),
)
GERMAN = (
    Line(speaker=Speaker.USER, text="Wie kann ich mit meinen Kindern in Norwegen wandern?"),
    Line(speaker=Speaker.ASSISTANT, text="Es gibt dort viele leichte Wege für Kinder."),
)
RUSSIAN = (
    Line(speaker=Speaker.USER, text="Как приготовить борщ со свёклой?"),
    Line(speaker=Speaker.ASSISTANT, text="Сначала сварите бульон."),
)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Sorting Lists in Python", "Sorting Lists in Python"),
        ('"Sorting a list in Python."', "Sorting a list in Python"),
        ("Title: Python list sorting\n\nThis title…", "Python list sorting"),
        ("**Sorting numbers**", "Sorting numbers"),
        ("Here's a title: Sorting numbers\nmore", "Sorting numbers"),
        ("\n\nSorting numbers\n", "Sorting numbers"),
    ],
)
def test_a_title_is_taken_without_what_is_around_it(answer, title):
    assert titles.checked(answer, EXCHANGE, is_cut=False) == title


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   \n ",
        "S",
        "Sorting " * 12,
        "Sort a list of the numbers that you have in a good way",
        "I'm sorry, but I can't help with sorting.",
        "A short title of three to six words for sorting",
        "User: How do I sort a list",
        "Sorting in 3 Python steps",
        "The Wonders of the Deep Sea",
        "Ich möchte wissen, wie Python Listen und Zahlen sortiert",
        "Сортировка Python",
        'Sorting "lists',
        "See https://python.org list",
        "return a new",
    ],
)
def test_what_is_no_title_of_this_conversation_is_none(answer):
    assert titles.checked(answer, EXCHANGE, is_cut=False) is None


def test_a_title_that_would_have_gone_on_is_none():
    answer = "Sorting lists in Python is"

    assert titles.checked(answer, EXCHANGE, is_cut=True) is None
    assert titles.checked(f"Sorting lists\n\n{answer}", EXCHANGE, is_cut=True) == "Sorting lists"


def test_a_title_is_in_the_language_of_the_conversation():
    assert titles.checked("Wandern in Norwegen", GERMAN, is_cut=False) == "Wandern in Norwegen"
    assert titles.checked("Борщ со свёклой", RUSSIAN, is_cut=False) == "Борщ со свёклой"
    assert titles.checked("Norwegen: how do I do that with the kids", GERMAN, is_cut=False) is None
    assert titles.checked("Borscht", RUSSIAN, is_cut=False) is None


def test_a_model_is_shown_the_first_exchange_and_not_all_of_it():
    later = Line(speaker=Speaker.USER, text="And strings?")
    long = Line(speaker=Speaker.USER, text="word " * 1000)

    [message] = titles.messages([long, EXCHANGE[1], later])

    assert message.content.startswith(titles.INSTRUCTION)
    assert "Assistant: Call sorted()" in message.content
    assert "strings" not in message.content
    assert len(message.content) < 1500


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("How do I sort a list of numbers in Python?", "Sort a list of numbers in Python"),
        ("Hi there! Can you please tell me about the Eiffel Tower?", "The Eiffel Tower"),
        ("hello", "Hello"),
        ("Hello! Write a poem.", "Write a poem"),
        (
            "Ich möchte wissen, wie man einen guten Sauerteig ansetzt, ohne dass er schimmelt.",
            "Wissen, wie man einen guten Sauerteig ansetzt",
        ),
        ("Pouvez-vous me traduire cette lettre ?", "Traduire cette lettre"),
        ("¿Qué es la fotosíntesis?", "La fotosíntesis"),
        ("你好！请告诉我东京有什么好吃的拉面店，预算三千日元", "请告诉我东京有什么好吃的拉面店"),
        ("https://example.org/a?b=c summarise this page", "Summarise this page"),
        (
            "I'm planning a trip to Norway in July with my two kids.",
            "I'm planning a trip to Norway in July",
        ),
    ],
)
def test_what_stands_in_is_what_the_user_wants(said, title):
    assert titles.extracted([Line(speaker=Speaker.USER, text=said)]) == title


@pytest.mark.parametrize("said", ["", "?", "😀", "...", "```\ncode\n```"])
def test_nothing_stands_in_for_the_title_of_nothing(said):
    assert titles.extracted([Line(speaker=Speaker.USER, text=said)]) is None


@pytest.mark.parametrize("said", ["x" * 500, "word " * 500, "好" * 500, "a, " * 200])
def test_what_stands_in_is_short(said):
    found = titles.extracted([Line(speaker=Speaker.USER, text=said)])

    assert found is not None
    assert 2 <= len(found) <= titles.LONGEST


def test_a_first_message_without_words_is_passed_over():
    lines = [
        Line(speaker=Speaker.USER, text="👋"),
        Line(speaker=Speaker.USER, text="Tell me of Rome"),
    ]

    assert titles.extracted(lines) == "Rome"
