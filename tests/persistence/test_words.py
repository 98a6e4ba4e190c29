"""What a text is found by."""

import pytest

from antiphon.persistence.words import chunk_words, marks, owner, repetitions, terms, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
        ("Ünïcödé", ["unicode"]),
        ("ﬁne ＡＢＣ ①", ["fine", "abc", "1"]),
        ("Straße STRASSE", ["strass", "strass"]),
        (
            "cats stories glass bus is gas this",
            ["cat", "story", "glass", "bus", "is", "gas", "this"],
        ),
        (
            "boxes box caches cache classes dishes sizes",
            ["box", "box", "cach", "cach", "class", "dish", "size"],
        ),
        ("3.14 v2", ["3", "14", "v2"]),
        ("机器学习", ["机器", "器学", "学习"]),
        ("学", ["学"]),
        ("Python是好", ["python", "是好"]),
        ("한국어", ["한국", "국어"]),
        ("हिन्दी", ["हनद"]),
        ("x" * 60, ["x" * 40]),
        ("é" * 60, ["e" * 40]),
        ("", []),
        ("\ue000\ue001 🦊 \0", []),
    ],
)
def test_the_words_of_a_text(text: str, expected: list[str]):
    assert list(words(text)) == expected


def test_a_chunk_knows_what_it_has_and_what_it_has_more_than_once():
    found = chunk_words("The cat and the cats, and a dog.")

    assert found.words == "a and cat dog the"
    assert repetitions(found.repeated) == {"the": 2, "cat": 2, "and": 2}
    assert found.length == 8


def test_the_terms_of_a_question_are_its_words_each_once_and_not_too_many():
    assert terms(["Foxes", "the fox", "dog"], 9) == ("fox", "the", "dog")
    assert terms(["a b c d"], 2) == ("a", "b")


def test_no_two_users_have_the_same_mark():
    assert owner("user_1") != owner("user_2")
    assert marks("user_1").split()[1] == owner("user_1")
    assert not list(words(marks("user_1").split()[0]))
