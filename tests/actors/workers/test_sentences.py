"""Where sentences end."""

import time

import pytest

from antiphon.actors.workers.sentences import sentences, statement_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Meyer paid 3.50 at 10 a.m. today.", ["Dr. Meyer paid 3.50 at 10 a.m. today."]),
        ("Ich komme am 3. März. Gut so?", ["Ich komme am 3. März.", "Gut so?"]),
        ("In 2024. Then we left.", ["In 2024.", "Then we left."]),
        ("J. R. R. Tolkien wrote it.", ["J. R. R. Tolkien wrote it."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("¿Qué hora es? Son las dos.", ["¿Qué hora es?", "Son las dos."]),
        ("我住在上海。你呢？", ["我住在上海。", "你呢？"]),
        ("a line\nthat goes on\nNext", ["a line that goes on", "Next"]),
        ("- one\n- two\n", ["one", "two"]),
        ("# Head\n**Bold** [link](http://x.y) `code`", ["Head", "Bold link code"]),
        ("Before\n```python\nx = 1. Y\n```\nAfter", ["Before", "After"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\nDone.", ["Done."]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_a_text_is_taken_apart(text, found):
    assert sentences(text) == found


@pytest.mark.parametrize(
    "text",
    [
        " " * 50_000 + "x",
        "-" * 50_000 + "x",
        "> " * 20_000,
        "**" * 20_000,
        "[" * 20_000,
        "```\n" * 5_000,
        "." * 50_000,
        "a. " * 20_000,
        "| " * 20_000,
    ],
)
def test_no_text_takes_long(text):
    began = time.process_time()

    sentences(text)

    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("sentence", "statement"),
    [
        ("I live in Graz.", "I live in Graz."),
        ("I'm allergic to peanuts, what can I cook?", "I'm allergic to peanuts."),
        ("My name is Ada and can you help me?", "My name is Ada."),
        ("Ich wohne in Wien, kannst du mir ein Café nennen?", "Ich wohne in Wien."),
        ("What is my name?", None),
        ("And what is that?", None),
    ],
)
def test_of_a_question_only_what_it_says_is_a_statement(sentence, statement):
    assert statement_of(sentence) == statement
