"""A program at a terminal of its own, typed at and read as a person would: a pseudo-terminal whose
output is kept, with and without what moves the cursor."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_CONTROL = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\[\(][0-9;?<>=]*[ -/]*[@-~AB0]|\x1b[=>78M]"
)
_ASKS_FOR_CURSOR = b"\x1b[6n"
_ASKS_FOR_INPUT = b"\x1b[?2004h"
_PATIENCE_S = 60.0


@dataclass(slots=True)
class Terminal:
    """`shown` is all that came, without control sequences."""

    process: "subprocess.Popen[bytes]"
    master: int
    raw: bytes = b""
    _seen: int = 0
    _asked: int = 0

    @property
    def shown(self) -> str:
        return _CONTROL.sub(b"", self.raw).replace(b"\r\n", b"\n").decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def prompted(self) -> None:
        """Wait until it asks for input once more: before that, the terminal itself would read what
        is typed."""
        while self.raw.find(_ASKS_FOR_INPUT, self._asked) < 0:
            if not self._read(_PATIENCE_S):
                raise AssertionError(f"nothing is asked for in:\n{self.shown}")
        self._asked = self.raw.index(_ASKS_FOR_INPUT, self._asked) + 1

    def say(self, text: str) -> None:
        """Type a line once it is asked for."""
        self.prompted()
        self.type(text + "\r")

    def expect(self, text: str, *, within_s: float = _PATIENCE_S) -> str:
        """Wait until that is shown after what was expected last; what came up to its end. Raises
        AssertionError with the screen."""
        give_up_at = time.monotonic() + within_s
        while (place := self.shown.find(text, self._seen)) < 0:
            left = give_up_at - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"no {text!r} in:\n{self.shown}")
        since, self._seen = self._seen, place + len(text)
        return self.shown[since : self._seen]

    def ended(self, *, within_s: float = _PATIENCE_S) -> int:
        """Its status, once it has ended."""
        give_up_at = time.monotonic() + within_s
        while self._read(give_up_at - time.monotonic()):
            pass
        return self.process.wait(max(0.1, give_up_at - time.monotonic()))

    def _read(self, within_s: float) -> bool:
        """False at the end, or when nothing comes."""
        if not select.select([self.master], [], [], max(0.0, within_s))[0]:
            return False
        try:
            data = os.read(self.master, 65_536)
        except OSError:  # Linux says so when the last process is gone
            return False
        self.raw += data
        # A terminal answers where its cursor is: here, always in the last of 24 lines.
        for _ in range(data.count(_ASKS_FOR_CURSOR)):
            os.write(self.master, b"\x1b[24;1R")
        return bool(data)


@contextlib.contextmanager
def at_a_terminal(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    size: tuple[int, int] = (24, 80),
) -> Iterator[Terminal]:
    """`python -m antiphon` with these arguments; it is killed if it has not ended by then."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": "", **environment},
        start_new_session=True,
        # Ctrl-C reaches whoever has the terminal as its controlling one.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
