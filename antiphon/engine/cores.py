"""How many processors this process may use."""

import os


def usable_cores() -> int:
    """Those it is allowed to run on, where the system tells; all there are elsewhere (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
