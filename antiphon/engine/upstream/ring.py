"""Consistent hashing: which replica a conversation belongs to, and which ones come next.

Pure. A replica that leaves gives away its own conversations and moves no others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from hashlib import blake2b

_POINTS = 160
"""Places of each replica on the ring: shares then differ by about a twelfth of their mean."""


class Ring:
    """Immutable. Names may come in any order and give the same ring."""

    def __init__(self, names: Iterable[str]) -> None:
        places = sorted(
            (_place(f"{name}#{i}"), name) for name in set(names) for i in range(_POINTS)
        )
        self._places = [place for place, _ in places]
        self._names = [name for _, name in places]
        self.size = len(set(self._names))

    def walk(self, key: str) -> Iterator[str]:
        """Every name once: the owner of `key`, then who would own it without those before."""
        start = bisect_right(self._places, _place(key))
        seen: set[str] = set()
        for index in range(len(self._names)):
            name = self._names[(start + index) % len(self._names)]
            if name not in seen:
                seen.add(name)
                yield name
                if len(seen) == self.size:
                    return


def _place(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
