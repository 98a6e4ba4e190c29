"""What was found in the store a moment ago, by key: bounded in number and in age. Pure; `now` is
Trio's clock."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Remembered(Generic[V]):
    """`value` was true at `read_at`."""

    value: V
    read_at: float

    def age_s(self, now: float) -> float:
        return now - self.read_at


class Cache(Generic[V]):
    """The `size` values used last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[str, Remembered[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Remembered[V] | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: str, value: V, now: float) -> None:
        self._entries[key] = Remembered(value, now)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def where(self, holds: Callable[[V], bool]) -> tuple[str, ...]:
        """The keys of the values of which that is so: it looks at all of them."""
        return tuple(key for key, entry in self._entries.items() if holds(entry.value))

    def forget(self, key: str) -> None:
        self._entries.pop(key, None)
