"""The responses that run on this server: how they are made, watched and cancelled.

It is what HTTP sees of them (`ports.Responses`). Refuses new ones while the server drains.
"""

import itertools
from collections import Counter
from collections.abc import Sequence

import trio

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.monitor import Down
from antiphon.actors.ref import Ref
from antiphon.actors.responses.log import Debt, EventLog
from antiphon.actors.responses.run import CancelRun, Run, RunTools
from antiphon.actors.responses.watching import LiveWatcher, StoredWatcher, stored_response
from antiphon.errors import ActorCrashed, Draining, RecordNotFound
from antiphon.events import CancelCause
from antiphon.ids import ResponseId, UserId
from antiphon.narration import Watcher
from antiphon.ports import NewAnswer
from antiphon.records import Response
from antiphon.supervision.spec import NO_BACKOFF, Grace, Restart
from antiphon.supervision.supervisor import Supervisor

_MAILBOX = 64
"""Nothing but cancels comes, and they take the system lane."""
_STOP_S = 4.0
"""For a turn to end, and for the end to be stored."""
_CANCEL_S = 10.0
"""How long a cancel waits to tell how the response ended."""
_LOOK_S = 0.25


class RunDirectory:
    """Runs are spread over `shards`, as sessions are."""

    def __init__(self, tools: RunTools, shards: Sequence[tuple[str, Supervisor]]) -> None:
        self._tools = tools
        self._shards = tuple(shards)
        self._numbers = itertools.count(1)
        self._live: dict[ResponseId, tuple[EventLog, Ref[CancelRun]]] = {}
        self._watchers: Counter[ResponseId] = Counter()
        self._draining = False
        self._changed = trio.Event()
        self._ended = trio.Event()
        self.debts: dict[ResponseId, EventLog] = {}
        """Responses whose run is over, and whose state in the store is not true yet: the reaper
        pays without waiting for a lease, which this server goes on renewing."""

    async def create(self, new: NewAnswer) -> Watcher:
        """Raises what accept_turn and `context` raise, Draining, MaxChildren."""
        while True:
            if self._draining:
                raise Draining(retry_after_s=5.0)
            events = EventLog(new.response, kept=new.stored)
            watcher = self._watch(events, self._start(new, events))
            try:
                await events.accepted.wait()
            except trio.Cancelled:
                watcher.cancel(CancelCause.DISCONNECT)
                raise
            if events.refusal is not None:
                raise events.refusal
            if events.repeats is None:
                return watcher
            earlier = await self._attached(new, events.repeats)
            if earlier is not None:
                return earlier
            await self._gone(new.response.id)

    async def watch(self, user: UserId, id: ResponseId) -> Watcher:
        await trio.lowlevel.checkpoint()
        if (live := self._mine(user, id)) is not None:
            return self._watch(*live)
        return StoredWatcher(await stored_response(self._tools.store, user, id), self._tools.store)

    async def cancel(self, user: UserId, id: ResponseId) -> Response:
        """One that doesn't end in time is returned as it stands."""
        if (live := self._mine(user, id)) is not None:
            events, ref = live
            ref.tell_system(CancelRun(cause=CancelCause.REQUESTED))
            with trio.move_on_after(_CANCEL_S):
                await events.ended.wait()
            if events.refusal is None:
                return events.response
        store = self._tools.store
        await stored_response(store, user, id)
        await store.run(lambda store: store.request_cancel(user, id))
        response = await stored_response(store, user, id)
        with trio.move_on_after(_CANCEL_S):
            while not response.status.is_final:
                await trio.sleep(_LOOK_S)
                response = await stored_response(store, user, id)
        return response

    def logs(self) -> list[EventLog]:
        """Of all runs that were accepted."""
        return [events for events, _ in self._live.values() if events.accepted.is_set()]

    @property
    def open_turns(self) -> int:
        return len(self._live)

    def interrupt(self, id: ResponseId, cause: CancelCause) -> None:
        """End a run, if it still runs."""
        if (live := self._live.get(id)) is not None:
            live[1].tell_system(CancelRun(cause=cause))

    def refuse_new_turns(self) -> None:
        """From now on the server drains."""
        self._draining = True

    def cancel_all(self, cause: CancelCause) -> None:
        """End everything that runs."""
        for id in self._live:
            self.interrupt(id, cause)

    async def wait_idle(self) -> None:
        """Return when nothing runs."""
        while self._live:
            await self._changed.wait()

    async def some_running(self) -> None:
        """Return when anything runs."""
        while not self._live:
            await self._changed.wait()

    def next_end(self) -> trio.Event:
        """Set when a turn of a conversation ends here the next time."""
        return self._ended

    async def _attached(self, new: NewAnswer, id: ResponseId) -> Watcher | None:
        """A reader of what was accepted before; None where nothing is left of that, or nothing
        that anybody came back for: it was refused in the end, or is being cancelled."""
        if new.is_retry and self._is_abandoned(id):
            await self._gone(id)
            return None
        owed = self.debts.get(id)
        if owed is not None and owed.debt is Debt.WITHDRAWAL:
            node = self._tools.node
            await self._tools.store.run(lambda store: store.withdraw_turn(id, node))
            self.debts.pop(id, None)
            return None
        try:
            return await self.watch(new.response.user, id)
        except RecordNotFound:
            return None

    def _is_abandoned(self, id: ResponseId) -> bool:
        """Whether it runs here and is being cancelled, since its last reader left."""
        live = self._live.get(id)
        return live is not None and not live[0].response.background and not self._watchers[id]

    async def _gone(self, id: ResponseId) -> None:
        while id in self._live:
            await self._changed.wait()

    def _mine(self, user: UserId, id: ResponseId) -> tuple[EventLog, Ref[CancelRun]] | None:
        live = self._live.get(id)
        if live is None or live[0].response.user != user or not live[0].kept:
            return None
        return live

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _start(self, new: NewAnswer, events: EventLog) -> Ref[CancelRun]:
        number = next(self._numbers)
        path, shard = self._shards[number % len(self._shards)]
        name = f"run-{number}"
        address: Address[CancelRun] = Address(f"{path}/{name}", capacity=_MAILBOX)
        shard.start_child_nowait(
            actor_child(
                name,
                lambda: Run(new, events, self._tools),
                address,
                restart=Restart.TEMPORARY,
                shutdown=Grace(_STOP_S),
                backoff=NO_BACKOFF,
            )
        )
        id = new.response.id

        def down(news: Down) -> None:
            del self._live[id]
            del self._watchers[id]
            self._wake()
            if not events.settled:  # it crashed
                accepted = events.accepted.is_set()
                events.owe(Debt.END if accepted else Debt.WITHDRAWAL)
                events.refuse(ActorCrashed(news.path, news.incarnation))
            if events.kept and events.debt is not None:
                self.debts[id] = events
            if events.response.conversation is not None:
                self._ended.set()
                self._ended = trio.Event()

        self._live[id] = (events, address.ref)
        address.ref.monitor(down)
        self._wake()
        return address.ref

    def _watch(self, events: EventLog, ref: Ref[CancelRun]) -> LiveWatcher:
        id = events.response.id
        self._watchers[id] += 1

        def leave(cause: CancelCause) -> None:
            self._watchers[id] -= 1
            if self._is_abandoned(id):
                ref.tell_system(CancelRun(cause=cause))

        return LiveWatcher(events, leave)
