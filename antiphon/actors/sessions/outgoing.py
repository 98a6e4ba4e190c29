"""What a turn says, on its way to the reader, pure: nothing leaves before the input was found to be
fine, and no text of a choice before its guard lets it.

News of the transcript in, events for the outlet out. Knows no mailbox, and judges nothing itself.
"""

import math
from collections.abc import Callable, Sequence

from antiphon.actors.sessions.guard import Guard, Piece
from antiphon.events import ChoiceEnded, Delta, FinishReason, Refused
from antiphon.verdicts import Verdict

Said = Delta | Refused | ChoiceEnded


class Outgoing:
    """Of one turn. `guards` makes its choices' guards, None where nothing is judged at all;
    `refusal` is what a reader is told by a rule."""

    def __init__(
        self,
        guards: Callable[[], Sequence[Guard]] | None,
        refusal: Callable[[str], str],
        *,
        choices: int,
        is_open: bool,
    ) -> None:
        self._make = guards
        self._refusal = refusal
        self._choices = choices
        self._is_open = is_open
        self._ready: list[Said] = []
        self._cut: list[int] = []
        self._told: set[int] = set()
        self._guards: Sequence[Guard] = ()
        self.reset()

    def reset(self) -> None:
        """Nothing was generated after all, and will be anew."""
        self._guards = () if self._make is None else self._make()

    @property
    def is_over(self) -> bool:
        """Whether every choice's end has left, or may."""
        return self._is_open and len(self._told) == self._choices

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """On what was generated, by choice."""
        return tuple(guard.verdict for guard in self._guards)

    def take(self, event: Delta | ChoiceEnded) -> None:
        """What was generated."""
        choice = event.choice
        if choice in self._told:
            return
        if not self._guards:
            self._ready.append(event)
            if isinstance(event, ChoiceEnded):
                self._told.add(choice)
            return
        guard = self._guards[choice]
        if isinstance(event, Delta):
            self._say(choice, guard.feed(event.text, event.logprobs))
        else:
            self._say(choice, guard.finish(event.finish_reason))

    def open(self) -> None:
        """The input is fine."""
        self._is_open = True

    def block(self, rule: str, to_blame: tuple[int, ...]) -> None:
        """The input isn't: whatever was made of it is dropped, unseen."""
        self._ready = []
        for choice in range(self._choices):
            self._end(choice, FinishReason.CONTENT_FILTER, rule, to_blame)
        self._is_open = True

    def due(self, now: float) -> list[tuple[int, str]]:
        """Choices that have text to be scanned now, and that text."""
        return [
            (choice, text)
            for choice, guard in enumerate(self._guards)
            if choice not in self._told and (text := guard.due(now)) is not None
        ]

    @property
    def due_at(self) -> float:
        """When `due` has something, if nothing else comes."""
        open_ = (guard for choice, guard in enumerate(self._guards) if choice not in self._told)
        return min((guard.due_at for guard in open_), default=math.inf)

    def scanned(self, choice: int, verdict: Verdict) -> None:
        """What `due` gave for the choice was judged."""
        if choice not in self._told:
            self._say(choice, self._guards[choice].scanned(verdict))

    def leaving(self) -> list[Said]:
        """What the reader may be told now."""
        if not self._is_open:
            return []
        ready, self._ready = self._ready, []
        return ready

    def cut(self) -> list[int]:
        """Choices that were blocked since the last call: nobody wants their generations any
        more."""
        cut, self._cut = self._cut, []
        return cut

    def _say(self, choice: int, piece: Piece) -> None:
        guard = self._guards[choice]
        if piece:
            self._ready.append(Delta(choice=choice, text=piece.text, logprobs=piece.logprobs))
        if guard.blocked_by is not None and choice not in self._cut:
            self._cut.append(choice)
        if guard.is_over:
            assert guard.finish_reason is not None
            self._end(choice, guard.finish_reason, guard.blocked_by)

    def _end(
        self,
        choice: int,
        reason: FinishReason,
        rule: str | None,
        to_blame: tuple[int, ...] = (),
    ) -> None:
        if rule is not None:
            refused = Refused(choice=choice, text=self._refusal(rule), messages=to_blame)
            self._ready.append(refused)
        self._ready.append(ChoiceEnded(choice=choice, finish_reason=reason))
        self._told.add(choice)
