"""A process that outlives its engine host by a moment, and takes the host's workers along:
`python -m antiphon.engine_trt.warden MARK`.

However the host ends, its end of the pipe closes then; SIGKILL leaves the host no time to tell its
GPU workers, and they would keep the GPU's memory.
"""

import subprocess
import sys

from antiphon.engine_trt.processes import VARIABLE, kill_marked


def start_warden(mark: str, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Keep what it returns: with it goes the pipe that the warden listens to."""
    return subprocess.Popen(
        [sys.executable, "-m", "antiphon.engine_trt.warden", mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Not of the host's group, which is what the server kills.
        start_new_session=True,
        env={name: value for name, value in environment.items() if name != VARIABLE},
    )


def main() -> None:
    mark = sys.argv[1]
    while sys.stdin.buffer.read(1024):
        pass
    kill_marked(mark)


if __name__ == "__main__":
    main()
