"""The Trio driver of one supervisor: turns what happens into events for the pure core, and the
core's effects into tasks, cancellations and timers. It holds no rule of its own.

Events are taken synchronously, in the task in which they happen, so that a child is started with
two task switches and every command is served whatever the children do.
"""

import contextvars
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

import trio

from antiphon.errors import (
    ActorStopped,
    AntiphonError,
    SpecError,
    WouldDeadlock,
)
from antiphon.ids import ActorPath
from antiphon.supervision import commands, core
from antiphon.supervision import state as s
from antiphon.supervision.context import ChildContext
from antiphon.supervision.ending import failure_of
from antiphon.supervision.exits import (
    Exit,
    Ignored,
    Stopped,
    Stuck,
)
from antiphon.supervision.incarnation import Incarnation
from antiphon.supervision.place import Place, child_on_the_way_to, current_place
from antiphon.supervision.reports import ReportSink, log_report
from antiphon.supervision.snapshot import child_node, supervisor_node
from antiphon.supervision.spec import (
    DEFAULT_BACKOFF,
    AutoShutdown,
    Backoff,
    ChildSpec,
    Forever,
    Kind,
    Restart,
    SupervisorSpec,
)
from antiphon.supervision.timers import Timers
from antiphon.supervision.tree import Node

_SHARE_OF_STOP = 0.95
"""A supervisor stops a little before its parent would cancel it: so it can say who is stuck."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A command whose answer somebody waits for."""

    event: trio.Event
    result: Exit | AntiphonError | None = None


class Supervisor:
    """Runs children by the rules of the core. One object serves all its own incarnations.

    Raises SpecError for duplicate ids, and for static children of a dynamic supervisor.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        children: Sequence[ChildSpec] = (),
        *,
        reports: ReportSink = log_report,
        rng: random.Random | None = None,
    ) -> None:
        ids = [child.id for child in children]
        if len(set(ids)) < len(ids):
            raise SpecError("supervisor", f"duplicate ids among {', '.join(ids)}")
        if spec.dynamic and children:
            raise SpecError("supervisor", "a dynamic supervisor gets its children at run time")
        for child in children:
            spec.refuse_significance(child)
        self._spec = spec
        self._static = tuple(children)
        self._reports = reports
        self._rng = rng or random.Random()
        self._state = core.initial(ActorPath("root"), spec, self._static)
        self._reset()

    def _reset(self) -> None:
        self._context: ChildContext | None = None
        self.place: Place | None = None
        self._nursery: trio.Nursery | None = None
        self._booted_at: float | None = None
        self._running: dict[str, Incarnation] = {}
        self._events: deque[s.Event] = deque()
        self._draining = False
        self._waiters: dict[int, _Waiter] = {}
        self._last_token = 0
        self._timers = Timers(self._is_armed)
        self._over: s.Over | None = None

    def child(
        self,
        id: str,
        *,
        restart: Restart = Restart.PERMANENT,
        backoff: Backoff = DEFAULT_BACKOFF,
    ) -> ChildSpec:
        """This supervisor as a child of another one: shutdown Forever, and no init timeout, since
        each of its children has one. Raises SpecError for a permanent child that ends itself."""
        if self._spec.auto_shutdown is not AutoShutdown.NEVER and restart is Restart.PERMANENT:
            raise SpecError(f"child {id!r}", "with auto_shutdown it would be restarted for ever")
        return ChildSpec(
            id=id,
            start=self.run,
            restart=restart,
            shutdown=Forever(),
            init_timeout_s=math.inf,
            kind=Kind.SUPERVISOR,
            backoff=backoff,
            lifecycle=self,
        )

    async def run(self, context: ChildContext) -> Stopped | None:
        """The start function of that child: from the boot to the ordered stop. Stopped says that
        it ended because significant children did.

        Raises StartFailed after a failed boot, IntensityExceeded after giving up.
        """
        self._reset()
        self._context = context
        self.place = current_place.get()
        self._state = core.initial(context.path, self._spec, self._static)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                context.observe_children(self.snapshot)
                self._post(s.Boot())
                context.on_stop(self._stop_ordered)
                over = await self._keep_time()
                if over.stuck:
                    context.report_stuck(over.stuck)
        finally:
            self._nursery = None
            for waiter in self._waiters.values():
                waiter.result = ActorStopped(context.path)
                waiter.event.set()
        failure = failure_of(over.ending, context.path, self._spec)
        if failure is not None:
            raise failure
        return Stopped() if isinstance(over.ending, s.AutoStopped) else None

    async def start_child(self, spec: ChildSpec) -> bool:
        """Add a child and wait until it is ready; False if it declined to run. A first start that
        fails leaves no trace.

        Raises AlreadyPresent, MaxChildren, StartFailed, ActorStopped (this supervisor does not
        run), SpecError (significant, where that means nothing), and WouldDeadlock to a child that
        this supervisor is waiting for.
        """
        self._spec.refuse_significance(spec)
        self._refuse_deadlock(None)
        return not isinstance(await self._command(partial(s.StartChild, spec)), Ignored)

    def start_child_nowait(self, spec: ChildSpec) -> None:
        """As start_child without the waiting. Its address is alive at once, except within a
        monitor's callback."""
        self._spec.refuse_significance(spec)
        refused = commands.refusal(self._state, spec.id)
        if self._nursery is None:
            refused = ActorStopped(self._state.path)
        if refused is not None:
            raise refused
        self._post(s.StartChild(spec))

    async def terminate_child(self, id: str) -> Exit:
        """Stop a child by its own rule, or cancel its pending restart. Its specification is kept
        unless it is temporary or dynamic. Raises NoActor, ActorStopped, WouldDeadlock."""
        self._refuse_deadlock(id)
        exit = await self._command(partial(s.TerminateChild, id))
        assert exit is not None
        return exit

    async def restart_child(self, id: str) -> bool:
        """Start a child that is down; False if it declined. Raises NoActor, AlreadyPresent (it is
        not down), StartFailed, ActorStopped, WouldDeadlock."""
        self._refuse_deadlock(id)
        return not isinstance(await self._command(partial(s.RestartChild, id)), Ignored)

    async def recycle_child(self, id: str) -> bool:
        """Stop a child and start it again, with the siblings its strategy takes along; start one
        that is down. False if it declined. Nothing counts in the window. Raises NoActor,
        AlreadyPresent (it is being stopped), StartFailed, SpecError (temporary), ActorStopped,
        WouldDeadlock."""
        self._refuse_deadlock(id)
        return not isinstance(await self._command(partial(s.RecycleChild, id)), Ignored)

    async def delete_child(self, id: str) -> None:
        """Forget a child that is down, so that its id is free: for who changes a tree at run time.
        The server itself doesn't, since its children are those of its settings. Raises what
        restart_child raises."""
        self._refuse_deadlock(id)
        await self._command(partial(s.DeleteChild, id))

    def which_children(self) -> tuple[tuple[str, s.Phase], ...]:
        """Ids and phases, in start order."""
        return tuple((id, child.phase) for id, child in self._state.children.items())

    def supervisor_below(self, id: str) -> "Supervisor | None":
        """The child of that id, if it is a supervisor."""
        child = self._state.children.get(id)
        below = None if child is None else child.spec.lifecycle
        return below if isinstance(below, Supervisor) else None

    def count_children(self) -> int:
        """How many children it has, running or not: for who needs the number and not the
        snapshot, which has it too, by kind."""
        return len(self._state.children)

    def snapshot(self) -> Node:
        """The tree from here down, as it is now; sends nobody a message."""
        now = trio.current_time()
        nodes = []
        for id, child in self._state.children.items():
            context = self._running[id].context if id in self._running else None
            nodes.append(child_node(ActorPath(f"{self._state.path}/{id}"), child, context, now))
        return supervisor_node(
            self._state,
            tuple(nodes),
            incarnation=0 if self._context is None else self._context.incarnation,
            up_since=self._booted_at,
            now=now,
        )

    # Lifecycle: this supervisor as its parent's child.

    def started(self, path: ActorPath, incarnation: int) -> None: ...

    def exited(self, incarnation: int, exit: Exit) -> None: ...

    def gone(self) -> None:
        """Not started again: neither are the children whose addresses were kept for a restart."""
        for spec in self._static:
            if spec.lifecycle is not None:
                spec.lifecycle.gone()

    def _post(self, event: s.Event) -> None:
        self._events.append(event)
        if self._draining:
            return
        self._draining = True
        try:
            while self._events:
                self._state, effects = core.step(
                    self._state, self._events.popleft(), trio.current_time()
                )
                for effect in effects:
                    self._carry_out(effect)
        except BaseException:
            # A bug in here, which may surface in any task that posted: the supervisor must not
            # outlive it.
            if self._nursery is not None:
                self._nursery.cancel_scope.cancel("the supervisor itself failed")
            raise
        finally:
            self._draining = False

    def _carry_out(self, effect: s.Effect) -> None:
        match effect:
            case s.Start():
                self._start(effect)
            case s.Stop():
                self._running[effect.id].context.order_stop(
                    deadline=effect.deadline, leaving=effect.leaving
                )
            case s.Cancel():
                self._running[effect.id].scope.cancel(effect.reason)
            case s.Arm():
                self._timers.set(effect.due, effect.id)
            case s.Ended():
                if not isinstance(effect.exit, Stuck):
                    del self._running[effect.spec.id]
                if effect.spec.lifecycle is not None:
                    effect.spec.lifecycle.exited(effect.incarnation, effect.exit)
            case s.Gone():
                if effect.spec.lifecycle is not None:
                    effect.spec.lifecycle.gone()
            case s.Answer():
                waiter = self._waiters.pop(effect.token, None)
                if waiter is not None:
                    waiter.result = effect.result
                    waiter.event.set()
            case s.Say():
                self._reports(effect.report)
            case s.Booted():
                assert self._context is not None
                self._booted_at = trio.current_time()
                self._context.ready()
            case s.Over():
                self._over = effect
                self._timers.wake()
            case _:
                assert_never(effect)

    def _start(self, effect: s.Start) -> None:
        assert self._nursery is not None
        spec, incarnation = effect.spec, effect.incarnation
        path = ActorPath(f"{self._state.path}/{spec.id}")
        running = Incarnation(
            spec,
            ChildContext(
                path=path,
                incarnation=incarnation,
                notify_ready=lambda: self._post(s.Ready(spec.id, incarnation)),
                notify_stuck=lambda paths: self._post(s.Exited(spec.id, incarnation, Stuck(paths))),
            ),
            trio.CancelScope(),
        )
        self._running[spec.id] = running
        if spec.lifecycle is not None:
            spec.lifecycle.started(path, incarnation)
        # A new context for every child: what the task that caused the start has bound (a request's
        # log fields, its chain of asks) is none of the child's.
        contextvars.Context().run(partial(self._nursery.start_soon, self._live, running, name=path))

    async def _live(self, running: Incarnation) -> None:
        """The task of one incarnation. Only a supervisor's bug or its end from outside leaves
        here as an exception."""
        current_place.set(Place(self, running.spec.id))
        exit = await running.live(self._reports, dynamic=self._spec.dynamic)
        if exit is not None:
            self._post(
                s.Exited(
                    running.spec.id,
                    running.context.incarnation,
                    exit,
                    self._rng.uniform(-1.0, 1.0),
                )
            )

    def _stop_ordered(self) -> None:
        assert self._context is not None
        now = trio.current_time()
        patience = (self._context.stop_deadline - now) * _SHARE_OF_STOP
        self._post(s.StopOrdered(now + patience, self._context.leaving))

    async def _keep_time(self) -> s.Over:
        """Post what falls due until the supervisor is over."""
        while self._over is None:
            await self._timers.sleep()
            for id in self._timers.due():
                self._post(s.Due(id))
        return self._over

    def _is_armed(self, id: str) -> bool:
        child = self._state.children.get(id)
        return child is not None and child.due is not None

    async def _command(self, make: Callable[[int], s.Event]) -> Exit | None:
        if self._nursery is None:
            raise ActorStopped(self._state.path)
        self._last_token += 1
        token = self._last_token
        waiter = self._waiters[token] = _Waiter(trio.Event())
        self._post(make(token))
        try:
            await waiter.event.wait()
        finally:
            self._waiters.pop(token, None)
        if isinstance(waiter.result, AntiphonError):
            raise waiter.result
        return waiter.result

    def _refuse_deadlock(self, target: str | None) -> None:
        """A child that is starting or stopping is what this supervisor waits for, and so must not
        wait for it; nor may any child wait for its own end."""
        id = child_on_the_way_to(self)
        child = None if id is None else self._state.children.get(id)
        if child is not None and (child.phase is not s.Phase.UP or id == target):
            raise WouldDeadlock(self._state.path)
