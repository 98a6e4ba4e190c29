"""How fast a turn's tokens come, for telemetry: to the first one of each generation, and between
them."""

import trio

from antiphon.events import SlotText
from antiphon.ids import EngineRequest, ModelName
from antiphon.telemetry import Telemetry


class Pace:
    """Of one turn, from now on."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._began = trio.current_time()
        self._heard_at: dict[EngineRequest, tuple[float, int]] = {}

    @property
    def seconds(self) -> float:
        """Since it began."""
        return trio.current_time() - self._began

    def note(self, model: ModelName, news: SlotText, *, is_retry: bool) -> None:
        """A generation has said so much; one that is a retry is no first of its choice."""
        now = trio.current_time()
        before = self._heard_at.get(news.request)
        self._heard_at[news.request] = (now, news.tokens)
        if before is None:
            if not is_retry:
                self._telemetry.first_token(model, now - self._began)
            self._telemetry.tokens_generated(model, news.tokens, 0.0)
        elif news.tokens > before[1]:
            self._telemetry.tokens_generated(model, news.tokens - before[1], now - before[0])
