"""A conversation that is held to be worked on: its lease is kept alive, its job is done, and the
store is told how that went. What can't be told passes with the lease, and is done again."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
import trio

from antiphon.actors.workers.job import Job, Outcome
from antiphon.actors.workers.matter import WorkTools, age_s
from antiphon.errors import StoreError, StoreUnavailable
from antiphon.ids import ActorPath, NodeId
from antiphon.records import PendingWork
from antiphon.storage import Store
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Exit, Killed, Normal, Stopped, describe

log = structlog.get_logger(__name__)

LEASE_S = 30.0
"""How long a killed server's work waits for another one, or for its own next start."""
_RENEW_S = 5.0
"""It is noticed as soon as that, too, that a conversation was deleted."""
ATTEMPTS = 5
"""At the last one, what can be done without a model is."""
_AGAIN_S = (5.0, 15.0, 45.0, 120.0)
_LET_GO_S = 2.0
_NOTHING = Outcome()


@dataclass(slots=True, kw_only=True)
class Holding:
    """Its `run` is a temporary child's; it is the lifecycle of that child, too."""

    work: PendingWork
    node: NodeId
    tools: WorkTools
    exit: Exit | None = None
    over: trio.Event = field(default_factory=trio.Event)
    away: StoreError | None = None
    """Why the store couldn't be told anything."""
    _scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    def started(self, path: ActorPath, incarnation: int) -> None:
        """It runs once."""

    def exited(self, incarnation: int, exit: Exit) -> None:
        self.exit = exit

    def gone(self) -> None:
        self.over.set()

    def let_go(self, reason: str) -> None:
        """Leave it to somebody else, as soon as what it waits for lets it."""
        self._scope.cancel(reason)

    @property
    def crash(self) -> str | None:
        """What has ended it, where it didn't end by itself."""
        if self.exit is None or isinstance(self.exit, Normal | Stopped | Killed):
            return None
        return describe(self.exit)

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        context.on_stop(lambda: self.let_go("the workers stop"))
        outcome = None
        try:
            with self._scope:
                outcome = await self._done()
            if outcome is None:
                with trio.move_on_after(_LET_GO_S, shield=True):
                    await self._finish(again_s=0.0)
            elif outcome.problem is None:
                await self._finish(outcome)
                self.tools.telemetry.work_done(self.age_s())
            else:
                await self.failed(outcome.problem, outcome)
        except StoreUnavailable as error:
            self.away = error
        except StoreError as error:
            await self._refused(error)

    async def failed(self, reason: str, outcome: Outcome = _NOTHING) -> None:
        """To be tried again, unless that was often enough. Raises StoreError."""
        id, attempts = self.work.conversation.id, self.work.attempts + 1
        if attempts >= ATTEMPTS:
            log.error("work_given_up", conversation_id=id, attempts=attempts, reason=reason)
            await self._finish(outcome)
            return
        again_s = _AGAIN_S[attempts - 1]
        log.warning(
            "work_failed", conversation_id=id, attempts=attempts, reason=reason, again_s=again_s
        )
        await self._finish(outcome, again_s=again_s)

    def age_s(self) -> float:
        """How long ago the last turn has ended there."""
        return age_s(self.work, self.tools)

    async def _refused(self, error: StoreError) -> None:
        """The store is there, and won't have this."""
        try:
            await self.failed(str(error))
        except StoreError as again:
            self.away = again

    async def _done(self) -> Outcome | None:
        """None where it isn't ours any more, or its conversation is gone."""
        job = Job(self.work, self.tools, is_patient=self.work.attempts + 1 < ATTEMPTS)
        outcome = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep, nursery.cancel_scope.cancel)
            outcome = await job.do()
            nursery.cancel_scope.cancel("it is done")
        return outcome

    async def _keep(self, give_up: Callable[[str], None]) -> None:
        is_held = True
        while is_held:
            await trio.sleep(_RENEW_S)
            try:
                is_held = await self.tools.store.run(self._renew)
            except StoreUnavailable:
                continue  # the lease outlasts a short outage
        give_up("its conversation is gone, or somebody else's")

    async def _renew(self, store: Store) -> bool:
        until_ms = lease_ms(self.tools)
        return await store.renew_work(self.work, self.node, lease_ms=until_ms)

    async def _finish(self, outcome: Outcome = _NOTHING, *, again_s: float | None = None) -> None:
        again_ms = None if again_s is None else self.tools.now_ms() + round(again_s * 1000)
        await self.tools.store.run(
            lambda store: store.finish_work(
                self.work, self.node, remembered=outcome.remembered, again_ms=again_ms
            )
        )


def lease_ms(tools: WorkTools) -> int:
    """Until when what is taken now is held."""
    return tools.now_ms() + round(LEASE_S * 1000)
