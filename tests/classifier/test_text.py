"""Texts made plain for the classifier."""

import time

import pytest

from antiphon.classifier.text import LONGEST, cleaned, sentences, spread, statements


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Good Morning", "good morning"),
        ("w e a t h e r today", "weather today"),
        ("I l i k e it", "i like it"),
        ("w.e.a.t.h.e.r", "weather"),
        ("w34ther f0recast", "weather forecast"),
        ("ＷＥＡＴＨＥＲ", "weather"),
        ("wea\u200bther", "weather"),
        ("wеаthеr", "weather"),  # three of its letters are Cyrillic
        ("wéather", "weather"),
        ("sunnnnnnny", "sunnny"),
    ],
)
def test_a_disguise_is_undone(written, meant):
    assert cleaned(written) == meant


@pytest.mark.parametrize(
    "text", ["at 10am on 555 1234", "a b", "room 4b, 2nd floor", "wow!!", "mp3 player", "e.g. this"]
)
def test_ordinary_text_stays_as_it_is(text):
    assert cleaned(text) == text


def test_punctuation_becomes_words():
    assert spread('"no", he said.') == '" no " , he said .'


def test_a_text_is_cut_into_sentences_and_lines():
    assert list(sentences("One. Two!  Three?\nFour | Five")) == [
        "One.",
        "Two!",
        "Three?",
        "Four",
        "Five",
    ]
    assert list(sentences("  \n ")) == []
    assert max(map(len, sentences("word " * 1000))) <= 400
    assert "".join(sentences("x" * 1000)) == "x" * 1000


def test_a_short_sentence_is_read_together_with_the_next():
    long = "This sentence is long enough to be looked at alone."

    assert list(statements(f"Hi. {long} {long}")) == [f"Hi. {long}", long]
    assert list(statements("")) == [""]


@pytest.mark.parametrize(
    "text",
    [
        "a " * 500_000,
        "4a" * 500_000,
        "a.b" * 300_000,
        "!" * 10**6,
        "\ud800" * 10,
        "é\u0301" * 10**5,
    ],
    ids=["spaced", "leet", "dots", "marks", "surrogates", "accents"],
)
def test_a_hostile_text_costs_little(text):
    began = time.process_time()

    found = cleaned(text)

    assert time.process_time() - began < 2
    assert len(found) <= 2 * LONGEST
