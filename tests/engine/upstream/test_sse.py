"""Event streams as servers really write them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.upstream.sse import Event, SseDecoder
from antiphon.engine.upstream.trouble import Kind, Trouble

STREAM = (
    b': ping\r\n\r\ndata: {"a": 1}\r\n\r\n'
    b'id: 7\nevent: error\ndata: {"b":\ndata: 2}\n\n'
    b'data:no space\n\nerror: {"code": 500}\n\ndata: \xc3\xa9\xf0\x9f\x98\x80\n\ndata: [DONE]'
)
EVENTS = [
    Event('{"a": 1}'),
    Event('{"b":\n2}', is_error=True),
    Event("no space"),
    Event('{"code": 500}', is_error=True),
    Event("é😀"),
    Event("[DONE]"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_however_the_bytes_are_cut(cuts):
    decoder = SseDecoder()
    edges = [0, *sorted(cuts), len(STREAM)]

    events = [event for start, end in pairwise(edges) for event in decoder.feed(STREAM[start:end])]

    assert events + decoder.finish() == EVENTS


def test_a_comment_is_no_event():
    decoder = SseDecoder()

    assert decoder.feed(b": keep-alive\n\n: again\n\n") == []
    assert decoder.finish() == []


def test_bytes_that_are_no_text_are_replaced():
    assert SseDecoder().feed(b"data: a\xffb\n\n") == [Event("a\ufffdb")]


@pytest.mark.parametrize("line", [b"data: ", b"data: x\ndata: "])
def test_an_event_without_end_is_given_up(line):
    decoder = SseDecoder()

    decoder.feed(line + b"x" * 5_000_000)
    with pytest.raises(Trouble) as caught:
        decoder.feed(b"x" * 5_000_000)

    assert caught.value.kind is Kind.BROKEN
