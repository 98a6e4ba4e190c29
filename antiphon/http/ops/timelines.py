"""What became of the last turns, moment by moment: a bounded memory for whoever looks after the
server. It is told the time, and knows no text, since nobody tells it any.

Turns that run are kept apart, so that a long one isn't pushed out by the many that end meanwhile.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from antiphon.ids import RequestId
from antiphon.moments import Arrived, CancelAsked, Ended, Moment

_ENDED = 500
_RUNNING = 8192
"""More than sessions there can be: should an end ever be missed, it costs memory no further."""
_MOMENTS = 96
"""Of one turn: a chat of eight choices, each paused several times, has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A moment, so long after the arrival."""

    at_s: float
    moment: Moment


@dataclass(slots=True, kw_only=True)
class Timeline:
    """One turn. Times are on the clock of who notes them; `arrived_s` is of the wall."""

    number: int
    request_id: RequestId
    arrived: Arrived
    arrived_s: float
    began: float
    noted: list[Noted] = field(default_factory=list)
    missed: int = 0
    """Moments beyond those that are kept."""
    ended: Ended | None = None
    ended_at_s: float = 0.0

    def lasts_s(self, now: float) -> float:
        """So far, or until its end."""
        return now - self.began if self.ended is None else self.ended_at_s


class Timelines:
    """The last turns, by the id of their request: of turns with the same one, the last counts."""

    def __init__(self, *, ended: int = _ENDED, running: int = _RUNNING) -> None:
        self._most_ended = ended
        self._most_running = running
        self._running: OrderedDict[RequestId, Timeline] = OrderedDict()
        self._ended: OrderedDict[RequestId, Timeline] = OrderedDict()
        self._number = 0
        self.ends: Counter[str] = Counter()
        """Turns by how they ended, since the start: bounded, as the classes of errors are."""

    def note(self, request: RequestId, moment: Moment, now: float, wall_s: float) -> None:
        """What comes of a turn that nobody remembers is forgotten too."""
        if isinstance(moment, Arrived):
            self._begin(request, moment, now, wall_s)
            return
        line = self._running.get(request) or self._ended.get(request)
        if line is None:
            return
        if isinstance(moment, Ended):
            if line.ended is not None:
                return
            self._end(line, moment, now)
        if len(line.noted) < _MOMENTS or isinstance(moment, Ended):
            line.noted.append(Noted(at_s=now - line.began, moment=moment))
        else:
            line.missed += 1

    def find(self, id: str) -> Timeline | None:
        """By its request's id, or by its response's."""
        request = RequestId(id)
        line = self._running.get(request) or self._ended.get(request)
        if line is not None:
            return line
        return next((each for each in self if each.arrived.response == id), None)

    def __iter__(self) -> Iterator[Timeline]:
        """Those that run, then those that ended, the latest first."""
        yield from reversed(self._running.values())
        yield from reversed(self._ended.values())

    @property
    def running(self) -> int:
        return len(self._running)

    def _begin(self, request: RequestId, arrived: Arrived, now: float, wall_s: float) -> None:
        self._number += 1
        self._ended.pop(request, None)
        self._running.pop(request, None)
        self._running[request] = Timeline(
            number=self._number, request_id=request, arrived=arrived, arrived_s=wall_s, began=now
        )
        while len(self._running) > self._most_running:
            self._running.popitem(last=False)

    def _end(self, line: Timeline, ended: Ended, now: float) -> None:
        line.ended, line.ended_at_s = ended, now - line.began
        self.ends[_end_of(line, ended)] += 1
        del self._running[line.request_id]
        self._ended[line.request_id] = line
        while len(self._ended) > self._most_ended:
            self._ended.popitem(last=False)


def _end_of(line: Timeline, ended: Ended) -> str:
    """What it counts as: who cancelled it, the class of its error, or how the model ended it."""
    causes = (each.moment.cause for each in line.noted if isinstance(each.moment, CancelAsked))
    if ended.reason == "abort" and (cause := next(causes, None)) is not None:
        return f"cancelled: {cause.value}"
    return ended.error or ended.reason
