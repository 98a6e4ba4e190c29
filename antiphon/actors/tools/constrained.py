"""An answer that an engine was held to be nothing but calls: each call's arguments as they come.
Pure; the same however the answer is cut."""

import re
from collections.abc import Callable

from antiphon.actors.tools.reading import MalformedCall, decoded
from antiphon.actors.tools.scanning import ValueScanner
from antiphon.tools import CallDelta, CallEnded, CallStarted

CallEvent = CallStarted | CallDelta | CallEnded

_HEAD = re.compile(
    r'[\s\[\],}]*\{\s*"name"\s*:\s*"(?P<name>[^"\\]+)"\s*,\s*"arguments"\s*:\s*(?=\{)'
)
"""Up to a call's arguments: the schema has the name before them."""


class ConstrainedReader:
    """One choice's answer; `new_id` makes the calls' ids."""

    def __init__(self, choice: int, new_id: Callable[[], str]) -> None:
        self.calls = 0
        """That are whole."""
        self._choice = choice
        self._new_id = new_id
        self._begun = 0
        self._buffer = self._arguments = ""
        self._scanner: ValueScanner | None = None

    def feed(self, text: str) -> list[CallEvent]:
        """The next piece."""
        self._buffer += text
        events: list[CallEvent] = []
        while self._step(events):
            pass
        return events

    @property
    def is_cut(self) -> bool:
        """Whether it is in the middle of a call."""
        return self._begun > self.calls

    @property
    def rest(self) -> str:
        """What was written instead, where there was no call: an engine that knows no schemas."""
        return "" if self._begun else self._buffer

    def _step(self, events: list[CallEvent]) -> bool:
        if self._scanner is None:
            return self._head(events)
        end = self._scanner.feed(self._buffer)
        size = len(self._buffer) if end is None else end
        text, self._buffer = self._buffer[:size], self._buffer[size:]
        if text:
            self._arguments += text
            events.append(CallDelta(choice=self._choice, call=self._begun - 1, text=text))
        if end is None:
            return False
        self._scanner = None
        try:
            decoded(self._arguments)
        except MalformedCall:
            return False  # it stays cut
        self.calls += 1
        events.append(CallEnded(choice=self._choice, call=self._begun - 1))
        return True

    def _head(self, events: list[CallEvent]) -> bool:
        found = None if self.is_cut else _HEAD.match(self._buffer)
        if found is None:
            return False
        self._buffer = self._buffer[found.end() :]
        self._arguments = ""
        self._scanner = ValueScanner()
        started = CallStarted(
            choice=self._choice, call=self._begun, id=self._new_id(), name=found["name"]
        )
        self._begun += 1
        events.append(started)
        return True
