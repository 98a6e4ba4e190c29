"""The reaper: ends the responses of servers that are gone, and removes what has outlived its time.

A response it ends failed, interrupted; its text so far is kept and readable, its conversation is
free again, its reservation settled.
"""

import math
from collections.abc import Awaitable, Callable

import structlog
import trio

from antiphon.actors.responses.directory import RunDirectory
from antiphon.actors.responses.ending import final_state, shown, write_end
from antiphon.actors.responses.log import Debt, EventLog
from antiphon.actors.responses.run import LEASE_S, RunTools
from antiphon.actors.responses.script import Script
from antiphon.actors.workers.disposal import discard, sweep
from antiphon.errors import (
    ActorCrashed,
    AntiphonError,
    StorageFull,
    StoreError,
    StoreFailed,
    StoreUnavailable,
    TurnInterrupted,
)
from antiphon.ids import ActorPath, ResponseId
from antiphon.narration import ResponseEvent, decode_events, encode_events
from antiphon.ports import Contents
from antiphon.records import EventBatch, Orphan, Response, ResponseStatus
from antiphon.supervision.context import ChildContext

log = structlog.get_logger(__name__)

_LOOK_S = LEASE_S / 2
_LATE_S = 45.0
"""A transaction that nobody waits for any more may be committed this late: PostgreSQL ends its
statements after less."""
_EXPIRE_S = 60.0
_EXPIRE_AT_ONCE = 500
"""In one transaction, so that other writers get their turn."""
_SWEEP_S = 1800.0
"""It looks at every content there is."""


class Reaper:
    """A permanent child. `alone` says that no other server shares the database, so that whatever
    ran before this one started is nobody's."""

    def __init__(
        self, runs: RunDirectory, tools: RunTools, *, contents: Contents, alone: bool
    ) -> None:
        self._runs = runs
        self._tools = tools
        self._contents = contents
        self._alone = alone

    async def run(self, context: ChildContext) -> None:
        """A child's start function. Raises StoreFailed where files can't be kept."""
        if left := await self._contents.prepare():
            log.info("drafts_cleared", contents=left)
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._reap_regularly)
            nursery.start_soon(self._regularly, self._expire, _EXPIRE_S)
            nursery.start_soon(self._regularly, self._sweep, _SWEEP_S)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("the reaper stops")

    async def _reap_regularly(self) -> None:
        store, node = self._tools.store, self._tools.node
        answering_since = -math.inf
        while True:
            try:
                await self._pay()
                if self._alone or trio.current_time() - answering_since >= LEASE_S:
                    await self._reap()
                else:
                    # After an outage everybody's lease has passed: who lives will renew it now.
                    await store.run(lambda store: store.cancel_requests(node))
            except StoreError as error:
                log.warning("reaping_paused", reason=str(error))
                answering_since = math.inf
            else:
                answering_since = min(answering_since, trio.current_time())
            await trio.sleep(_LOOK_S)

    async def _reap(self) -> None:
        """Responses of other servers whose lease has passed."""
        store, node, alone = self._tools.store, self._tools.node, self._alone
        now_ms = self._tools.now_ms()
        while orphans := await store.run(
            lambda store: store.orphans(now_ms, owner=node, alone=alone)
        ):
            for orphan in orphans:
                await self._told(orphan.response.id, self._end_orphan(orphan))

    async def _told(self, id: ResponseId, work: Awaitable[bool]) -> bool:
        """Whether the store knows the truth now. One response that it refuses to hear about holds
        up no other. Raises StoreUnavailable, StorageFull."""
        try:
            return await work
        except (StoreUnavailable, StorageFull):
            raise  # it would refuse all of them
        except AntiphonError as error:
            log.error("response_not_ended", response_id=id, reason=str(error))
            return False

    async def _end_orphan(self, orphan: Orphan) -> bool:
        script = Script.resumed(orphan.response, _readable(orphan))
        last = script.end(ResponseStatus.FAILED)
        ended = self._failed(script, TurnInterrupted("the server that worked on it is gone"))
        first = orphan.events[-1].last + 1 if orphan.events else 0
        batch = EventBatch(first=first, last=first + len(last) - 1, body=encode_events(last))
        final = final_state(ended, self._tools.node, batch)
        if await self._tools.store.run(lambda store: store.finish_response(final)):
            log.warning("response_reaped", response_id=ended.id, events=first + len(last))
        return True

    async def _pay(self) -> None:
        """What runs of this server, crashed ones too, could not tell the store."""
        debts = self._runs.debts
        for id, events in tuple(debts.items()):
            pay = self._withdraw if events.debt is Debt.WITHDRAWAL else self._end_late
            if await self._told(id, pay(events)):
                debts.pop(id, None)

    async def _withdraw(self, events: EventLog) -> bool:
        """Until it was found, or can't be written any more."""
        id, node = events.response.id, self._tools.node
        if await self._tools.store.run(lambda store: store.withdraw_turn(id, node)):
            log.warning("turn_withdrawn_late", response_id=id)
            return True
        return trio.current_time() - events.owed_since > _LATE_S

    async def _end_late(self, events: EventLog) -> bool:
        """As failed, also where it would have been completed: that is what its reader was told."""
        script = Script.resumed(events.response, events.since(0))
        last = script.end(ResponseStatus.FAILED)
        ended = self._failed(script, ActorCrashed(ActorPath("responses"), 1))
        if await write_end(self._tools.store, events, ended, last, owner=self._tools.node):
            log.warning("response_ended_late", response_id=ended.id, events=len(events) + len(last))
        return True

    def _failed(self, script: Script, error: AntiphonError) -> Response:
        return script.response(ResponseStatus.FAILED, self._tools.now_ms(), shown(error))

    async def _regularly(self, task: Callable[[], Awaitable[None]], period_s: float) -> None:
        while True:
            try:
                await task()
            except StoreError as error:
                log.warning("expiry_paused", task=task.__name__, reason=str(error))
            await trio.sleep(period_s)

    async def _expire(self) -> None:
        store, now_ms = self._tools.store, self._tools.now_ms()
        is_more = True
        while is_more:
            receipt = await store.run(lambda store: store.expire(now_ms, limit=_EXPIRE_AT_ONCE))
            await discard(store, self._contents, receipt.contents)
            most = max(receipt.rows.values(), default=0)
            if most:
                log.info("records_expired", **receipt.rows)
            # A busy server makes more in a minute, and one large file may take longer to remove.
            is_more = most >= _EXPIRE_AT_ONCE or receipt.is_unfinished

    async def _sweep(self) -> None:
        swept = await sweep(self._tools.store, self._contents, self._tools.now_ms())
        if swept:
            log.info("contents_swept", contents=len(swept))


def _readable(orphan: Orphan) -> list[ResponseEvent]:
    """Its events, up to the first batch that can't be read: it must end all the same."""
    told: list[ResponseEvent] = []
    for batch in orphan.events:
        try:
            told += decode_events(batch.body)
        except StoreFailed as error:
            log.error("events_unreadable", response_id=orphan.response.id, reason=str(error))
            break
    return told
