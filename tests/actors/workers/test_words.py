"""Words, scripts and languages."""

import pytest

from antiphon.actors.workers.facts import facts, names, numbers
from antiphon.actors.workers.words import (
    estimate_tokens,
    is_unspaced,
    language,
    scripts,
    terms,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I would like to know what the weather is like", "en"),
        ("Ich möchte wissen, wie das Wetter in der Stadt ist", "de"),
        ("Je voudrais savoir quel temps il fait dans la ville", "fr"),
        ("Quiero saber qué tiempo hace en la ciudad y por qué", "es"),
        ("Vorrei sapere che tempo fa nella città e perché non è bello", "it"),
        ("Ik wil graag weten hoe het weer in de stad is", "nl"),
        ("Berlin", None),
        ("", None),
        ("今日の天気は", None),
    ],
)
def test_a_language_is_told_by_its_common_words(text, expected):
    assert language(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", {"LATIN"}),
        ("привет", {"CYRILLIC"}),
        ("日本語のテスト", {"CJK"}),
        ("ภาษาไทย", {"THAI"}),
        ("Der Name 东 is quoted in a long sentence", {"LATIN"}),
        ("123 !?", set()),
    ],
)
def test_scripts_are_those_of_a_fair_part_of_the_letters(text, expected):
    assert scripts(text) == expected


def test_terms_are_what_a_text_is_about():
    assert list(terms("What is the Capital of France?")) == ["capital", "france"]
    assert list(terms("东京塔")) == ["东京", "京塔"]
    assert is_unspaced("东京塔")
    assert not is_unspaced("tower")


def test_tokens_are_estimated_by_script():
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcdefgh") == 2
    assert estimate_tokens("东京塔") == 3
    assert estimate_tokens("äöü") == 2


def test_numbers_are_compared_without_what_groups_them():
    assert numbers("1,200 people at 14:30 on 2024-05-01, 3.5 km") == {
        "1200",
        "14:30",
        "2024-05-01",
        "3.5",
    }


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Yesterday I met Anna in Graz.", {"anna", "graz"}),
        ("New York is big.", {"new", "york"}),
        ("Please tell me more.", set()),
        ("NATO and the B12 form", {"nato", "b12"}),
        ("My sister's name is Petra", {"petra"}),
        ("Write to ada@example.org", {"ada@example.org"}),
    ],
)
def test_names_are_capitals_that_their_place_does_not_explain(sentence, found):
    assert names([sentence]) == found


def test_facts_are_both():
    assert facts(["We meet Petra at 9."]) == {"petra", "9"}
