"""What an engine still has of conversations whose turn has ended: the least recently used goes
first, as soon as running streams need the room."""

from collections import OrderedDict


class PrefixCache:
    """Counts tokens, in whole blocks. `common` is what all prompts begin with: always warm."""

    def __init__(self, tokens: int, block: int) -> None:
        self._tokens = tokens
        self._block = block
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._held = 0

    def hit(self, conversation: str, prompt: int, shared: int, common: int) -> int:
        """How many tokens of a prompt need no prefill: at least one always does."""
        kept = self._kept.pop(conversation, 0) if conversation else 0
        self._held -= kept
        found = max(min(kept, shared), common)
        return min(found, prompt - 1) // self._block * self._block

    def keep(self, conversation: str, tokens: int, running: int) -> None:
        """A turn has ended with so many tokens behind it, while others hold `running`."""
        if not conversation:
            return
        before = self._kept.pop(conversation, 0)
        self._kept[conversation] = tokens
        self._held += tokens - before
        room = self._tokens - running
        while self._held > room and self._kept:
            self._held -= self._kept.popitem(last=False)[1]

    def knows(self, conversation: str) -> int:
        """How many tokens of it there are, without touching them."""
        return self._kept.get(conversation, 0)
