import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.policy.normal import Kind, fold, folded, kind_of


@pytest.mark.parametrize(
    "text",
    [
        "ｂａｄ",
        "𝐛𝐚𝐝",
        "𝕓𝕒𝕕",
        "ⓑⓐⓓ",
        "⒝⒜⒟",
        "🅱🅰🅳",
        "🇧🇦🇩",
        "ьаԁ",
        "вад".replace("д", "d"),
        "βαd",
        "b\u0332a\u0308d\u20dd",
        "b\u200ba\u00add\ufe0f",
        "\u202eb\u2066a\U000e0061d",
        "bád",
        "ƀαđ",
        "ʙᴀᴅ",
        "ɓɐɗ",
        "BAD",
        "ΒΑD",
    ],
)
def test_all_that_looks_like_a_letter_is_that_letter(text):
    assert folded(text) == "bad"


@pytest.mark.parametrize(
    ("text", "plain"), [("Ηι", "hi"), ("ﬁ", "fi"), ("ß", "ss"), ("Ⅷ", "viii"), ("½", "1⁄2")]
)
def test_what_looks_like_others_folds_to_them(text, plain):
    assert folded(text) == plain


@pytest.mark.parametrize("text", ["がか", "हिन्दी", "ไทย", "한국어", "你好", "мир"])
def test_letters_of_other_scripts_stay_apart(text):
    others = {folded(each) for each in text}

    assert len(others) == len(set(unicodedata.normalize("NFC", text)))
    assert "" not in others


@settings(deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_a_text_folds_the_same_wherever_it_is_cut(left, right):
    assert folded(left + right) == folded(left) + folded(right)


@settings(deadline=None)
@given(st.characters())
def test_what_is_folded_folds_to_itself(character):
    once = folded(character)

    assert folded(once) == once


def test_a_capital_i_stays_for_it_may_be_an_l():
    assert fold("I") == fold("Ｉ") == "I"


@pytest.mark.parametrize(
    ("character", "kind"),
    [
        ("a", Kind.WORD),
        ("7", Kind.WORD),
        ("ु", Kind.WORD),
        ("中", Kind.APART),
        ("ก", Kind.APART),
        ("_", Kind.SIGN),
        ("😀", Kind.SIGN),
        ("’", Kind.APOSTROPHE),
        ("\u3000", Kind.SPACE),
        ("\n", Kind.SPACE),
    ],
)
def test_kinds_tell_where_words_end(character, kind):
    assert kind_of(character) is kind
