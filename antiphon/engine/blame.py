"""Who is blamed when a step throws. A pure policy for every engine that names nobody itself.

All requests of a throwing step lose their place in the pipeline. Those that have shown tokens are
put back at once; the others are put back one by one, on trial until their first token. Whoever is
new meanwhile waits its turn, since a trial among strangers proves nothing.
"""

from collections import deque
from dataclasses import dataclass, field

from antiphon.engine.contract import EngineBroken
from antiphon.ids import EngineRequest

_MAX_STRIKES = 3
_MAX_ALONE = 1
"""Of a throw that would have come anyway the only suspect may be innocent; of two it isn't."""
_MAX_IN_A_ROW = 16
"""Throwing steps without a single token between them: seven culprits in a row take fifteen. More
is not the requests' fault."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the requests of a step that threw; those in neither list are put back."""

    failed: list[EngineRequest]
    parked: list[EngineRequest]


@dataclass(slots=True)
class Blame:
    """Remembers throws and trials of one engine."""

    _strikes: dict[EngineRequest, int] = field(default_factory=dict)
    _alone: dict[EngineRequest, int] = field(default_factory=dict)
    _parked: deque[EngineRequest] = field(default_factory=deque)
    _trial: EngineRequest | None = None
    _in_a_row: int = 0

    @property
    def alert(self) -> bool:
        """A step threw lately, so that `gave_token` wants to know."""
        return self._in_a_row > 0 or self._trial is not None

    def step_threw(self, live: list[EngineRequest], shown: set[EngineRequest]) -> Verdict:
        """Judge the requests that were in the pipeline; `shown` have given a token before. Raises
        EngineBroken when it throws again and again whoever is in it."""
        self._in_a_row += 1
        if self._in_a_row > _MAX_IN_A_ROW or not live:
            raise EngineBroken(f"{self._in_a_row} throwing steps in a row")
        # Some may have come between the throw and the verdict.
        strangers = [request for request in live if request not in shown | {self._trial}]
        on_trial = [] if self._trial is None else [self._trial]
        suspects = on_trial + strangers or live
        failed: list[EngineRequest] = []
        parked: list[EngineRequest] = []
        for request in suspects:
            strikes = self._strikes[request] = self._strikes.get(request, 0) + 1
            alone = self._alone[request] = self._alone.get(request, 0) + (len(suspects) == 1)
            is_guilty = alone > _MAX_ALONE or strikes > _MAX_STRIKES
            (failed if is_guilty else parked).append(request)
        self._trial = None
        for request in failed:
            self.forget(request)
        self._parked.extend(parked)
        return Verdict(failed, parked)

    def holds(self, request: EngineRequest) -> bool:
        """Whether a new request has to wait for a trial of its own; it will be the next one's."""
        if self._trial is None and not self._parked:
            return False
        self._parked.append(request)
        return True

    def next_trial(self) -> EngineRequest | None:
        """The request to put back now, if one waits and nobody else is on trial."""
        if self._trial is not None or not self._parked:
            return None
        self._trial = self._parked.popleft()
        return self._trial

    def gave_token(self, request: EngineRequest) -> None:
        """The step went well for this one, so a trial of it is over."""
        self._in_a_row = 0
        if request == self._trial:
            self._trial = None

    def forget(self, request: EngineRequest) -> None:
        """It ended, whichever way."""
        self._strikes.pop(request, None)
        self._alone.pop(request, None)
        if request == self._trial:
            self._trial = None
        if request in self._parked:
            self._parked.remove(request)
