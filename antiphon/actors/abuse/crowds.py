"""How many different members a key was seen with lately: users of an address, addresses of an API
key. Pure, bounded in keys and in members; the time is given."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_WINDOW_S = 3_600.0
_MEMBERS = 64
"""Of one key, the ones seen last. Who comes with more than that is new each time."""


class Crowds(Generic[K]):
    """The keys seen last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[K, dict[str, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def meet(self, key: K, member: str, now: float, *, size: int) -> int:
        """How many members it has with this one; 0 when this one is no news."""
        members = self._seen.get(key)
        if members is None:
            members = self._seen[key] = {}
        self._seen.move_to_end(key)
        while len(self._seen) > size:
            self._seen.popitem(last=False)
        is_new = now - members.pop(member, -_WINDOW_S) >= _WINDOW_S
        members[member] = now
        while len(members) > _MEMBERS or now - next(iter(members.values())) >= _WINDOW_S:
            del members[next(iter(members))]
        return len(members) if is_new else 0

    def forget(self, key: K) -> None:
        self._seen.pop(key, None)
