"""Which beginning of a prompt many conversations share: a system prompt, seen by its tokens alone.

A conversation that grows continues its own past in one way; a system prompt is continued in many.
Pure, and bounded in memory.
"""

from collections import OrderedDict
from collections.abc import Sequence

_BRANCHES = 3
"""This many different continuations make a beginning shared."""
_REMEMBERED = 8_192
"""Beginnings that are kept in mind, the latest used."""
_DEPTH = 256
"""Blocks looked at, from the start: a longer system prompt is kept up to here."""


class SharedPrefixes:
    """What one engine has seen; prompts of different salts share nothing."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._continuations: OrderedDict[int, set[int]] = OrderedDict()

    def shared_tokens(self, prompt: Sequence[int], salt: str | None) -> int:
        """Note this prompt; how many of its first tokens are shared, in whole blocks."""
        size = self._block_size
        shared = 0
        beginning = hash(salt)
        # The last token is always computed, so a block that ends with the prompt is never whole.
        blocks = min((len(prompt) - 1) // size, _DEPTH)
        for number in range(blocks + 1):
            block = hash(tuple(prompt[number * size : (number + 1) * size]))
            if number and self._note(beginning, block) >= _BRANCHES:
                shared = number * size
            beginning = hash((beginning, block))
        return shared

    def _note(self, beginning: int, block: int) -> int:
        seen = self._continuations.get(beginning)
        if seen is None:
            seen = self._continuations[beginning] = set()
            if len(self._continuations) > _REMEMBERED:
                self._continuations.popitem(last=False)
        else:
            self._continuations.move_to_end(beginning)
        if len(seen) < _BRANCHES:
            seen.add(block)
        return len(seen)
