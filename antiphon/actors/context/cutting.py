"""Which turns of a conversation are shown: its past walked through once more, so that what was
left out then is left out now, and the prompt goes on as the last one began.

Pure, and from the counts alone. Whenever what is shown was over the high mark, whole turns were
left out from the front, down to the low mark; so that happens in steps, each as far from the last
one as the marks are apart. A turn is a user's message with all up to the next one. Neither a call
nor its result is shown alone.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.actors.context.parts import Part
from antiphon.views import PieceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Tokens of turns, what the template adds around their messages among them."""

    high: int
    """With more than that, turns are left out."""
    low: int
    """Until no more than that is left of what was there before the newest message."""


class Cutting:
    """Of one conversation, `parts` being its turns and the new input in order. `marks` is None
    where nothing is ever left out or trimmed; `each` is what the template adds around a message."""

    def __init__(self, parts: Sequence[Part], marks: Marks | None, each: int) -> None:
        self.shown = [False] * len(parts)
        self.trimmed = [False] * len(parts)
        self.total = 0
        """Tokens of all that is shown."""
        self._parts = parts
        self._marks = marks
        self._each = each
        self._turns: list[list[int]] = [[]]
        self._front = 0
        """The first turn that wasn't left out."""
        self._newest: int | None = None
        self._whole: list[int] = []
        """Shown parts that the next turn will have trimmed."""
        self._calls: dict[str, int] = {}
        self._results: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        """Calls that were left out before their results came."""
        self._copies: defaultdict[int, deque[int]] = defaultdict(deque)
        self._fresh: list[int] = []
        """What has come since the model last spoke."""
        for index in range(len(parts)):
            self._take(index)
        self._decide()

    @property
    def can_drop(self) -> bool:
        """Whether there is a turn left before the newest one."""
        return self._marks is not None and self._front < self._current

    def drop(self) -> None:
        """Leave out the oldest turn that is shown, but for calls whose results are new."""
        needed = {call for index in self._fresh for call in self._parts[index].calls}
        for index in self._turns[self._front]:
            if needed.isdisjoint(self._parts[index].calls):
                self._hide(index)
        self._front += 1

    def trim_all(self) -> None:
        """Also what no turn has followed yet, but for what is new."""
        if self._marks is not None:
            for index in self._whole:
                self._trim(index)

    @property
    def _current(self) -> int:
        """The newest turn: the one that the input belongs to."""
        return len(self._turns) - 1 if self._newest is None else self._newest

    def _take(self, index: int) -> None:
        part, before = self._parts[index], self._parts[index - 1] if index else None
        if part.is_answer and before is not None and not before.is_answer:
            self._decide()
            self._fresh = []
        if part.role == "user" and before is not None and self._begins(part, before):
            self._turns.append([])
            whole, self._whole = self._whole, []
            for earlier in whole:
                self._trim(earlier)
        self._turns[-1].append(index)
        if part.kind is PieceKind.INPUT and self._newest is None:
            self._newest = len(self._turns) - 1
        if not part.is_answer:
            self._fresh.append(index)
        is_old = part.kind is PieceKind.HISTORY
        if part.is_result and self._marks is not None:
            self._revive(part.calls)
            if is_old and part.calls and self._calls.keys().isdisjoint(part.calls):
                return
        self._show(index)
        if part.same is not None:
            self._copies[part.same].append(index)
        if is_old and part.short is not None:
            self._whole.append(index)

    def _begins(self, part: Part, before: Part) -> bool:
        """Messages that a user sent one after the other are one turn's, but new ones are new."""
        is_new = part.kind is PieceKind.INPUT and before.kind is PieceKind.HISTORY
        return before.role != "user" or is_new

    def _show(self, index: int) -> None:
        part = self._parts[index]
        self.shown[index] = True
        self.total += self._cost(index)
        for call in part.calls:
            (self._results if part.is_result else self._calls)[call] = index

    def _revive(self, calls: tuple[str, ...]) -> None:
        """Results have come of calls that were left out when nobody knew."""
        for call in calls:
            if (index := self._gone.pop(call, None)) is not None:
                self._show(index)

    def _decide(self) -> None:
        """As it was decided then: before an answer, with all that the model was to see for it."""
        if self._marks is None or self.total <= self._marks.high:
            return
        fresh = sum(self._cost(index) for index in self._fresh if self.shown[index])
        while self.can_drop and (
            self.total - fresh > self._marks.low or self.total > self._marks.high
        ):
            self.drop()

    def _hide(self, index: int) -> None:
        if not self.shown[index]:
            return
        part = self._parts[index]
        self.total -= self._cost(index)
        self.shown[index] = False
        for call in part.calls:
            if part.is_result:
                self._results.pop(call, None)
                other = self._calls.get(call)
            else:
                self._calls.pop(call, None)
                other = self._results.get(call)
                if other is None:
                    self._gone[call] = index
            if other is not None:
                self._hide(other)
        if part.same is not None:
            self._forget_copy(part.same, index)

    def _forget_copy(self, same: int, index: int) -> None:
        """The next one with the same text is shown whole, unless it is trimmed by itself."""
        copies = self._copies[same]
        was_first = copies[0] == index
        copies.remove(index)
        if was_first and copies and self.trimmed[copies[0]]:
            first = copies[0]
            if not self._parts[first].is_result:
                self.total += self._parts[first].tokens - self._shown_tokens(first)
                self.trimmed[first] = False

    def _trim(self, index: int) -> None:
        part = self._parts[index]
        if self._marks is None or not self.shown[index] or self.trimmed[index]:
            return
        is_copy = part.same is not None and self._copies[part.same][0] != index
        if part.short is not None and (part.is_result or is_copy):
            self.total -= part.tokens - part.short
            self.trimmed[index] = True

    def _cost(self, index: int) -> int:
        return self._shown_tokens(index) + self._each

    def _shown_tokens(self, index: int) -> int:
        part = self._parts[index]
        return part.short if self.trimmed[index] and part.short is not None else part.tokens
