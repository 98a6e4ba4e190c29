"""What every task and thread is doing, as text: the last words before a forced exit.

It waits for nothing, reads no source file, and shows places only, never values.
"""

import sys
import threading
from collections.abc import Iterable, Iterator
from types import FrameType

import trio

_MOST_FRAMES = 60
"""Of one stack; the innermost, which say where it stands, are kept."""
_MOST_NAMES = 5
"""Of those that stand at the same place: ten thousand idle sessions are one entry."""

_Places = tuple[str, ...]


def format_stacks(root: trio.lowlevel.Task | None = None) -> str:
    """All tasks, then all threads; outermost call first, like a traceback.

    Tasks are found from `root`, by default the current run's; outside of `trio.run` and without it
    there are threads only. Any thread may call it. The task that runs just now appears with its
    outermost frame: the rest of it is its thread's stack.
    """
    if root is None and trio.lowlevel.in_trio_run():
        root = trio.lowlevel.current_root_task()
    lines: list[str] = []
    if root is not None:
        tasks = [(task.name, _places(task.iter_await_frames())) for task in _tasks(root)]
        lines += _section("task", "tasks", tasks)
    lines += _section("thread", "threads", list(_threads()))
    return "\n".join(lines) + "\n"


def _tasks(root: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    """Parents before children, without recursion: a tree of tasks may be deep."""
    left = [root]
    while left:
        task = left.pop()
        yield task
        for nursery in reversed(task.child_nurseries):
            left.extend(sorted(nursery.child_tasks, key=lambda child: child.name, reverse=True))


def _threads() -> Iterator[tuple[str, _Places]]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, innermost in sys._current_frames().items():
        yield names.get(ident, f"thread {ident}"), _places(reversed(list(_outwards(innermost))))


def _outwards(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _places(frames: Iterable[tuple[FrameType, int]]) -> _Places:
    places = [
        f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_qualname}" for frame, line in frames
    ]
    cut = len(places) - _MOST_FRAMES
    if cut > 0:
        places[:cut] = [f"… {cut} more"]
    return tuple(places)


def _section(noun: str, nouns: str, stacks: list[tuple[str, _Places]]) -> Iterator[str]:
    """Those that stand at the same place are told together, in the order of the first of each."""
    yield f"{len(stacks)} {noun if len(stacks) == 1 else nouns}"
    alike: dict[_Places, list[str]] = {}
    for name, places in stacks:
        alike.setdefault(places, []).append(name)
    for places, names in alike.items():
        more = len(names) - _MOST_NAMES
        told = ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        yield f"{noun} {told}"
        yield from (f"    {place}" for place in places)
