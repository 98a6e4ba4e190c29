"""A reader process that does what its file says, in one word: as the real one in all but that.
`python -m antiphon.testing.reader_process`, started by Readers."""

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from antiphon.documents.building import Advance, DocumentBuilder
from antiphon.documents.process import main
from antiphon.documents.reader_config import Limits
from antiphon.reading_files import BlockKind

MODULE = "antiphon.testing.reader_process"
_FOR_EVER_S = 10.0**6


def obey(
    data: bytes, filename: str, declared: str | None, limits: Limits, advance: Advance
) -> DocumentBuilder:
    """The file is one of the words below."""
    builder = DocumentBuilder("text/plain", limits, advance)
    match data.decode().strip():
        case "hang":
            time.sleep(_FOR_EVER_S)
        case "spin":
            while True:
                pass
        case "eat":
            eaten = []
            while True:
                eaten.append(bytearray(16 * 2**20))
        case "die":
            os.abort()
        case "fail":
            raise ValueError("a defect")
        case "dig":
            return obey(data, filename, declared, limits, advance)
        case "look around":
            for name, attempt in _WAYS_OUT.items():
                builder.add(BlockKind.PARAGRAPH, f"{name}: {_tried(attempt)}")
        case _:
            time.sleep(0.25)  # longer than a reader keeps what it has to say of its progress
            builder.advanced(0.5)
            builder.add(BlockKind.PARAGRAPH, "an ordinary file")
    return builder


def _tried(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return type(error).__name__
    return "possible"


_WAYS_OUT: dict[str, Callable[[], object]] = {
    "read": lambda: Path("/etc/hostname").read_bytes(),
    "write": lambda: Path("written").write_bytes(b"x"),
    "connect": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
    "fork": os.fork,
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "remove": lambda: Path("written").unlink(),
    "rename": lambda: Path("written").rename("renamed"),
}


if __name__ == "__main__":
    main(obey)
