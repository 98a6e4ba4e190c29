"""The recorder: writes what running responses have said to the store, all of them at once, and
keeps this server's hold on them alive.

What a crash of the whole process can lose of a running answer is what came after the last write.
"""

from collections.abc import Awaitable, Callable

import structlog
import trio

from antiphon.actors.responses.directory import RunDirectory
from antiphon.actors.responses.run import LEASE_S, RunTools
from antiphon.errors import StoreError
from antiphon.events import CancelCause
from antiphon.ids import ResponseId
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

FLUSH_S = 0.25
"""Between two writes while anything runs: the most text, in time, that a crash can lose. One
transaction for all, since a transaction costs about as much as what is in it."""
_RENEW_S = LEASE_S / 4
_CANCELS_S = 1.0


class Recorder:
    """A permanent child without state: a crash of it loses nothing."""

    def __init__(self, runs: RunDirectory, tools: RunTools) -> None:
        self._runs = runs
        self._tools = tools

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._regularly, self._flush, FLUSH_S)
            nursery.start_soon(self._regularly, self._renew, _RENEW_S)
            nursery.start_soon(self._regularly, self._look_for_cancels, _CANCELS_S)
            await context.stopping.wait()
            # Runs have ended before this child, and each has stored its own end.
            nursery.cancel_scope.cancel("the recorder stops")

    async def _regularly(self, task: Callable[[], Awaitable[None]], period_s: float) -> None:
        """Only while anything runs: an idle server leaves its database alone."""
        failing = False
        while True:
            await self._runs.some_running()
            await trio.sleep(period_s)
            try:
                await task()
            except StoreError as error:
                if not failing:
                    log.warning("recording_paused", task=task.__name__, reason=str(error))
                failing = True
            else:
                if failing:
                    log.info("recording_resumed", task=task.__name__)
                failing = False

    async def _flush(self) -> None:
        batches = [
            (events, batch) for events in self._runs.logs() if (batch := events.batch()) is not None
        ]
        if not batches:
            return
        rows = [(events.response.id, batch) for events, batch in batches]
        node = self._tools.node
        lost = await self._tools.store.run(lambda store: store.append_events(node, rows))
        for events, batch in batches:
            if events.response.id not in lost:
                events.stored(batch)
            elif not events.closed:  # otherwise its run may have stored the end ahead of this
                self._give_up(events.response.id)

    async def _renew(self) -> None:
        node, now_ms = self._tools.node, self._tools.now_ms
        await self._tools.store.run(
            lambda store: store.renew_leases(node, now_ms() + round(LEASE_S * 1000))
        )

    async def _look_for_cancels(self) -> None:
        """Another server was asked to cancel what runs here."""
        node = self._tools.node
        for id in await self._tools.store.run(lambda store: store.cancel_requests(node)):
            self._runs.interrupt(id, CancelCause.REQUESTED)

    def _give_up(self, id: ResponseId) -> None:
        """The lease ran out, as after a long pause of the process, and somebody else ended it."""
        log.warning("response_lost", response_id=id)
        self._runs.interrupt(id, CancelCause.OWNER_LOST)
