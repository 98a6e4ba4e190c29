"""Which log-probabilities may leave with which text: those of text that is held back are held with
it, those of text that was replaced or cut never leave, since they spell it. Pure."""

from collections import deque
from collections.abc import Sequence

from antiphon.events import TokenLogprob
from antiphon.verdicts import Action, Finding

_END = 1 << 62


class Alignment:
    """Of one choice. Positions are characters of the output as it was generated."""

    def __init__(self) -> None:
        self._fed = self._dealt = 0
        self._waiting: deque[tuple[int, int, TokenLogprob]] = deque()
        self._gone: list[tuple[int, int]] = []

    def add(self, text: str, logprobs: Sequence[TokenLogprob]) -> None:
        """What a step generated. Where its tokens don't make up its text, as where a token ends in
        half a character, each of them counts for all of it."""
        start, self._fed = self._fed, self._fed + len(text)
        if not logprobs:
            return
        is_aligned = sum(len(entry.text) for entry in logprobs) == len(text)
        at = start
        for entry in logprobs:
            if is_aligned:
                # One without a text has bytes of the character that follows.
                self._waiting.append((at, at + max(1, len(entry.text)), entry))
                at += len(entry.text)
            else:
                self._waiting.append((start, max(self._fed, start + 1), entry))

    def dealt(
        self,
        source: int,
        findings: Sequence[Finding],
        *,
        is_last: bool = False,
        cut_after: int | None = None,
    ) -> tuple[TokenLogprob, ...]:
        """So many more characters have passed or were replaced: what may leave with them.
        `cut_after` says how many characters of text were the last ones to pass."""
        begins, self._dealt = self._dealt, self._dealt + source
        if not (self._waiting or findings or self._gone):  # as for every token of most answers
            return ()
        acting = [each for each in findings if not each.shadow]
        replaced = [each for each in acting if each.action is Action.TRANSFORM]
        self._gone += [(each.start, each.end) for each in replaced]
        if cut_after is not None:
            starts = [each.start for each in acting if each.action is Action.BLOCK]
            # Where something was replaced, its length says nothing of what it stands for.
            passed = begins if replaced and not starts else begins + cut_after
            self._gone.append((min(starts if replaced and starts else [*starts, passed]), _END))
        out = []
        is_last = is_last or cut_after is not None
        while self._waiting and (is_last or self._waiting[0][1] <= self._dealt):
            start, end, entry = self._waiting.popleft()
            if not any(start < last and first < end for first, last in self._gone):
                out.append(entry)
        self._gone = [(first, last) for first, last in self._gone if last > self._dealt]
        return tuple(out)
