"""One choice on its way out, pure: its text and then its calls, each behind a guard of its own, and
nothing of the next before all of the last has left.

A replacement in a call's arguments may leave no JSON. From the first one on they are held until the
call is whole; where it is JSON no more, the choice ends as if the rule had blocked it.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import msgspec

from antiphon.actors.sessions.guard import Guard, Piece
from antiphon.actors.sessions.merging import merged
from antiphon.tools import CallDelta, CallEnded, CallStarted
from antiphon.turn_events import ChoiceEnded, Cited, Delta, FinishReason, Said
from antiphon.verdicts import Action, Verdict


class Lane:
    """`guards` makes a guard for each stretch: the text, and every call's arguments."""

    def __init__(self, choice: int, guards: Callable[[], Guard]) -> None:
        self.finish_reason: FinishReason | None = None
        """How it ends, once nothing follows but the end."""
        self._choice = choice
        self._guards = guards
        self._guard = guards()
        self._earlier: list[Verdict] = []
        self._call: CallStarted | None = None
        """None at its text."""
        self._left = self._held = ""
        """Of the call's arguments."""
        self._then: CallStarted | CallEnded | ChoiceEnded | None = None
        """What comes once the stretch, of which there is no more, has left."""
        self._waiting: deque[Said | ChoiceEnded] = deque()
        self._cited: deque[Cited] = deque()
        """Citations whose text has not left yet."""
        self._shown = 0
        """Characters of text that have left."""
        self._blocked_by: str | None = None

    @property
    def blocked_by(self) -> str | None:
        """By which rule, even while text from before it is still to leave."""
        return self._blocked_by or self._guard.blocked_by

    @property
    def is_over(self) -> bool:
        return self.finish_reason is not None

    @property
    def verdict(self) -> Verdict:
        """On all of it so far."""
        last = self._guard.verdict
        return merged(last.version, (*self._earlier, last)) if self._earlier else last

    @property
    def due_at(self) -> float:
        """When `due` has something, if nothing else comes."""
        return math.inf if self.is_over else self._guard.due_at

    def due(self, now: float) -> str | None:
        """What is to be scanned now."""
        return None if self.is_over else self._guard.due(now)

    def scanned(self, verdict: Verdict) -> list[Said]:
        """What `due` gave was judged."""
        return [] if self.is_over else self._pass(self._guard.scanned(verdict))

    def take(self, event: Said | ChoiceEnded) -> list[Said]:
        """What was generated."""
        if self.is_over:
            return []
        if self._then is not None:
            self._waiting.append(event)
            return []
        return self._next(event)

    def _next(self, event: Said | ChoiceEnded) -> list[Said]:
        if isinstance(event, Cited):
            self._cited.append(event)
            return self._citations()
        if isinstance(event, Delta):
            return self._pass(self._guard.feed(event.text, event.logprobs))
        if isinstance(event, CallDelta):
            return self._pass(self._guard.feed(event.text))
        self._then = event
        reason = FinishReason.TOOL_CALLS
        if isinstance(event, ChoiceEnded):
            reason = event.finish_reason
        return self._pass(self._guard.finish(reason))

    def _pass(self, piece: Piece) -> list[Said]:
        out = self._told(piece)
        if self._guard.blocked_by is not None:
            if self._guard.is_over:
                self._block(self._guard.blocked_by)
        elif self._then is not None and self._guard.is_over:
            then, self._then = self._then, None
            out += self._enter(then)
            while self._waiting and self._then is None and not self.is_over:
                out += self._next(self._waiting.popleft())
        return out

    def _told(self, piece: Piece) -> list[Said]:
        if not piece:
            return []
        if self._call is None:
            self._shown += len(piece.text)
            said = Delta(choice=self._choice, text=piece.text, logprobs=piece.logprobs)
            return [said, *self._citations()]
        if self._replaced_by() is not None:
            self._held += piece.text
            return []
        self._left += piece.text
        return [CallDelta(choice=self._choice, call=self._call.call, text=piece.text)]

    def _citations(self, *, is_all: bool = False) -> list[Said]:
        """Those whose text has left. Where a replacement has made it shorter, that is known only
        when there is no more."""
        said: list[Said] = []
        while self._cited and (is_all or self._cited[0].at <= self._shown):
            cited = self._cited.popleft()
            said.append(replace(cited, at=min(cited.at, self._shown)))
        return said

    def _enter(self, then: CallStarted | CallEnded | ChoiceEnded) -> list[Said]:
        if self._call is None:
            return [*self._citations(is_all=True), *self._begin(then)]
        return self._begin(then)

    def _begin(self, then: CallStarted | CallEnded | ChoiceEnded) -> list[Said]:
        match then:
            case CallStarted():
                self._earlier.append(self._guard.verdict)
                self._guard = self._guards()
                self._call = then
                self._left = self._held = ""
                return [then]
            case CallEnded():
                return self._end_call(then)
            case ChoiceEnded(finish_reason=reason):
                self.finish_reason = reason
                return []

    def _end_call(self, ended: CallEnded) -> list[Said]:
        if (rule := self._replaced_by()) is None:
            return [ended]
        if not _is_object(self._left + self._held):
            self._block(rule)
            return []
        rest = CallDelta(choice=ended.choice, call=ended.call, text=self._held)
        return [*([rest] if rest.text else []), ended]

    def _replaced_by(self) -> str | None:
        """The rule that has changed the call's arguments, if one has."""
        changes = (each for each in self._guard.verdict.findings if not each.shadow)
        return next((each.rule for each in changes if each.action is Action.TRANSFORM), None)

    def _block(self, rule: str) -> None:
        self._blocked_by = rule
        self.finish_reason = FinishReason.CONTENT_FILTER
        self._waiting.clear()


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError):
        return False
