"""Reading a response: one that runs here, from its log, and any other one, from the store.

A reader gets every event from the first on, however late it comes; and when the last reader of a
foreground response leaves, nobody wants it any more.
"""

from collections.abc import Callable, Sequence

import trio

from antiphon.actors.responses.log import EventLog
from antiphon.actors.responses.retold import told
from antiphon.errors import AntiphonError, QueueFull, RecordNotFound
from antiphon.events import CancelCause
from antiphon.ids import ResponseId, UserId
from antiphon.narration import Ended, ResponseEvent, decode_events
from antiphon.records import Response
from antiphon.storage import StoreAccess
from antiphon.turn_events import TurnPlaced

_LOOK_S = 0.5
"""Between two looks at a response that runs on another server."""


class LiveWatcher:
    """A reader of a log. `leave` is called once, when it goes before the end."""

    def __init__(self, events: EventLog, leave: Callable[[CancelCause], None]) -> None:
        self._log = events
        self._leave: Callable[[CancelCause], None] | None = leave
        self._read = 0

    @property
    def response(self) -> Response:
        return self._log.response

    @property
    def placed(self) -> TurnPlaced | None:
        return self._log.placed

    @property
    def error(self) -> AntiphonError | None:
        return self._log.error

    async def next_events(self) -> Sequence[ResponseEvent]:
        await self._log.grown(self._read)
        if self._log.refusal is not None:
            raise self._log.refusal
        events = self._log.since(self._read)
        self._read += len(events)
        return events

    def cancel(self, cause: CancelCause) -> None:
        leave, self._leave = self._leave, None
        if leave is not None and not self._log.settled:
            leave(cause)


class StoredWatcher:
    """A reader of what the store has. Where the response still runs, on another server, it looks
    again and again."""

    def __init__(self, response: Response, store: StoreAccess) -> None:
        self._response = response
        self._store = store
        self._read = 0
        self._looked = False
        self._finished = False

    @property
    def response(self) -> Response:
        return self._response

    @property
    def placed(self) -> TurnPlaced | None:
        return None

    @property
    def error(self) -> AntiphonError | None:
        return None

    async def next_events(self) -> Sequence[ResponseEvent]:
        """Raises RecordNotFound when it was deleted meanwhile, StoreFailed when its log can't be
        read."""
        while not self._finished:
            if self._looked and not self._response.status.is_final:
                await trio.sleep(_LOOK_S)
            if events := await self._look():
                return events
        return ()

    @property
    def id(self) -> ResponseId:
        return self._response.id

    def cancel(self, cause: CancelCause) -> None:
        """Whoever reads from afar decides nothing."""

    async def _look(self) -> Sequence[ResponseEvent]:
        """What is new. Nothing counts as read before the last wait is over."""
        user, id, read = self._response.user, self.id, self._read
        # Its status first: events that are stored later than that are asked for again.
        response = await self._stored()
        batches = await self._store.run(lambda store: store.events(user, id, after=read - 1))
        events: list[ResponseEvent] = []
        for batch in batches:
            fresh = decode_events(batch.body)[max(0, read - batch.first) :]
            events += fresh
            read += len(fresh)
        if not events and not read and response.status.is_final:
            events = list(told(response))  # its log has outlived its time
            read = len(events)
        ended = bool(events) and isinstance(events[-1], Ended)
        if ended and not response.status.is_final:  # between the two looks
            response = await self._stored()
        self._response, self._read, self._looked = response, read, True
        self._finished = response.status.is_final and (ended or not events)
        return events

    async def _stored(self) -> Response:
        """Raises RecordNotFound, and QueueFull for one that was refused before any work: of such
        a response nothing is left."""
        try:
            return await stored_response(self._store, self._response.user, self.id)
        except RecordNotFound as error:
            if self._read or self._response.status.is_final:
                raise
            raise QueueFull("its server had no room for it", retry_after_s=1.0) from error


async def stored_response(store: StoreAccess, user: UserId, id: ResponseId) -> Response:
    """Raises RecordNotFound, StoreUnavailable."""
    response = await store.run(lambda store: store.response(user, id))
    if response is None:
        raise RecordNotFound("response", id, "response_id")
    return response
