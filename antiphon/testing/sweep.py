"""The checkpoint sweep: a scenario runs once to count the steps that a task takes in it, then once
for each of these steps, and something strikes just before that step.

Exhaustive where random faults are lucky: a leak between two awaits shows at exactly one step.
"""

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import outcome
import trio
import trio.testing

from antiphon.testing.schedules import seeded_schedule

Strike = Callable[[trio.lowlevel.Task], bool]
"""Called synchronously, just before the victim's step; False leaves it for the next step."""


@dataclass(eq=False)
class Fuse(trio.abc.Instrument):
    """Given to the scenario, which arms it once the strike has something to strike with."""

    victim: re.Pattern[str]
    step: int | None = None
    steps: int = 0
    struck: bool = False
    _strike: Strike | None = field(default=None, init=False)

    def arm(self, strike: Strike) -> None:
        """From now on the victim's steps count."""
        self._strike = strike

    def disarm(self) -> None:
        """What follows is for the scenario's own checks."""
        self._strike = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """For Trio only."""
        if self._strike is None or self.victim.fullmatch(task.name) is None:
            return
        self.steps += 1
        if self.step is not None and self.steps >= self.step and not self.struck:
            self.struck = self._strike(task)


def sweep(scenario: Callable[[Fuse], Awaitable[None]], *, victim: str, seed: int = 0) -> int:
    """Run `scenario` with a strike at every step of the tasks whose whole name matches `victim`,
    in virtual time; the number of steps. What the scenario raises carries the step as a note."""
    pattern = re.compile(victim)
    count = _run(scenario, Fuse(pattern), seed)
    for step in range(1, count + 1):
        try:
            _run(scenario, Fuse(pattern, step), seed)
        except BaseException as error:
            error.add_note(f"struck at step {step} of {count}")
            raise
    return count


def crash(task: trio.lowlevel.Task) -> bool:
    """A Strike: the await that the task is about to come back from raises instead."""
    if inspect.getcoroutinestate(task.coro) == inspect.CORO_CREATED:
        return False  # it awaits nothing yet, and nobody would classify what it raised
    # Trio sends an outcome into the coroutine; its private name is used here and nowhere else.
    task._next_send = outcome.Error(Struck("a bug at this very await"))
    return True


class Struck(Exception):
    """What `crash` makes a task raise."""


def _run(scenario: Callable[[Fuse], Awaitable[None]], fuse: Fuse, seed: int) -> int:
    async def main() -> None:
        await scenario(fuse)

    with seeded_schedule(seed):
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[fuse])
    return fuse.steps
