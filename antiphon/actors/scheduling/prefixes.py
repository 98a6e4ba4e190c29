"""Which beginnings of prompts an engine should still have in its cache, by what it was shown.
Pure, and bounded in memory. Holds hashes, and no text."""

from collections import OrderedDict
from collections.abc import Sequence

_DEPTH = 512
"""Blocks looked at, from the start: of longer prompts the rest counts as new."""
_TAILS = 4
"""Prompts remembered that end within the same block."""


class PrefixMemory:
    """Blocks of tokens, each known by itself and all before it, the latest used kept: what an
    engine's own prefix cache does. An answer's tokens are not known here, but its length is, and
    the next prompt of a conversation has it after the former prompt."""

    def __init__(self, *, blocks: int, block_size: int) -> None:
        self._blocks = blocks
        self._block_size = block_size
        self._known: OrderedDict[int, list[tuple[int, int, int]]] = OrderedDict()

    def clear(self) -> None:
        self._known.clear()

    def resize(self, *, blocks: int, block_size: int) -> None:
        """Another engine, with an empty cache of this size."""
        self._blocks = max(blocks, 1)
        self._block_size = max(block_size, 1)
        self.clear()

    def cached(self, prompt: Sequence[int], salt: str | None = None) -> int:
        """How many of the first tokens should be there. At least one is always computed."""
        size = self._block_size
        beginning = hash(salt)
        found = 0
        for number in range(min(len(prompt) // size, _DEPTH)):
            longer = hash((beginning, tuple(prompt[number * size : (number + 1) * size])))
            if longer not in self._known:
                break
            beginning = longer
            found += size
        for length, tail, reach in self._known.get(beginning, ()):
            if reach > found and hash(tuple(prompt[found:length])) == tail:
                found = reach
                break
        return max(min(found, len(prompt) - 1), 0)

    def remember(
        self, prompt: Sequence[int], salt: str | None = None, *, answer_tokens: int = 0
    ) -> None:
        """The engine has computed this prompt, and so long an answer to it."""
        size = self._block_size
        beginning = hash(salt)
        known = self._known
        blocks = min(len(prompt) // size, _DEPTH)
        chain = []
        for number in range(blocks):
            beginning = hash((beginning, tuple(prompt[number * size : (number + 1) * size])))
            chain.append(beginning)
        # The last first, so that of a long prompt it is the end that is forgotten first.
        for block in reversed(chain):
            if block in known:
                known.move_to_end(block)
            else:
                known[block] = []
        if answer_tokens and blocks:
            tails = known[beginning]
            tail = hash(tuple(prompt[blocks * size :]))
            tails[:] = [entry for entry in tails if entry[:2] != (len(prompt), tail)][1 - _TAILS :]
            tails.append((len(prompt), tail, len(prompt) + answer_tokens))
        while len(known) > self._blocks:
            known.popitem(last=False)
