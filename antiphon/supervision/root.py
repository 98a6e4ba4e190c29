"""Runs a whole tree: from the caller's stop event or cancellation to an ordered stop in time."""

import contextvars
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog
import trio

from antiphon.ids import ActorPath
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Crashed, Exit, InitFailed, Normal, Stopped, Stuck, exit_of
from antiphon.supervision.supervisor import Supervisor
from antiphon.supervision.tree import Node

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the tree ended. While `stuck` is not empty trio.run can't return: leave by os._exit."""

    exit: Exit
    stuck: tuple[str, ...]
    stop_s: float | None
    """How long the ordered stop took; None if the tree ended by itself."""


async def run_tree(
    root: Supervisor,
    *,
    stop: trio.Event,
    budget_s: float | Callable[[], float],
    name: str = "root",
    on_ready: Callable[[], None] | None = None,
) -> Outcome:
    """Run `root` until it ends by itself, `stop` is set, or the caller is cancelled.

    The ordered stop takes at most `budget_s` (a function is asked when the stop begins), the
    caller's cancellation notwithstanding, which is raised again after it. The exit is Stopped after
    an ordered stop or an AutoShutdown, Crashed when the root gave up, InitFailed after a failed
    boot, Interrupted after a KeyboardInterrupt or SystemExit in a child, and Stuck when someone
    ignored the stop.
    """
    run = _Run(root, name, on_ready)
    # A system task, since a nursery here could never be left while a child is stuck in it.
    trio.lowlevel.spawn_system_task(run.live, name=name, context=contextvars.Context())
    stopping_at: float | None = None
    try:
        await _either(stop, run.done)
    finally:
        if not run.done.is_set():
            stopping_at = trio.current_time()
            patience_s = budget_s() if callable(budget_s) else budget_s
            run.context.order_stop(deadline=stopping_at + patience_s, leaving=True)
            with trio.move_on_after(patience_s, shield=True):
                await run.done.wait()
        outcome = run.outcome(stopping_at)
        log.info(
            "tree_stopped",
            exit=type(outcome.exit).__name__.lower(),
            stuck=outcome.stuck,
            stop_s=None if outcome.stop_s is None else round(outcome.stop_s, 3),
        )
    return outcome


class _Run:
    """The root's task, seen from the task that runs the tree."""

    def __init__(self, root: Supervisor, name: str, on_ready: Callable[[], None] | None) -> None:
        self.done = trio.Event()
        self.context = ChildContext(
            path=ActorPath(name),
            incarnation=1,
            notify_ready=self._ready,
            notify_stuck=self._stuck,
        )
        self._root = root
        self._scope = trio.CancelScope()
        self._on_ready = on_ready
        self._is_ready = False
        self._exit: Exit = Normal()
        self._stuck_paths: tuple[str, ...] = ()

    async def live(self) -> None:
        try:
            with self._scope:
                self._exit = await self._root.run(self.context) or Normal()
        except trio.Cancelled:
            raise
        except BaseException as error:
            exit = exit_of(error)
            if exit is None:
                raise
            if isinstance(exit, Crashed) and not self._is_ready:
                self._exit = InitFailed(exit.kind, exit.message, exit.trace)
            else:
                self._exit = exit
        finally:
            self.done.set()

    def outcome(self, stopping_at: float | None) -> Outcome:
        """What to report now; called once, when the tree is over or its budget is."""
        stuck = self._stuck_paths
        if not self.done.is_set():
            stuck = tuple(_alive(self._root.snapshot()))
            self._scope.cancel("the stop's budget ran out")
        self._root.gone()
        exit = self._exit
        if stuck:
            exit = Stuck(stuck)
        elif isinstance(exit, Normal) and self.context.stopping.is_set():
            exit = Stopped()
        elapsed = None if stopping_at is None else trio.current_time() - stopping_at
        return Outcome(exit=exit, stuck=stuck, stop_s=elapsed)

    def _ready(self) -> None:
        self._is_ready = True
        if self._on_ready is not None:
            self._on_ready()

    def _stuck(self, paths: tuple[str, ...]) -> None:
        self._stuck_paths = paths
        self.done.set()


def _alive(node: Node) -> Iterator[str]:
    """Leaves of the tree that have not ended."""
    if not node.children and node.state not in ("down", "waiting"):
        yield node.path
    for child in node.children:
        yield from _alive(child)


async def _either(first: trio.Event, second: trio.Event) -> None:
    async def wait(event: trio.Event, scope: trio.CancelScope) -> None:
        await event.wait()
        scope.cancel("one of the two has happened")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, first, nursery.cancel_scope)
        nursery.start_soon(wait, second, nursery.cancel_scope)
