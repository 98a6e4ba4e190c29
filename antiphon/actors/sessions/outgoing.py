"""What a turn says, on its way to the reader, pure: nothing leaves before the input was found to be
fine, and no text and no call of a choice before its guard lets it.

News of the transcript in, events for the outlet out. Knows no mailbox, and judges nothing itself.
"""

import math
from collections.abc import Callable, Sequence

from antiphon.actors.sessions.calling import Spoken
from antiphon.actors.sessions.citing import Citing
from antiphon.actors.sessions.guard import Guard
from antiphon.actors.sessions.lane import Lane
from antiphon.turn_events import ChoiceEnded, FinishReason, Refused, Said
from antiphon.verdicts import Verdict

Told = Said | Refused | ChoiceEnded


class Outgoing:
    """Of one turn. `guards` makes a guard for what its choices say, None where nothing is judged;
    `refusal` is what a reader is told by a rule, `citing` takes the marks of citations out of the
    text before anybody judges it."""

    def __init__(
        self,
        guards: Callable[[], Guard] | None,
        refusal: Callable[[str], str],
        *,
        choices: int,
        is_open: bool,
        citing: Citing | None = None,
    ) -> None:
        self._make = guards
        self._citing = citing or Citing((), choices)
        self._refusal = refusal
        self._choices = choices
        self._is_open = is_open
        self._ready: list[Told] = []
        self._cut: list[int] = []
        self._told: set[int] = set()
        self._lanes: Sequence[Lane] = ()
        self.reset()

    def reset(self) -> None:
        """Nothing was generated after all, and will be anew."""
        self._citing.reset()
        if self._make is not None:
            self._lanes = [Lane(choice, self._make) for choice in range(self._choices)]

    @property
    def is_over(self) -> bool:
        """Whether every choice's end has left, or may."""
        return self._is_open and len(self._told) == self._choices

    def wants(self, choice: int) -> bool:
        """Whether there may be more of it: nobody has blocked it."""
        return choice not in self._told and choice not in self._cut

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """On what was generated, by choice."""
        return tuple(lane.verdict for lane in self._lanes)

    def take(self, event: Spoken) -> None:
        """What was generated."""
        for each in self._citing.take(event):
            self._take(each)

    def _take(self, event: Said | ChoiceEnded) -> None:
        choice = event.choice
        if choice in self._told:
            return
        if self._lanes:
            self._say(choice, self._lanes[choice].take(event))
            return
        self._ready.append(event)
        if isinstance(event, ChoiceEnded):
            self._told.add(choice)

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
            for choice, lane in enumerate(self._lanes)
            if choice not in self._told and (text := lane.due(now)) is not None
        ]

    @property
    def due_at(self) -> float:
        """When `due` has something, if nothing else comes."""
        open_ = (lane for choice, lane in enumerate(self._lanes) if choice not in self._told)
        return min((lane.due_at for lane in open_), default=math.inf)

    def scanned(self, choice: int, verdict: Verdict) -> None:
        """What `due` gave for the choice was judged."""
        if choice not in self._told:
            self._say(choice, self._lanes[choice].scanned(verdict))

    def leaving(self) -> list[Told]:
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

    def _say(self, choice: int, said: Sequence[Said]) -> None:
        lane = self._lanes[choice]
        self._ready += said
        if lane.blocked_by is not None and choice not in self._cut:
            self._cut.append(choice)
        if lane.finish_reason is not None:
            self._end(choice, lane.finish_reason, lane.blocked_by)

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
