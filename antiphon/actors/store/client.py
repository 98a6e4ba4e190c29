"""The way to the store actor for everybody else (`storage.StoreAccess`): through the breaker, and
never for longer than a deadline, whatever the actor does."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from antiphon.actors.address import Address
from antiphon.actors.breaker import Permit, Refused
from antiphon.actors.monitor import Down
from antiphon.actors.reply import Reply
from antiphon.actors.store.messages import Do, StoreMessage
from antiphon.actors.store.status import StoreStatus
from antiphon.errors import MailboxFull, StoreUnavailable
from antiphon.storage import Store
from antiphon.telemetry import Telemetry

R = TypeVar("R")

_SLACK_S = 1.0
"""The actor answers by the deadline; only one that is stuck doesn't."""


class StoreClient:
    """One for a store, shared by everybody."""

    def __init__(
        self,
        address: Address[StoreMessage],
        status: StoreStatus,
        telemetry: Telemetry,
        *,
        deadline_s: float,
    ) -> None:
        self._ref = address.ref
        self._status = status
        self._telemetry = telemetry
        self._deadline_s = deadline_s

    async def run(self, work: Callable[[Store], Awaitable[R]]) -> R:
        """One unit of work. Cancelling the call drops its answer, not the work.

        Raises what the work raises, and StoreUnavailable.
        """
        match self._status.breaker.admit():
            case Refused(retry_after_s=after):
                self._telemetry.store_refused("circuit_open")
                reason = self._status.reason or "it failed several times in a row"
                raise StoreUnavailable(reason, retry_after_s=after, refused=True)
            case Permit() as permit:
                return await self._run(permit, work)

    async def _run(self, permit: Permit, work: Callable[[Store], Awaitable[R]]) -> R:
        try:
            with permit:
                return await self._ask(work)
        except MailboxFull as error:
            self._telemetry.store_refused("overloaded")
            raise StoreUnavailable("overloaded", refused=True) from error

    async def _ask(self, work: Callable[[Store], Awaitable[R]]) -> R:
        """Not `Ref.ask`: a mailbox skips what nobody waits for any more, and this must be done."""
        if not self._ref.alive:
            raise StoreUnavailable("not running", refused=True)
        expires_at = trio.current_time() + self._deadline_s
        reply: Reply[R] = Reply(deadline=expires_at)
        self._ref.tell(Do(work=work, reply=reply, expires_at=expires_at))

        def down(_: Down) -> None:
            reply.fail(StoreUnavailable("it stopped"))

        monitor = self._ref.monitor(down)
        try:
            with trio.move_on_at(expires_at + _SLACK_S):
                return await reply.wait()
        finally:
            reply.close()
            monitor.cancel()
        raise StoreUnavailable(f"no answer within {self._deadline_s:g} s")
