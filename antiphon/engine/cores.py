"""How many processors this process may use."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Those it is allowed to run on, where the system tells; all there are elsewhere (macOS). A
    container's share of processor time counts as that many."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _quota()
    return cores if quota is None else max(1, min(cores, round(quota)))


def inference_threads(wanted: int) -> int:
    """How many threads to ask the engine for; 0 leaves it to the engine, which has one for each
    core, and not two for a core with two hardware threads.

    It doesn't know of a container's share: threads beyond that are stopped together, in the middle
    of every step.
    """
    if wanted or _quota() is None:
        return wanted
    return usable_cores()


def _quota() -> float | None:
    """Processor time for each second of time, of the innermost control group that this process
    sees as its root (`docker --cpus`, Kubernetes limits); None where there is no limit."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join((_CGROUP / file).read_text(encoding="ascii") for file in files).split()
            time_us, period_us = map(int, words)
        except (OSError, ValueError):  # no such file; the word "max"
            continue
        if time_us > 0 and period_us > 0:
            return time_us / period_us
    return None
