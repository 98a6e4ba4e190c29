"""System prompts as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import InvalidRequest
from antiphon.prompts import (
    LONGEST_FILLED,
    filled,
    is_prompt_name,
    variables_of,
    version_number,
)


@pytest.mark.parametrize("name", ["guide", "Guide-2", "a", "team.support_v1", "9"])
def test_names_are_words(name):
    assert is_prompt_name(name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a@1", "a/b", "é", "a" * 65, "a\n"])
def test_what_else_is_no_name(name):
    assert not is_prompt_name(name)


def test_a_version_is_a_number_from_one_on():
    assert version_number("12") == 12
    for text in ("", "0", "-1", "1.0", "v1", "01", "1 ", "٣", "9" * 10):
        assert version_number(text) is None


def test_variables_are_names_in_double_braces():
    text = "{{city}} {{ name }} {{city}} {x} {{1a}} {{ a b }} {{}} { {a} } {{a.b}}"

    assert variables_of(text) == ("city", "name")


def test_each_place_gets_its_value():
    assert filled("{{ a }}-{{b}}-{{a}}", {"a": "1", "b": "2"}) == "1-2-1"


def test_a_value_is_not_looked_through_for_variables():
    assert filled("{{a}} {{b}}", {"a": "{{b}}", "b": r"\1 {{a}}"}) == r"{{b}} \1 {{a}}"


@given(st.text(max_size=30), st.text(max_size=30))
def test_values_come_in_as_they_are(one, other):
    assert filled("<{{a}}|{{b}}>", {"a": one, "b": other}) == f"<{one}|{other}>"


def test_a_variable_without_a_value_is_named():
    with pytest.raises(InvalidRequest) as caught:
        filled("{{city}} {{name}}", {"name": "x"})

    assert "'city'" in str(caught.value)
    assert "name" not in caught.value.message
    assert (caught.value.param, caught.value.code) == (
        "prompt.variables",
        "missing_prompt_variable",
    )


def test_a_value_without_a_variable_is_named():
    with pytest.raises(InvalidRequest) as caught:
        filled("{{city}}", {"city": "x", "town": "y"})

    assert "'town'" in str(caught.value)
    assert caught.value.code == "unknown_prompt_variable"


def test_of_many_unknown_ones_a_few_are_named():
    with pytest.raises(InvalidRequest) as caught:
        filled("", {f"v{number:04}": "x" for number in range(5000)})

    assert "and 4990 more" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_long_value_in_many_places_is_refused_before_it_is_written_out():
    with pytest.raises(InvalidRequest) as caught:
        filled("{{a}}" * 10_000, {"a": "x" * 1_000_000})

    assert str(LONGEST_FILLED) in str(caught.value)


def test_braces_without_an_end_cost_no_time():
    assert variables_of("{{" + " \t" * 50_000 + "{{" * 25_000) == ()
