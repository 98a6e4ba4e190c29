"""Calls of an engine that was held to a schema."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.tools.constrained import CallEvent, ConstrainedReader
from antiphon.tools import CallDelta, CallEnded, CallStarted


def read(pieces: list[str]) -> tuple[list[CallEvent], ConstrainedReader]:
    numbers = itertools.count()
    reader = ConstrainedReader(0, lambda: f"call_{next(numbers)}")
    return [event for piece in pieces for event in reader.feed(piece)], reader


def calls_in(events: list[CallEvent]) -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    for event in events:
        match event:
            case CallStarted(call=call, name=name):
                assert call == len(found)
                found.append((name, "", False))
            case CallDelta(text=text):
                found[-1] = (found[-1][0], found[-1][1] + text, False)
            case CallEnded():
                found[-1] = (*found[-1][:2], True)
    return found


ONE = '{ "name": "f" ,\n "arguments" : {"a": "}\\"{", "b": [{}]} }'


def test_arguments_pass_as_they_come():
    events, reader = read(['{"name": "f", "arg', 'uments": {"a"', ": 1", "}}"])

    assert events == [
        CallStarted(choice=0, call=0, id="call_0", name="f"),
        CallDelta(choice=0, call=0, text='{"a"'),
        CallDelta(choice=0, call=0, text=": 1"),
        CallDelta(choice=0, call=0, text="}"),
        CallEnded(choice=0, call=0),
    ]
    assert (reader.calls, reader.is_cut, reader.rest) == (1, False, "")


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        (ONE, [("f", '{"a": "}\\"{", "b": [{}]}', True)]),
        (f"[{ONE}, {ONE}]", [("f", '{"a": "}\\"{", "b": [{}]}', True)] * 2),
        ('{"name": "f", "arguments": {"a', [("f", '{"a', False)]),
        ('{"name": "f", "argum', []),
        ("", []),
    ],
)
def test_calls_are_found_in_an_object_or_a_list(answer, calls):
    events, reader = read(list(answer))

    assert calls_in(events) == calls
    assert reader.is_cut is any(not whole for *_, whole in calls)


def test_what_an_engine_says_that_knows_no_schemas_is_left_as_it_is():
    events, reader = read(["I can't", " do that."])

    assert events == []
    assert reader.rest == "I can't do that."


def test_arguments_that_are_no_json_after_all_have_no_end():
    events, reader = read(['{"name": "f", "arguments": {a}}'])

    assert calls_in(events) == [("f", "{a}", False)]
    assert reader.is_cut


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('"\\{}[],: né', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=4), _JSON, max_size=3), min_size=1, max_size=3),
    st.lists(st.integers(0, 300)),
    st.sampled_from([None, 1]),
)
def test_arguments_are_whole_and_the_same_however_the_answer_is_cut(given_, cuts, indent):
    answer = json.dumps([{"name": "f", "arguments": each} for each in given_], indent=indent)
    places = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    events, _ = read([answer[a:b] for a, b in itertools.pairwise(places)])

    calls = calls_in(events)
    assert calls == calls_in(read(list(answer))[0])
    assert [json.loads(arguments) for _, arguments, _ in calls] == given_
    assert all(whole for *_, whole in calls)
