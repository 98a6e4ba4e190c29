"""A process's JSON-lines log as it is written: kept whole, and waited on without polling."""

import json
import threading
from collections.abc import Callable
from typing import IO, Any

Line = dict[str, Any]


class LogTail:
    """Reads a stream to its end in a thread of its own. Lines that aren't JSON are kept as text."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: list[Line] = []
        self._text: list[str] = []
        self._news = threading.Condition(threading.RLock())
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def events(self, name: str) -> list[Line]:
        """Every line of that event so far."""
        with self._news:
            return [line for line in self._lines if line.get("event") == name]

    def wait_for(
        self, name: str, *, within_s: float, matching: Callable[[Line], bool] = lambda _: True
    ) -> Line:
        """The first line of that event that matches, past or future. Raises TimeoutError."""
        found: list[Line] = []

        def look() -> bool:
            found[:] = [line for line in self.events(name) if matching(line)]
            return bool(found)

        with self._news:
            if not self._news.wait_for(look, within_s):
                raise TimeoutError(f"no {name} within {within_s:g} s; the log ends:\n{self.end()}")
        return found[0]

    def text(self) -> str:
        """All of it so far."""
        with self._news:
            return "".join(self._text)

    def end(self) -> str:
        """The last lines, for error messages."""
        return "".join(self._text[-40:])

    def join(self) -> None:
        """Wait for the end of the stream."""
        self._thread.join()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for text in stream:
                line = _parsed(text)
                with self._news:
                    self._text.append(text)
                    if line is not None:
                        self._lines.append(line)
                    self._news.notify_all()


def _parsed(text: str) -> Line | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
