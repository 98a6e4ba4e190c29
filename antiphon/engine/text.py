"""What one answer's tokens say: text that may leave, stop strings and end tokens cut, logprobs in
step with it.

Every in-process engine's tokens go through here, so that all cut alike. Pure.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.engine.stops import StopFilter
from antiphon.engine.vocabulary import Vocabulary
from antiphon.events import Admit, TokenLogprob


@dataclass(frozen=True, slots=True)
class Piece:
    """What a few new tokens gave. `stopped`: a stop string was complete, so the engine must end."""

    text: str
    logprobs: list[TokenLogprob] | None
    stopped: bool


class TextAssembler:
    """The text of one request, from its first token to its end."""

    __slots__ = (
        "_emitted",
        "_end_tokens",
        "_min_tokens",
        "_pending",
        "_produced",
        "_stops",
        "_stream",
        "_vocabulary",
        "_want_logprobs",
        "tokens",
    )

    def __init__(self, admit: Admit, vocabulary: Vocabulary, end_tokens: frozenset[int]) -> None:
        sampling = admit.sampling
        self._vocabulary = vocabulary
        self._stream = vocabulary.stream()
        self._stops = StopFilter(admit.stop)
        self._end_tokens = frozenset() if sampling.ignore_eos else end_tokens
        self._min_tokens = sampling.min_tokens
        self._want_logprobs = sampling.logprobs
        self._pending: deque[tuple[int, TokenLogprob]] = deque()
        self._produced = 0
        self._emitted = 0
        self.tokens = 0
        """Tokens taken in, an ending one included; those after a stop string are not."""

    def is_end(self, token: int) -> bool:
        """Whether this token ends the answer, and so says nothing."""
        return token in self._end_tokens

    def push(self, tokens: Sequence[int], logprobs: Sequence[float] | None, *, last: bool) -> Piece:
        """Take new tokens; `last` says that no more will come."""
        parts: list[str] = []
        for index, token in enumerate(tokens):
            self.tokens += 1
            if token in self._end_tokens:
                continue
            text = self._stream.push(token)
            if self._want_logprobs:
                self._note(token, logprobs[index] if logprobs is not None else 0.0)
            if text:
                parts.append(self._pass(text))
                if self._stops.hit:
                    break
        if last and not self._stops.hit:
            parts.append(self._pass(self._stream.flush()))
            parts.append(self._stops.flush())
        text = "".join(parts)
        self._emitted += len(text)
        entries = self._leaving() if self._want_logprobs else None
        return Piece(text, entries, self._stops.hit)

    def _pass(self, text: str) -> str:
        self._produced += len(text)
        # As in vLLM, a stop string before `min_tokens` doesn't count, not even its beginning.
        return text if self.tokens <= self._min_tokens else self._stops.push(text)

    def _note(self, token: int, logprob: float) -> None:
        data = self._vocabulary.data(token)
        if data:
            text = data.decode("utf-8", "ignore")
            entry = TokenLogprob(text=text, data=data, logprob=logprob)
            self._pending.append((self._produced, entry))

    def _leaving(self) -> list[TokenLogprob]:
        """Entries of tokens whose text has begun to leave; of those cut off, none ever does."""
        entries: list[TokenLogprob] = []
        while self._pending and self._pending[0][0] < self._emitted:
            entries.append(self._pending.popleft()[1])
        return entries
