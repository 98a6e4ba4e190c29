"""A replica's answer, chunk by chunk, up to its proper end.

Keeps the rule that an answer without a final chunk has failed, however politely its stream ended.
"""

from collections import deque

import trio

from antiphon.engine.upstream.chunks import DONE, Chunk, read_chunk
from antiphon.engine.upstream.exchange import Exchange
from antiphon.engine.upstream.sse import Event, SseDecoder
from antiphon.engine.upstream.trouble import Kind, Trouble

_TRAIL_S = 2.0
"""After the final chunk: usage, if it comes, comes at once."""
_LONGEST_WHOLE = 16 * 1024 * 1024


class Answer:
    """One reader. Before the first token any byte shows life, a proxy's comment too, since a
    request may wait in a queue; after it only chunks do."""

    def __init__(self, exchange: Exchange, idle_s: float) -> None:
        self._exchange = exchange
        self._idle_s = idle_s
        self._decoder = SseDecoder()
        self._events: deque[Event] = deque()
        self._has_token = False
        self._has_end = False
        self._is_over = False
        self._heard_at = trio.current_time()

    async def next_chunk(self) -> Chunk | None:
        """The next chunk; None after the last. Raises Trouble."""
        while True:
            while self._events:
                event = self._events.popleft()
                if event.data.strip() == DONE and not event.is_error:
                    self._check(Kind.BROKEN, "it said DONE without a final chunk")
                    return None
                chunk = read_chunk(event)
                self._heard_at = trio.current_time()
                self._has_token = self._has_token or chunk.is_token
                self._has_end = self._has_end or chunk.end is not None
                return chunk
            if self._is_over:
                self._check(Kind.LOST, "its stream ended without a final chunk")
                return None
            await self._more()

    def _check(self, kind: Kind, fact: str) -> None:
        if not self._has_end:
            raise Trouble(kind, fact)

    async def _more(self) -> None:
        if self._exchange.is_json:  # it doesn't stream, or this is an error
            data = await self._exchange.read(_LONGEST_WHOLE, self._idle_s)
            self._events.append(Event(data.decode("utf-8", "replace")))
            self._is_over = True
            return
        patience_s = _TRAIL_S if self._has_end else self._idle_s
        left_s = max(0.0, self._heard_at + patience_s - trio.current_time())
        try:
            data_or_end = await self._exchange.receive(left_s)
        except Trouble:
            if not self._has_end:
                raise
            self._is_over = True  # all that matters has come
            return
        if not self._has_token:
            self._heard_at = trio.current_time()
        if data_or_end is None:
            self._events.extend(self._decoder.finish())
            self._is_over = True
        else:
            self._events.extend(self._decoder.feed(data_or_end))
