"""Handing a turn's generations to its pool's scheduler, for a session, which from then on is owed
news of them."""

from dataclasses import dataclass
from typing import assert_never

import structlog

from antiphon.actors.breaker import Permit, Refused
from antiphon.actors.engines.messages import GenerationNews
from antiphon.actors.monitor import Monitor
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.actors.scheduling.messages import Generation, Submit
from antiphon.actors.scheduling.pool import Pool
from antiphon.actors.sessions.placing import Placement
from antiphon.errors import ActorError, EngineUnavailable
from antiphon.ids import EngineRequest, RequestId

log = structlog.get_logger(__name__)

_SUBMIT_S = 15.0
"""How long a turn waits for an engine that is being restarted before the client is told to
retry."""
_SHORTEST_RETRY_S = 1.0
"""While a probe is out nobody knows when the next turn may pass; clients that come back at once
would only be refused again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerDown:
    """The scheduler ended, and if it could, it has said what became of our generations."""

    requests: frozenset[EngineRequest]


class Submitting:
    """Of one session, whose `ref` gets the news."""

    def __init__(self, turn: RequestId, ref: Ref[GenerationNews | SchedulerDown]) -> None:
        self._turn = turn
        self._ref = ref
        self._asked: list[Reply[None]] = []
        self._monitors: list[Monitor] = []

    async def submit(
        self, placement: Placement, generations: tuple[Generation, ...], *, since: float
    ) -> None:
        """`since` is when they first wanted a slot. Raises QueueFull, ContextLengthExceeded; and
        EngineUnavailable, after which they may be queued all the same, and are to be withdrawn."""
        match placement.pool.breaker.admit():
            case Refused(retry_after_s=seconds):
                raise EngineUnavailable(retry_after_s=max(seconds, _SHORTEST_RETRY_S))
            case Permit() as permit:
                try:
                    with permit:
                        await placement.pool.scheduler.ask(
                            lambda reply: self._submission(placement, generations, since, reply),
                            deadline_s=_SUBMIT_S,
                        )
                except ActorError as error:
                    # The scheduler is down, or its pool is: not this request's fault.
                    log.warning("submit_failed", request_id=self._turn, reason=str(error))
                    raise EngineUnavailable(retry_after_s=2.0) from error
            case refused:
                assert_never(refused)

    def watch(self, pool: Pool, requests: frozenset[EngineRequest]) -> None:
        """Hear of it when the scheduler that has them ends."""
        down = SchedulerDown(requests=requests)
        self._monitors.append(pool.scheduler.monitor(lambda _: self._ref.tell_system(down)))

    def give_up(self) -> None:
        """A Submit that is still queued is skipped from now on, as a Withdraw overtakes it."""
        for reply in self._asked:
            reply.close()

    def close(self) -> None:
        """The session ends. Idempotent."""
        self.give_up()
        for monitor in self._monitors:
            monitor.cancel()

    def _submission(
        self,
        placement: Placement,
        generations: tuple[Generation, ...],
        since: float,
        reply: Reply[None],
    ) -> Submit:
        self._asked.append(reply)
        return Submit(
            turn=self._turn,
            since=since,
            generations=generations,
            owner=self._ref,
            reply=reply,
            workload=placement.workload,
            deadline_s=placement.decision.deadline_s,
            prediction=placement.prediction,
        )
