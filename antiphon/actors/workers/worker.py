"""The workers' part of the tree: finds conversations in which turns have ended, and has them worked
on, a few at a time, while the server isn't about to end.

What there is to do is in the store, not here: a kill loses nothing. The work on each conversation
is a temporary child, so that one which crashes it costs no other, and none of the tree's restarts.
"""

import itertools
from typing import Protocol

import structlog
import trio

from antiphon.actors.workers.holding import Holding, lease_ms
from antiphon.actors.workers.matter import WorkTools
from antiphon.errors import ActorError, StoreError, SupervisionError
from antiphon.events import CancelCause
from antiphon.ids import NodeId
from antiphon.records import PendingWork
from antiphon.supervision.context import ChildContext
from antiphon.supervision.spec import (
    NO_BACKOFF,
    ChildSpec,
    Grace,
    Restart,
    Strategy,
    SupervisorSpec,
)
from antiphon.supervision.supervisor import Supervisor

log = structlog.get_logger(__name__)

_QUIET_S = 1.0
"""After a turn, before anything is looked for: whoever goes on at once isn't worked on twice."""
_LOOK_S = 5.0
"""Between two looks for what others have left."""
_MOST_PAUSE_S = 1.0
_STOP_S = 4.0


class TurnEnds(Protocol):
    """Who knows when turns end here."""

    def next_end(self) -> trio.Event:
        """Set when a turn of a conversation ends the next time."""


class Workers:
    """Also one of the kinds of work that a drain ends: at once, since nobody waits for it."""

    open_turns = 0

    def __init__(self, turns: TurnEnds, tools: WorkTools, node: NodeId) -> None:
        self._turns = turns
        self._tools = tools
        self._node = node
        self._draining = False
        self._holdings: list[Holding] = []
        self._numbers = itertools.count(1)
        self._is_paused = False
        self._at_once = tools.settings().context.workers
        self._jobs = Supervisor(
            SupervisorSpec(dynamic=True, max_children=self._at_once + 1, intensity=0)
        )

    def child(self, id: str) -> ChildSpec:
        """What stands in the tree, after the sessions: they run its turns."""
        return Supervisor(
            # More than back-off allows in a minute: what fails again and again, as on a row that
            # it can't read, is tried less and less often, and leaves the tree alone.
            SupervisorSpec(strategy=Strategy.ONE_FOR_ALL, intensity=10, period_s=60.0),
            [self._jobs.child("jobs"), ChildSpec(id="finder", start=self._run)],
        ).child(id)

    def age_s(self) -> float:
        """How long ago a turn has ended in the conversations at hand, of which one has waited
        longest of all; 0 where there is none."""
        return max((holding.age_s() for holding in self._holdings), default=0.0)

    def refuse_new_turns(self) -> None:
        """From now on the server drains: what is at hand is left to others."""
        self._draining = True
        for holding in self._holdings:
            holding.let_go("the server drains")

    def cancel_all(self, cause: CancelCause) -> None:
        """Nothing is left by then."""

    async def wait_idle(self) -> None:
        await trio.lowlevel.checkpoint()

    async def _run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        async with trio.open_nursery() as nursery:
            for _ in range(self._at_once):
                nursery.start_soon(self._find)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("the workers stop")

    async def _find(self) -> None:
        while True:
            ended = self._turns.next_end()
            began = trio.current_time()
            if await self._work_on_one():
                # At most half of the time, however much there is to do: nobody waits for it, and
                # all who chat would feel it.
                await trio.sleep(min(trio.current_time() - began, _MOST_PAUSE_S))
                continue
            with trio.move_on_after(_LOOK_S):
                await ended.wait()
            await trio.sleep(_QUIET_S)

    async def _work_on_one(self) -> bool:
        """False where there is nothing to do now."""
        if self._draining:
            return False
        try:
            work = await self._take()
            if work is not None:
                await self._have_done(work)
        except StoreError as error:
            if not self._is_paused:
                log.warning("work_paused", reason=str(error))
            self._is_paused = True
            return False
        if self._is_paused:
            log.info("work_resumed")
        self._is_paused = False
        return work is not None

    async def _take(self) -> PendingWork | None:
        now_ms, until_ms = self._tools.now_ms(), lease_ms(self._tools)
        found = await self._tools.store.run(
            lambda store: store.take_work(self._node, now_ms, lease_ms=until_ms, limit=1)
        )
        return found[0] if found else None

    async def _have_done(self, work: PendingWork) -> None:
        """Raises StoreError when the store can't be told what became of it."""
        holding = Holding(work=work, node=self._node, tools=self._tools)
        self._holdings.append(holding)
        try:
            if self._draining:
                holding.let_go("the server drains")
            self._jobs.start_child_nowait(
                ChildSpec(
                    id=f"job-{next(self._numbers)}",
                    start=holding.run,
                    restart=Restart.TEMPORARY,
                    shutdown=Grace(_STOP_S),
                    backoff=NO_BACKOFF,
                    lifecycle=holding,
                )
            )
            await holding.over.wait()
            problem = holding.crash
        except (SupervisionError, ActorError) as error:
            problem = str(error)
        finally:
            self._holdings.remove(holding)
        if holding.away is not None:
            raise holding.away
        if problem is not None:
            await holding.failed(problem)
