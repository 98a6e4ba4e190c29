"""Server-sent events out of a stream of bytes, however it is cut. Pure.

Lenient where servers differ: any line ending, several data lines, comments, a last event without
its empty line, and `error: {…}` lines as llama-server once wrote them.
"""

from dataclasses import dataclass

from antiphon.engine.upstream.trouble import Kind, Trouble

_LONGEST_EVENT = 8 * 1024 * 1024
"""A token with twenty alternatives is a few kilobytes; without a bound one line eats the memory."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its data, and whether its name or its field says that it is an error."""

    data: str
    is_error: bool = False


class SseDecoder:
    """One stream. Raises Trouble for an event without end."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []
        self._size = 0
        self._is_error = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest
        events: list[Event] = []
        for line in lines:
            self._line(line.removesuffix(b"\r"), events)
        self._check(len(rest))
        return events

    def finish(self) -> list[Event]:
        """What the end of the stream completes."""
        events: list[Event] = []
        if self._rest:
            self._line(self._rest.removesuffix(b"\r"), events)
            self._rest = b""
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event("\n".join(self._data), self._is_error))
            self._data, self._size, self._is_error = [], 0, False
            return
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        match name:
            case b"data":
                self._data.append(text)
                self._size += len(value)
                self._check(0)
            case b"error":
                self._data.append(text)
                self._is_error = True
            case b"event":
                self._is_error = text.strip() == "error"
            case _:  # id, retry, comments
                pass

    def _check(self, more: int) -> None:
        if self._size + more > _LONGEST_EVENT:
            raise Trouble(Kind.BROKEN, "an event without end")
