"""What a child process prints on stderr goes to our log, line by line, each line bounded in length.

A thread of its own reads it, so that a child never blocks on a full pipe while the server is busy.
It must not know what a line means.
"""

from typing import IO, cast

import msgspec
import structlog

log = structlog.get_logger(__name__)

LINE_LIMIT = 2_000
"""Bytes of one line that are kept; a C++ exception text with its paths is shorter."""

_LEVELS = frozenset({"debug", "info", "warning", "error", "critical"})


def forward_lines(stream: IO[bytes], pid: int, child: str, unknown: str) -> None:
    """Log every line until the stream ends, which is when the last process of the group is gone.
    `child` is what kind of process it is; `unknown` is the event of a line that is none of its own
    log's."""
    with stream:
        skipping = False
        while line := stream.readline(LINE_LIMIT):
            # The rest of an over-long line is dropped; its first part has been logged.
            if not skipping:
                _forward(line, pid, child, unknown)
            skipping = not line.endswith(b"\n")


def _forward(line: bytes, pid: int, child: str, unknown: str) -> None:
    fields = _parse(line)
    if fields is None:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            log.warning(unknown, **{f"{child}_pid": pid}, line=text)
        return
    event = str(fields.pop("event"))
    level = str(fields.pop("level", "info"))
    fields.pop("timestamp", None)
    method = level if level in _LEVELS else "info"
    getattr(log, method)(event, **{**fields, f"{child}_pid": pid})


def _parse(line: bytes) -> dict[str, object] | None:
    """The fields of one of the child's own log lines; None for what a native library printed."""
    if not line.startswith(b"{"):
        return None
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(fields, dict) or "event" not in fields:
        return None
    return cast("dict[str, object]", fields)
