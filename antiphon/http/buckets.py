"""Token buckets by key, bounded in number: pure, with the time given."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and from then on so many a second. 0 a second is no limit."""

    per_s: float
    burst: int


class Buckets(Generic[K]):
    """The `size` keys seen last; one that was forgotten begins with a full bucket again. The rate
    is given with each question, since it may change."""

    def __init__(self) -> None:
        self._levels: OrderedDict[K, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, key: K, rate: Rate, now: float, *, size: int) -> float | None:
        """One of it; or how many seconds until there is one, and nothing is taken."""
        if not rate.per_s:
            return None
        level = self._level(key, rate, now)
        if level >= 1:
            self._put(key, level - 1, now, size)
            return None
        self._put(key, level, now, size)
        return (1 - level) / rate.per_s

    def wait(self, key: K, rate: Rate, now: float) -> float | None:
        """As `take`, without taking."""
        if not rate.per_s:
            return None
        level = self._level(key, rate, now)
        return None if level >= 1 else (1 - level) / rate.per_s

    def _level(self, key: K, rate: Rate, now: float) -> float:
        known = self._levels.get(key)
        if known is None:
            return rate.burst
        level, at = known
        return min(float(rate.burst), level + (now - at) * rate.per_s)

    def _put(self, key: K, level: float, now: float, size: int) -> None:
        self._levels[key] = (level, now)
        self._levels.move_to_end(key)
        while len(self._levels) > size:
            self._levels.popitem(last=False)
