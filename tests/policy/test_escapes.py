import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.policy.escapes import Escape, Reading, at_end, read_escape


def read(text: str) -> Escape:
    """What a text is, when it is looked at after every character."""
    for length in range(1, len(text)):
        assert read_escape(text[:length]).reading is Reading.MORE, text[:length]
    return read_escape(text)


@pytest.mark.parametrize(
    ("text", "character"),
    [
        (r"\u0062", "b"),
        (r"\\u0062", "b"),
        (r"\ud835\udc1b", "\U0001d41b"),
        (r"\\ud835\\uDC1B", "\U0001d41b"),
        (r"\x62", "b"),
        (r"\u{1d41b}", "\U0001d41b"),
        (r"\U0001d41b", "\U0001d41b"),
        ("%62", "b"),
        ("%u0062", "b"),
        ("%c3%A9", "é"),
        ("%f0%9f%98%80", "\U0001f600"),
        ("&#98;", "b"),
        ("&#x62;", "b"),
        ("&bopf;", "\U0001d553"),
        ("&shy;", "\u00ad"),
    ],
)
def test_an_escape_is_read_to_its_end(text, character):
    assert read(text) == Escape(Reading.WHOLE, character)


@pytest.mark.parametrize(
    "text",
    [
        r"\d",
        r"\u00g",
        r"\ud835x",
        "\\" * 5,
        "%g",
        "%6 ",
        "%c3b",
        "%e2%6",
        "%8",
        "& ",
        "&amp ",
        "&#;",
    ],
)
def test_what_is_none_is_known_at_once(text):
    assert read(text).reading is Reading.NONE


@pytest.mark.parametrize("text", ["%c0%af", "%ed%a0%80", "&#99999999;", r"\u{110000}"])
def test_what_stands_for_no_character_is_none(text):
    assert read_escape(text).reading is Reading.NONE


def test_a_number_ends_where_no_digit_follows():
    assert read("&#98x") == Escape(Reading.SHORT, "b")
    assert at_end("&#98") == Escape(Reading.WHOLE, "b")
    assert at_end(r"\u00").reading is Reading.NONE


@pytest.mark.parametrize("text", [r"\n", r"\\t"])
def test_what_may_be_a_path_too_is_read_both_ways(text):
    assert read(text).reading is Reading.EITHER


@given(st.characters(exclude_categories=["Cs"]))
def test_all_that_json_escapes_is_read_back(character):
    text = json.dumps(character)[1:-1]

    if text.startswith("\\u"):
        assert read(text) == Escape(Reading.WHOLE, character)
