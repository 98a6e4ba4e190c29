"""Text and calls of a model that may choose."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.actors.tools.free import FreeReader
from antiphon.tools import ToolFormat

HERMES, LLAMA, MISTRAL = ToolFormat.HERMES, ToolFormat.LLAMA, ToolFormat.MISTRAL
CALL = '{"name": "f", "arguments": {"a": "</tool_call> \\" } ["}}'


def read(format: ToolFormat, pieces: list[str]) -> tuple[str, list[str], list[bool]]:
    """The text, and what stood where calls are, with whether it was whole."""
    reader = FreeReader(format)
    stretches = [stretch for piece in pieces for stretch in reader.feed(piece)]
    stretches += reader.finish()
    assert sum(stretch.source for stretch in stretches) == sum(map(len, pieces))
    text = "".join(stretch.text for stretch in stretches)
    return text, [body.content for body in reader.bodies], [b.is_whole for b in reader.bodies]


@pytest.mark.parametrize(
    ("format", "answer", "text", "calls"),
    [
        (HERMES, "plain < text", "plain < text", []),
        (HERMES, " \n", " \n", []),
        (HERMES, "ends in <tool_cal", "ends in <tool_cal", []),
        (HERMES, f"Well.\n<tool_call>\n{CALL}\n</tool_call>\n", "Well.", [CALL]),
        (HERMES, f"<tool_call>{CALL}</tool_call> <tool_call>[{CALL}]", "", [CALL, f"[{CALL}]"]),
        (HERMES, f"<tool_call>{CALL}</tool_call> and on", " and on", [CALL]),
        (HERMES, "<tool_call>f(a)</tool_call> and on", " and on", ["f(a)"]),
        (HERMES, CALL, CALL, []),
        (LLAMA, f"{CALL}; {CALL}", "", [CALL, CALL]),
        (LLAMA, f"<|python_tag|>{CALL}", "", [CALL]),
        (LLAMA, '{"a": 1} is JSON', '{"a": 1} is JSON', []),
        (LLAMA, f"I say {CALL}", f"I say {CALL}", []),
        (LLAMA, '{"name": "f", "argu', '{"name": "f", "argu', []),
        (MISTRAL, f"[TOOL_CALLS][{CALL}]", "", [f"[{CALL}]"]),
        (MISTRAL, f"[{CALL}, {CALL}]", "", [f"[{CALL}, {CALL}]"]),
        (MISTRAL, "[1] says it", "[1] says it", []),
        (MISTRAL, f"Well. [TOOL_CALLS] [{CALL}]", "Well.", [f"[{CALL}]"]),
    ],
)
def test_what_is_text_leaves_and_what_is_a_call_is_kept(format, answer, text, calls):
    found, bodies, whole = read(format, [answer])

    assert (found, bodies) == (text, calls)
    assert all(whole)


def test_a_call_without_its_end_is_kept_and_said_to_be_none():
    assert read(HERMES, ['Well. <tool_call>{"name": "f"']) == ("Well.", ['{"name": "f"'], [False])
    assert read(HERMES, ["<tool_call>"]) == ("", [""], [False])


def test_text_leaves_as_soon_as_it_can_be_no_call():
    reader = FreeReader(HERMES)

    assert [each.text for each in reader.feed("a <tool")] == ["a"]
    assert [each.text for each in reader.feed("box> b")] == [" <toolbox> b"]


_PARTS = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<|python_tag|>", "[TOOL_CALLS]", CALL, f"[{CALL}]"),
        *("<", "[", "{", '"', "}", "]", " ", "\n", "\\", ";", "text", "é", "<tool_", "[TOOL"),
    ]
)


@settings(deadline=None)
@given(st.sampled_from(ToolFormat), st.lists(_PARTS, max_size=8), st.lists(st.integers(0, 400)))
def test_the_same_is_found_however_the_answer_is_cut(format, parts, cuts):
    answer = "".join(parts)
    places = sorted({0, len(answer), *(cut for cut in cuts if cut < len(answer))})
    pieces = [answer[a:b] for a, b in pairwise(places)]

    assert read(format, pieces) == read(format, [answer])
    assert read(format, list(answer)) == read(format, [answer])


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text('<>/tool_cal"\\{}[]é', max_size=12),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=8,
    )
)
def test_any_arguments_are_found_whole(value):
    call = json.dumps({"name": "f", "arguments": {"a": value}})

    assert read(HERMES, list(f"x<tool_call>{call}</tool_call>")) == ("x", [call], [True])
    assert read(LLAMA, list(call)) == ("", [call], [True])
    assert read(MISTRAL, list(f"[TOOL_CALLS][{call}]")) == ("", [f"[{call}]"], [True])
