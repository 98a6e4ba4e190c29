"""Reproducible task schedules: Trio shuffles each batch of runnable tasks with a generator of its
own, which is seeded here. Private to Trio, so this is the only module that touches it; its test
fails when Trio changes."""

from collections.abc import Iterator
from contextlib import contextmanager

from trio._core import _run


@contextmanager
def seeded_schedule(seed: int) -> Iterator[None]:
    """Within it, `trio.run` orders tasks by the seed and nothing else."""
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING
    state = _run._r.getstate()
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    _run._r.seed(seed)
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = before  # type: ignore[misc]
        _run._r.setstate(state)
