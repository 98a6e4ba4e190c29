"""When a request that was told to end, or that ended without its last word, has really left the
engine.

Its own final response proves it. TensorRT-LLM may never send that one (#9280 of its issues), but it
hears submits and cancels in order: once a request that was submitted later has spoken, the cancel
has been dealt with. A pure policy; times are of one clock.
"""

from dataclasses import dataclass

from antiphon.ids import EngineRequest


@dataclass(slots=True)
class _Leaving:
    """`after` is how many requests had been submitted by then; `heard_at` is when it last spoke."""

    after: int
    heard_at: float


class Releases:
    """Requests that are leaving. `wait_s` is how long each may take by itself, and again how long
    the proof may take; `limit_s` is for an engine that works and still proves nothing."""

    def __init__(self, wait_s: float, limit_s: float) -> None:
        self._wait_s = wait_s
        self._limit_s = limit_s
        self._leaving: dict[EngineRequest, _Leaving] = {}
        self._proved = 0
        self._probed = 0

    def __len__(self) -> int:
        return len(self._leaving)

    def leave(self, request: EngineRequest, after: int, now: float) -> None:
        """It is on its way out. The first word counts."""
        if request not in self._leaving:
            self._leaving[request] = _Leaving(after, now)

    def heard(self, request: EngineRequest, now: float) -> None:
        """It still speaks, so it is still there: the engine didn't take the abort, or not yet."""
        if (leaving := self._leaving.get(request)) is not None:
            leaving.heard_at = now

    def gone(self, request: EngineRequest) -> None:
        """It said its last word, or was given up."""
        self._leaving.pop(request, None)

    def spoke(self, order: int) -> None:
        """The request that was submitted as number `order` has been given a token."""
        self._proved = max(self._proved, order)

    def due(self, now: float) -> list[EngineRequest]:
        """Those that never said so, and are proved to be gone."""
        return [
            request
            for request, leaving in self._leaving.items()
            if self._is_late(leaving, now) and self._proved > leaving.after
        ]

    def wants_probe(self, now: float) -> bool:
        """Whether a request must be submitted, only to prove something."""
        return any(
            self._is_late(leaving, now) and max(self._probed, self._proved) <= leaving.after
            for leaving in self._leaving.values()
        )

    def probing(self, order: int) -> None:
        """A probe was submitted as number `order`."""
        self._probed = order

    def is_stuck(self, now: float, engine_heard_at: float) -> bool:
        """No proof came, though it had twice the time: the engine doesn't work any more."""
        for leaving in self._leaving.values():
            if self._proved > leaving.after:
                continue
            late_s = now - leaving.heard_at
            silent = now - engine_heard_at >= self._wait_s
            if late_s >= 2 * self._wait_s and (silent or late_s >= self._limit_s):
                return True
        return False

    def _is_late(self, leaving: _Leaving, now: float) -> bool:
        return now - leaving.heard_at >= self._wait_s
