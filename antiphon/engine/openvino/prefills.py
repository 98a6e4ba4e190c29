"""How many prompt tokens each step of the pipeline computes, which it doesn't say.

An estimate: the pipeline's own rules (answers first, then prompts in order until the step is full,
what the prefix cache still has left out), applied to what it was given. Where the guess is wrong,
the first token of a prompt puts it right for the next step. Pure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from antiphon.engine.openvino.kv import BLOCK_TOKENS
from antiphon.ids import EngineRequest


@dataclass(slots=True, eq=False)
class _Prompt:
    tokens: list[int]
    left: int
    at: int
    """How many of its blocks are in the cache."""
    chain: int
    """The hash of all of those."""


class Prefills:
    """The prompts that are inside the pipeline. `cached_blocks` is how many blocks its prefix cache
    keeps, 0 where it has none."""

    def __init__(self, step_tokens: int, cached_blocks: int) -> None:
        self._step_tokens = step_tokens
        self._cached_blocks = cached_blocks
        self._waiting: dict[EngineRequest, _Prompt] = {}
        self._known: dict[EngineRequest, _Prompt] = {}
        # Hashes of whole beginnings, the one that was used longest ago first.
        self._cache: dict[int, None] = {}

    @property
    def requests(self) -> Iterable[EngineRequest]:
        """Those prompts."""
        return self._waiting

    @property
    def waiting(self) -> int:
        """Prompts without a first token."""
        return len(self._waiting)

    def cached(self, tokens: list[int]) -> int:
        """How many of a prompt's first tokens the cache should have."""
        blocks = 0
        for chain in _chains(_Prompt(tokens, len(tokens), 0, 0), len(tokens)):
            if chain not in self._cache:
                break
            blocks += 1
        return blocks * BLOCK_TOKENS

    def enter(self, request: EngineRequest, tokens: list[int]) -> int:
        """The pipeline was given this prompt; how many of its tokens it should not have to
        compute."""
        prompt = _Prompt(tokens, len(tokens), 0, 0)
        self._known[request] = self._waiting[request] = prompt
        if not self._cached_blocks:
            return 0
        for chain in _chains(prompt, len(tokens)):
            if chain not in self._cache:
                break
            self._keep(chain)
            prompt.at += 1
            prompt.chain = chain
        # The last token is always computed: the first of the answer comes of it.
        prompt.left = max(1, prompt.left - prompt.at * BLOCK_TOKENS)
        return len(tokens) - prompt.left

    def step(self, decoding: int) -> int:
        """A step was run in which `decoding` answers went on."""
        if not self._waiting:
            return 0
        room = max(0, self._step_tokens - decoding)
        computed = 0
        for prompt in self._waiting.values():
            part = min(prompt.left, room - computed)
            prompt.left -= part
            computed += part
            self._computed(prompt, len(prompt.tokens) - prompt.left)
            if computed == room:
                break
        return computed

    def gave_token(self, request: EngineRequest) -> None:
        """All of its prompt has been computed, whatever was left by our count."""
        if (prompt := self._waiting.pop(request, None)) is not None:
            self._computed(prompt, len(prompt.tokens))
            prompt.tokens = []

    def leave(self, request: EngineRequest, tokens: list[int]) -> None:
        """It is in the pipeline no more; of its prompt and its answer, which are `tokens`, the
        cache keeps what was computed."""
        prompt = self._known.pop(request, None)
        if prompt is not None and self._waiting.pop(request, None) is None:
            prompt.tokens = tokens
            self._computed(prompt, len(tokens))

    def _computed(self, prompt: _Prompt, tokens: int) -> None:
        """The first so many of its tokens are in the cache now."""
        if not self._cached_blocks:
            return
        for chain in _chains(prompt, tokens):
            self._keep(chain)
            prompt.at += 1
            prompt.chain = chain

    def _keep(self, chain: int) -> None:
        self._cache.pop(chain, None)
        self._cache[chain] = None
        if len(self._cache) > self._cached_blocks:
            del self._cache[next(iter(self._cache))]


def _chains(prompt: _Prompt, tokens: int) -> Iterator[int]:
    """The hashes of the next whole blocks among the first `tokens`."""
    chain = prompt.chain
    for start in range(prompt.at * BLOCK_TOKENS, tokens - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        chain = hash((chain, *prompt.tokens[start : start + BLOCK_TOKENS]))
        yield chain
