"""Server-sent events as bytes come: a pure parser, as the HTML standard describes it."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    name: str
    data: str


class EventParser:
    """Of one stream. Comments, ids and reconnection times are passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that this completes. An event that the stream breaks off in is none."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").decode("utf-8", "replace")
            if text:
                self._field(text)
            elif self._data:
                yield ServerEvent(self._name, "\n".join(self._data))
                self._name, self._data = "", []

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
