"""Where conversations were answered last: bounded, and forgotten once no engine can still hold
their prefix. It holds hashes of conversations, and no text."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from antiphon.actors.routing.route import Stay

_SIZE = 16_384
_HELD_S = 1800.0
"""Prefix caches are a matter of minutes; half an hour is a person's break between two messages."""


@dataclass(frozen=True, slots=True)
class _Seen:
    stay: Stay
    at: float


class Memory:
    """One owner, the router. Times are seconds on any one clock."""

    def __init__(self, size: int = _SIZE) -> None:
        self._size = size
        self._seen: OrderedDict[Hashable, _Seen] = OrderedDict()

    def last(self, conversation: Hashable, now: float) -> Stay | None:
        seen = self._seen.get(conversation)
        return None if seen is None or now - seen.at > _HELD_S else seen.stay

    def note(self, conversation: Hashable, stay: Stay, now: float) -> None:
        self._seen[conversation] = _Seen(stay, now)
        self._seen.move_to_end(conversation)
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)

    def __len__(self) -> int:
        return len(self._seen)
