"""The processes of one engine: they carry a mark in their environment, wherever they end up.

MPI puts workers into sessions of their own and they are adopted when a parent dies, so neither the
process group nor the parent tells. (Jenkins' ProcessTreeKiller works the same way.) Standard
library only: the warden imports it.
"""

import os
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "ANTIPHON_ENGINE_MARK"
_ROUND_S = 0.02
_ROUNDS = 100
"""A process may fork while the others are killed; one that survives this long is stuck in the
kernel."""


def new_mark() -> str:
    """Put a mark on whatever this process starts from now on."""
    mark = f"{os.getpid()}-{secrets.token_hex(8)}"
    os.environ[VARIABLE] = mark
    return mark


def marked(mark: str) -> Iterator[int]:
    """Living processes with that mark, except this one. One that only waits to be reaped has no
    environment any more."""
    wanted = f"{VARIABLE}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                environment = (folder / "environ").read_bytes()
            except OSError:  # somebody else's, or gone
                continue
            if wanted in environment.split(b"\0"):
                yield int(folder.name)


def kill_marked(mark: str) -> int:
    """SIGKILL them all, also those that start meanwhile; how many there were."""
    killed: set[int] = set()
    empty = 0
    for _ in range(_ROUNDS):
        living = list(marked(mark))
        # In the midst of an exec a process has no environment: one look may miss it.
        empty = 0 if living else empty + 1
        if empty == 2:
            break
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.add(pid)
        time.sleep(_ROUND_S)
    return len(killed)


def command_line(pid: int) -> str:
    """Empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (OSError, UnicodeDecodeError):
        return ""
