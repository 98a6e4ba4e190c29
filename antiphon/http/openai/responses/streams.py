"""Reading a response for a client: whole, or as a stream whose headers wait for the first events,
so that a refusal has a real status. What is ready at once is written at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from antiphon import faults
from antiphon.errors import AntiphonError, RequestError, TurnInterrupted
from antiphon.fault_plan import Site
from antiphon.http.asgi import PumpedResponse, Write
from antiphon.http.exchange import Exchange
from antiphon.http.openai.placed import placed_headers
from antiphon.http.openai.responses.errors import told_about
from antiphon.http.openai.responses.render import EventRenderer
from antiphon.http.openai.sse import HEARTBEAT, STREAM_HEADERS
from antiphon.narration import Ended, ResponseEvent, Watcher
from antiphon.records import Response, ResponseStatus
from antiphon.settings import HttpSettings
from antiphon.telemetry import Telemetry
from antiphon.turn_events import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One watcher, read for one exchange. The exchange holds the watcher from here on."""

    exchange: Exchange
    watcher: Watcher
    http: Callable[[], HttpSettings]
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self.exchange.hold(self.watcher)
        self.exchange.facts["response_id"] = self.watcher.response.id

    async def to_the_end(self) -> Response:
        """The response as it ended. Raises what it failed of, where this server saw that."""
        while not is_last(await self._next_events()):
            pass
        response, error = self.watcher.response, self.watcher.error
        if response.status is ResponseStatus.FAILED and error is not None:
            raise told_about(error)
        return response

    async def as_stream(self, renderer: EventRenderer) -> PumpedResponse:
        """Raises what the response is refused with, when that is known in time."""
        first: Sequence[ResponseEvent] | None = None
        with trio.move_on_after(self.http().headers_after_s):
            first = await self._next_events()
        self.exchange.is_stream = True

        async def pump(write: Write) -> None:
            self.telemetry.sse_opened()
            try:
                await self._pump(renderer, first, write)
            finally:
                self.telemetry.sse_closed()

        return PumpedResponse(pump, STREAM_HEADERS | placed_headers(self.watcher.placed))

    async def _pump(
        self, renderer: EventRenderer, first: Sequence[ResponseEvent] | None, write: Write
    ) -> None:
        events = first
        if events is None:
            await write(HEARTBEAT)
        try:
            while True:
                if events is None:
                    events = await self._next_or_heartbeat(write)
                await faults.pause(Site.HTTP_STREAM)
                if data := renderer.render(events, self.watcher.response):
                    await write(data)
                if is_last(events):
                    return
                events = None
        except AntiphonError as error:
            self.exchange.facts["error"] = type(error).__name__
            await write(renderer.render_error(error))

    async def _next_or_heartbeat(self, write: Write) -> Sequence[ResponseEvent]:
        """The next events, with a comment line for every `heartbeat_s` of silence before them."""
        while True:
            # A plain scope: this runs for every token, and move_on_after costs twice as much.
            deadline = trio.current_time() + self.http().heartbeat_s
            with trio.CancelScope(deadline=deadline):
                return await self._next_events()
            await write(HEARTBEAT)

    async def _next_events(self) -> Sequence[ResponseEvent]:
        """Keeps what the exchange must know, before the next checkpoint can lose it."""
        try:
            events = await self.watcher.next_events()
        except RequestError as error:
            self.exchange.turn_ended()  # refused, or deleted: there is nothing to give back
            raise told_about(error) from error
        if not events:  # its log has no end, though the response has
            status = self.watcher.response.status
            if not status.is_final:
                raise TurnInterrupted("its end is unknown")
            events = (Ended(status=status),)
        if is_last(events):
            self._note_end()
        return events

    def _note_end(self) -> None:
        response = self.watcher.response
        if (usage := response.usage) is not None:
            self.exchange.usage = Usage(
                prompt_tokens=usage.input,
                completion_tokens=usage.output,
                cached_tokens=usage.cached,
            )
        self.exchange.finish = response.incomplete_reason or response.status
        self.exchange.turn_ended()


def is_last(events: Sequence[ResponseEvent]) -> bool:
    """Whether nothing follows."""
    return isinstance(events[-1], Ended)
