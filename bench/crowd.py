"""Many callers, each arriving at its own time whatever became of the others: an open loop. One
thread and one selector, so that the machine's time is the server's."""

import heapq
import selectors
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.client import Call, start, take

_IDLE_S = 0.2


@dataclass(slots=True, eq=False)
class Visit:
    """One call, `at_s` seconds after the crowd begins; `then` makes the call that follows when this
    one is over. Times are CLOCK_MONOTONIC."""

    at_s: float
    call: Call
    group: str = ""
    then: Callable[["Visit"], "Visit | None"] = lambda visit: None
    due_at: float = 0.0
    over_at: float | None = None

    @property
    def first_text_s(self) -> float | None:
        """From when it was due, so that a server that is slow to accept is not excused."""
        first = self.call.first_text_at
        return None if first is None else first - self.due_at

    @property
    def total_s(self) -> float:
        return (self.over_at or time.monotonic()) - self.due_at


@dataclass(slots=True)
class Crowd:
    """All that came, in the order in which it was over."""

    began: float
    visits: list[Visit] = field(default_factory=list)
    unfinished: list[Visit] = field(default_factory=list)

    def of(self, group: str) -> list[Visit]:
        return [visit for visit in self.visits if visit.group == group]


def attend(
    address: tuple[str, int],
    visits: Iterable[Visit],
    *,
    for_s: float,
    patience_s: float,
    until: Callable[[Crowd], bool] = lambda crowd: False,
) -> Crowd:
    """Let them come for `for_s` seconds, or until `until` holds, and wait `patience_s` for the
    rest; what is unfinished then is hung up on."""
    began = time.monotonic()
    crowd = Crowd(began)
    waiting: list[tuple[float, int, Visit]] = []
    number = 0

    def expect(visit: Visit, due_at: float) -> None:
        nonlocal number
        number += 1
        visit.due_at = due_at
        heapq.heappush(waiting, (due_at, number, visit))

    for visit in visits:
        expect(visit, began + visit.at_s)
    ends_at = began + for_s
    closing = False
    with selectors.DefaultSelector() as selector:
        while True:
            now = time.monotonic()
            if not closing and (now >= ends_at or until(crowd)):
                closing, ends_at = True, now + patience_s
                waiting.clear()
            if closing and (not selector.get_map() or now >= ends_at):
                break
            while waiting and waiting[0][0] <= now:
                _, _, visit = heapq.heappop(waiting)
                start(address, visit.call)
                assert visit.call.sock is not None
                selector.register(visit.call.sock, selectors.EVENT_READ, visit)
            next_at = waiting[0][0] if waiting else now + _IDLE_S
            wait_s = max(0.0, min(next_at - time.monotonic(), _IDLE_S))
            if not selector.get_map():
                time.sleep(wait_s)
            for key, _ in selector.select(wait_s):
                visit = key.data
                if take(visit.call):
                    continue
                selector.unregister(key.fileobj)
                visit.over_at = time.monotonic()
                crowd.visits.append(visit)
                if not closing and (following := visit.then(visit)) is not None:
                    expect(following, visit.over_at + following.at_s)
        for key in list(selector.get_map().values()):
            crowd.unfinished.append(key.data)
            key.data.call.sock.close()
    return crowd
