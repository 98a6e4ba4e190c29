"""When a client that was refused asks again: the rules of OpenAI's SDKs. And whether the refusal
was an honest one. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

RETRIES = 2
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_LONGEST_ADVICE_S = 120.0
"""openai-python heeds no longer advice, and doesn't try again before it either."""
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status and what its headers advise; names in lower case. Status 0 is no answer at all."""

    status: int
    headers: Mapping[str, str]

    @property
    def is_shed(self) -> bool:
        """For load or for a limit, and not because something is wrong: with the advice that belongs
        to it."""
        return (self.status == 503 and self.advice_s is not None) or (
            self.status == 429 and (self.advice_s is not None or self._should_retry == "false")
        )

    @property
    def advice_s(self) -> float | None:
        """How long to wait; None if it doesn't say."""
        for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            try:
                seconds = float(self.headers[name]) * unit_s
            except (KeyError, ValueError):
                continue
            if seconds > 0:
                return seconds
        return None

    def pause_s(self, retries: int, dice: random.Random) -> float | None:
        """How long to wait before one more try after so many; None is to give up."""
        advice_s = self.advice_s
        if retries >= RETRIES or self._should_retry == "false":
            return None
        if advice_s is not None:
            return advice_s if advice_s <= _LONGEST_ADVICE_S else None
        if self.status not in (0, 408, 409, 429) and self.status < 500:
            return None
        pause_s = min(_FIRST_PAUSE_S * 2.0**retries, _LONGEST_PAUSE_S)
        return pause_s * (1 - _JITTER * dice.random())

    @property
    def _should_retry(self) -> str | None:
        return self.headers.get("x-should-retry")
