"""Judges JSON schemas before they come near the pipeline, in a process that may be killed for it.

Some schemas make the grammar compiler throw, and some make it eat all memory for minutes: a nest of
a few thousand levels, 70 kB long, does. Verdicts are remembered by the schema's text.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from antiphon.engine.openvino.checker import Answer

log = structlog.get_logger(__name__)

CODE = "invalid_schema"
MAX_SCHEMA_BYTES = 200_000
"""OpenAI allows 120,000 characters of names and values; it must also fit the pipe whole."""

_PIPE_BYTES = 1024 * 1024
_REMEMBERED = 1_024
_START_S = 15.0
"""The checker imports the library and reads the tokenizer first, on a machine that may be busy."""
_CHECK_S = 3.0
"""The pipeline will compile the same schema in a step of its own, and everybody waits for it."""


@dataclass(frozen=True, slots=True)
class SchemaVerdict:
    """`problem` None: the pipeline will take this schema."""

    problem: str | None
    code: str = CODE


class SchemaGate:
    """One checker process, started by the first schema that needs it; one schema at a time."""

    def __init__(self, model_dir: Path, vocabulary: int) -> None:
        self._command = [
            *(sys.executable, "-m", "antiphon.engine.openvino.checker"),
            *("--model-dir", str(model_dir), "--vocabulary", str(vocabulary)),
        ]
        self._verdicts: OrderedDict[str, SchemaVerdict] = OrderedDict()
        self._failures: dict[str, SchemaVerdict] = {}
        """What could not be checked; told to those who ask before the next `settle`, then
        forgotten."""
        self._waiting: deque[str] = deque()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = False
        """The running checker has said that it is ready."""
        self._current: str | None = None
        self._deadline = 0.0
        self._answer = b""

    @property
    def descriptors(self) -> Sequence[int]:
        process = self._process
        return (process.stdout.fileno(),) if process is not None and process.stdout else ()

    def verdict(self, schema: str) -> SchemaVerdict | None:
        """What is known; None while the checker is at it, which then has been asked."""
        if (known := self._verdicts.get(schema)) is not None:
            self._verdicts.move_to_end(schema)
            return known
        if (failure := self._failures.get(schema)) is not None:
            return failure
        if len(schema.encode("utf-8", "surrogatepass")) > MAX_SCHEMA_BYTES:
            return SchemaVerdict(f"the schema is longer than {MAX_SCHEMA_BYTES} bytes")
        if schema != self._current and schema not in self._waiting:
            self._waiting.append(schema)
            self._next()
        return None

    def overdue(self) -> bool:
        """The checker has taken too long, so `settle` has something to do."""
        return self._current is not None and time.monotonic() >= self._deadline

    def settle(self) -> bool:
        """Take in what the checker has said. True when there are new verdicts."""
        self._failures.clear()
        if self._process is None:
            return False
        settled = self._read()
        if self.overdue():
            self._conclude("the schema is too complex: compiling it takes too long")
            self._stop()
            settled = True
        self._next()
        return settled

    def close(self) -> None:
        """End the checker; idempotent."""
        self._stop()

    def _next(self) -> None:
        if self._current is not None or not self._waiting:
            return
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._current = self._waiting.popleft()
        self._deadline = time.monotonic() + (_CHECK_S if self._started else _START_S)
        try:
            # Never blocks: the pipe is empty and larger than any schema.
            os.write(self._process.stdin.fileno(), msgspec.json.encode(self._current) + b"\n")
        except BrokenPipeError:
            pass  # it died, which reading will tell

    def _read(self) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            data = os.read(self._process.stdout.fileno(), 65_536)
        except BlockingIOError:
            return False
        if not data:
            log.warning("schema_checker_died")
            crashed = self._current is not None
            if crashed:
                self._conclude("the schema makes the grammar compiler fail")
            self._stop()
            return crashed
        *lines, self._answer = (self._answer + data).split(b"\n")
        settled = False
        for line in lines:
            if line == b"ready":
                self._started = True
                self._deadline = time.monotonic() + _CHECK_S
            else:
                answer = msgspec.json.decode(line, type=Answer)
                self._conclude(answer.problem)
                settled = True
                if answer.last:
                    self._stop()
        return settled

    def _conclude(self, problem: str | None) -> None:
        assert self._current is not None
        if problem is not None and not self._started:
            failure = SchemaVerdict("the schema could not be checked", code="schema_check_failed")
            self._failures[self._current] = failure
        else:
            self._verdicts[self._current] = SchemaVerdict(problem)
        if len(self._verdicts) > _REMEMBERED:
            self._verdicts.popitem(last=False)
        self._current = None

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(self._process.stdin.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._started = False
        self._answer = b""

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
