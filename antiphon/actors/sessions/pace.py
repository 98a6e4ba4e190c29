"""How fast a turn's tokens come, for telemetry: to the first one of each generation, between them,
and how the turn ended."""

import trio

from antiphon.errors import AntiphonError
from antiphon.events import SlotText
from antiphon.ids import EngineRequest, ModelName, RequestId
from antiphon.moments import Ended, FirstShown, FirstToken
from antiphon.telemetry import Telemetry
from antiphon.turn_events import Usage

_NOTHING = Usage(prompt_tokens=0, completion_tokens=0)


class Pace:
    """Of one turn, from now on."""

    def __init__(self, telemetry: Telemetry, turn: RequestId) -> None:
        self._telemetry = telemetry
        self._turn = turn
        self._began = trio.current_time()
        self._heard_at: dict[EngineRequest, tuple[float, int]] = {}
        self._longest_gap_s = 0.0
        self._is_shown = False

    def note(self, model: ModelName, news: SlotText, *, is_retry: bool) -> None:
        """A generation has said so much; one that is a retry is no first of its choice."""
        now = trio.current_time()
        before = self._heard_at.get(news.request)
        self._heard_at[news.request] = (now, news.tokens)
        if before is None:
            if not is_retry:
                self._telemetry.first_token(model, now - self._began)
            self._telemetry.turn_noted(self._turn, FirstToken(generation=news.request))
            self._telemetry.tokens_generated(model, news.tokens, 0.0)
        elif news.tokens > before[1]:
            gap_s = now - before[0]
            self._telemetry.tokens_generated(model, news.tokens - before[1], gap_s)
            self._longest_gap_s = max(self._longest_gap_s, gap_s)

    def shown(self) -> None:
        """Text leaves."""
        if not self._is_shown:
            self._is_shown = True
            self._telemetry.turn_noted(self._turn, FirstShown())

    def ended(
        self, model: ModelName, reason: str, error: AntiphonError | None, used: Usage | None
    ) -> None:
        """The turn is over; `used` is None where it has brought nothing."""
        used = used or _NOTHING
        self._telemetry.turn_finished(model, reason, trio.current_time() - self._began)
        self._telemetry.turn_noted(
            self._turn,
            Ended(
                reason=reason,
                error=None if error is None else type(error).__name__,
                prompt_tokens=used.prompt_tokens,
                cached_tokens=used.cached_tokens,
                completion_tokens=used.completion_tokens,
                longest_gap_s=self._longest_gap_s,
            ),
        )
