"""`Accept-Language`, which may hold anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.http.languages import languages_of


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        (None, ()),
        ("", ()),
        ("de", ("de",)),
        ("de-CH, de;q=0.9, en;q=0.5, *;q=0.1", ("de-CH", "de", "en")),
        ("en;q=0.2,fr;q=0.8", ("fr", "en")),
        ("zh-Hant-TW ; q=0.5 , en", ("en", "zh-Hant-TW")),
        ("en;q=0", ()),
        ("en, en;q=0.1, de", ("en", "de")),
        ("x" * 50 + ", en", ("en",)),
        ("<script>, de;q=2, en;q=high, fr", ("fr",)),
    ],
)
def test_the_preferred_one_comes_first_and_nonsense_is_left_out(header, languages):
    assert languages_of(header) == languages


@given(st.text(max_size=5000))
def test_it_is_bounded(header):
    assert len(languages_of(header)) <= 8
