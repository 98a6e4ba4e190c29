"""Children that do what a test says, a sink that keeps what supervisors report, and a tree begun in
a test's nursery."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Ignored
from antiphon.supervision.reports import Report
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.spec import ChildSpec
from antiphon.supervision.supervisor import Supervisor

R = TypeVar("R")

_PATIENCE_S = 10.0**6
"""No time at all on a clock that jumps: what would never come is a failure and no hang."""


class ReportLog:
    """A report sink that keeps everything."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def __call__(self, report: Report) -> None:
        self.reports.append(report)

    def of(self, kind: type[R]) -> list[R]:
        return [report for report in self.reports if isinstance(report, kind)]


class Puppet:
    """A child whose life a test writes. Its story goes to a list that puppets may share: `+a1` when
    incarnation 1 of `a` begins to run, `-a1` when it has ended."""

    def __init__(self, id: str, story: list[str] | None = None) -> None:
        self.id = id
        self.story: list[str] = [] if story is None else story
        self.init: Callable[[ChildContext], Awaitable[Ignored | None]] | None = None
        """Runs before the child is ready; may raise, decline or take its time."""
        self.clean_up: Callable[[ChildContext], Awaitable[None]] | None = None
        """Runs after the stop was ordered."""
        self.deaf = False
        """Whether it goes on when told to stop."""
        self.shielded = False
        """Whether it can't even be cancelled; only `finish` ends it."""
        self.context: ChildContext | None = None
        self._ups: dict[int, trio.Event] = {}
        self._wake = trio.Event()
        self._error: BaseException | None = None

    def spec(self, **options: Any) -> ChildSpec:
        return ChildSpec(id=self.id, start=self.start, **options)

    def crash(self, error: BaseException | None = None) -> None:
        """Raise in the current incarnation, RuntimeError by default."""
        self._error = error or RuntimeError(f"{self.id} told to crash")
        self._wake.set()

    def finish(self) -> None:
        """Return from the current incarnation."""
        self._wake.set()

    async def up(self, incarnation: int) -> ChildContext:
        """Wait until that incarnation is ready."""
        with trio.fail_after(_PATIENCE_S):
            await self._ups.setdefault(incarnation, trio.Event()).wait()
        assert self.context is not None
        return self.context

    async def start(self, context: ChildContext) -> Ignored | None:
        self.story.append(f"+{self.id}{context.incarnation}")
        self.context = context
        self._wake, self._error = trio.Event(), None
        try:
            if self.init is not None and (declined := await self.init(context)) is not None:
                return declined
            context.ready()
            self._ups.setdefault(context.incarnation, trio.Event()).set()
            if not self.deaf:
                context.on_stop(self._wake.set)
            # Without an end, on purpose: this is the child that can't be stopped.
            with trio.CancelScope(shield=self.shielded):
                await self._wake.wait()
            if self._error is not None:
                raise self._error
            if context.stopping.is_set() and self.clean_up is not None:
                await self.clean_up(context)
        finally:
            self.story.append(f"-{self.id}{context.incarnation}")
        return None


class Tree:
    """A tree that runs in a test's nursery."""

    def __init__(self, root: Supervisor, *, budget_s: float = 600.0) -> None:
        self.root = root
        self.stop = trio.Event()
        self._settled = trio.Event()
        self.ended = trio.Event()
        self.scope = trio.CancelScope()
        self.outcome: Outcome | None = None
        self._budget_s = budget_s

    async def begin(self, nursery: trio.Nursery) -> "Tree":
        """Start it and wait until it is ready or has ended."""
        nursery.start_soon(self._run)
        await self._settled.wait()
        return self

    async def end(self) -> Outcome:
        """Order the stop and wait for it."""
        self.stop.set()
        return await self.over()

    async def over(self) -> Outcome:
        """Wait for an end that something else brings about."""
        with trio.fail_after(_PATIENCE_S):
            await self.ended.wait()
        assert self.outcome is not None
        return self.outcome

    async def _run(self) -> None:
        try:
            with self.scope:
                self.outcome = await run_tree(
                    self.root, stop=self.stop, budget_s=self._budget_s, on_ready=self._settled.set
                )
        finally:
            self._settled.set()
            self.ended.set()


async def asleep(context: ChildContext) -> None:
    """An init or clean-up that never ends by itself."""
    await trio.sleep_forever()
