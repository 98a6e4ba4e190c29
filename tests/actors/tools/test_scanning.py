"""Where a JSON value ends."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.tools.scanning import ValueScanner

_JSON = st.recursive(
    st.none() | st.booleans() | st.text('"\\{}[]né', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=4), _JSON) | st.lists(_JSON), st.text('"}]x', max_size=5))
def test_a_value_ends_where_it_ends_whatever_follows_and_however_it_is_cut(value, rest):
    text = json.dumps(value)

    assert ValueScanner().feed(text + rest) == len(text)
    scanner = ValueScanner()
    ends = [scanner.feed(character) for character in text]
    assert ends == [None] * (len(text) - 1) + [1]
