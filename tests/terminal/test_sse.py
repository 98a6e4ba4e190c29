"""Server-sent events, as bytes come."""

import pytest

from antiphon.terminal.sse import EventParser, ServerEvent

STREAM = (
    b": keep-alive\n\n"
    b'event: response.created\ndata: {"a": 1}\n\n'
    b"data: first\ndata:second\n\n"
    b"id: 7\nretry: 5\n\n"
    b"data: \xc3\xa4\r\n\r\n"
    b"data: cut off"
)
EVENTS = [
    ServerEvent("response.created", '{"a": 1}'),
    ServerEvent("", "first\nsecond"),
    ServerEvent("", "ä"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_they_are_cut(size: int):
    parser = EventParser()

    events = [
        event
        for start in range(0, len(STREAM), size)
        for event in parser.feed(STREAM[start : start + size])
    ]

    assert events == EVENTS
