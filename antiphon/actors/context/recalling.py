"""Which memories come first where not all may be shown. Pure.

Those that the user has come closest to lately: what they say is gone through from the first
message to the last, and each brings what it speaks of to the front. So the choice changes only when
somebody speaks of what isn't shown, and a prompt begins as the one before it did.
"""

import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_LOOKED_AT = 2_000
"""Characters of a message: who speaks of themselves does so in fewer."""
_SHORTEST = 3
_COMMON = 0.34
"""A word in more than that part of the memories says nothing of any of them."""


def ranks(memories: Sequence[str], said: Sequence[str]) -> tuple[int, ...]:
    """The place of each memory, 0 being the one to be shown before all others."""
    homes = _homes(memories)
    order = list(range(len(memories)))[::-1]  # without a word of them, the latest
    for text in said:
        near: Counter[int] = Counter()
        for word in _words(text[:_LOOKED_AT]):
            for memory in homes.get(word, ()):
                near[memory] += 1
        # The one that is spoken of most ends up first.
        for memory, _ in sorted(near.items(), key=lambda each: (each[1], each[0])):
            order.remove(memory)
            order.insert(0, memory)
    places = [0] * len(memories)
    for place, memory in enumerate(order):
        places[memory] = place
    return tuple(places)


def _homes(memories: Sequence[str]) -> dict[str, list[int]]:
    """Which memories have a word, for words that tell them apart."""
    homes: dict[str, list[int]] = {}
    for place, text in enumerate(memories):
        for word in _words(text):
            homes.setdefault(word, []).append(place)
    most = max(1, int(len(memories) * _COMMON))
    return {word: places for word, places in homes.items() if len(places) <= most}


def _words(text: str) -> set[str]:
    return {
        word for word in _WORD.findall(text.casefold()) if len(word) >= _SHORTEST or word.isdigit()
    }
