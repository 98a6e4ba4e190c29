"""The process of the one rank: it only lives, in a session of its own, until somebody kills it."""

import subprocess
import sys


def start_worker() -> "subprocess.Popen[bytes]":
    """With the command line that MPI gives a rank; it inherits whatever can be."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", "import signal; signal.pause()", "mpi4py.futures.server"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        close_fds=False,
    )
