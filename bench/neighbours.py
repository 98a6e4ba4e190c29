"""Who else used the processor: a measurement on a machine that is busy with something else says
nothing. Linux counts all processes together; what is not ours is somebody else's. A process that
has ended is in the count of the one that waited for it."""

import psutil


class Neighbours:
    """From its making on. Ours are this process and its descendants."""

    def __init__(self) -> None:
        self._ours = _ours()
        self._all = _all()

    def share(self) -> float:
        """The part of all cores that others have used since."""
        ours, all_of_them = _ours() - self._ours, _all()
        busy = all_of_them[0] - self._all[0]
        passed = all_of_them[1] - self._all[1]
        return max(busy - ours, 0.0) / max(passed, 1e-9)


def _ours() -> float:
    this = psutil.Process()
    total = 0.0
    for process in [this, *this.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _all() -> tuple[float, float]:
    """Busy seconds of all cores, and all seconds. Time that a hypervisor stole is busy."""
    times = psutil.cpu_times()
    every = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return every - times.idle - getattr(times, "iowait", 0.0), every
