"""What waits for a worker: bounded by its texts, handed out together, and never kept for somebody
who no longer waits."""

from collections import deque
from collections.abc import Callable

from antiphon.actors.moderation.messages import Wanted

BATCH_TEXTS = 64
BATCH_CHARACTERS = 65_536
"""In one batch, unless a single request has more: short enough that who comes next waits some tens
of milliseconds at most."""


class Backlog:
    """First come, first served. `limit` is asked for at every addition: it may change."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._waiting: deque[Wanted] = deque()

    def __len__(self) -> int:
        """Texts that somebody waits for."""
        return sum(len(wanted.texts) for wanted in self._waiting if not wanted.reply.closed)

    def add(self, wanted: Wanted) -> bool:
        """False when there is no room. A request of more texts than may ever wait is let in where
        nothing else waits."""
        limit, depth = self._limit(), len(self)
        if depth and depth + len(wanted.texts) > limit:
            return False
        if len(self._waiting) >= limit:  # of which most have been given up
            self._waiting = deque(each for each in self._waiting if not each.reply.closed)
        self._waiting.append(wanted)
        return True

    def take(self, now: float) -> tuple[Wanted, ...]:
        """The next batch; empty when nobody waits."""
        batch: list[Wanted] = []
        texts = characters = 0
        while self._waiting:
            first = self._waiting[0]
            if first.reply.closed or first.reply.deadline <= now:
                self._waiting.popleft()  # its asker has left, or is about to be told so
                continue
            texts += len(first.texts)
            characters += sum(map(len, first.texts))
            if batch and (texts > BATCH_TEXTS or characters > BATCH_CHARACTERS):
                break
            batch.append(self._waiting.popleft())
        return tuple(batch)
