"""The policy of one turn, for its session: who judges its input, what holds its output, what was
said of both."""

from collections.abc import Callable

import trio

from antiphon.actors.sessions.citing import Citing
from antiphon.actors.sessions.gate import InputVerdict, is_watched, judge_input
from antiphon.actors.sessions.guard import Guard, scan_every_s
from antiphon.actors.sessions.judging import SCORING_RULE, Judging
from antiphon.actors.sessions.outgoing import Outgoing
from antiphon.events import Turn
from antiphon.ids import UserId
from antiphon.ports import AbuseSignals
from antiphon.verdicts import Judged, Stage
from antiphon.views import PieceKind

_RECALLED = frozenset({PieceKind.MEMORY, PieceKind.SUMMARY, PieceKind.RETRIEVED})


class Policing:
    """It decides nothing about the engine: the session does, by what it reads here."""

    def __init__(
        self,
        turn: Turn,
        judging: Judging,
        abuse: AbuseSignals | None,
        turns: Callable[[], int] = lambda: 1,
    ) -> None:
        self.judging = judging
        self.judged_input = trio.Event()
        self._turn = turn
        self._abuse = abuse
        self._turns = turns
        self._input: InputVerdict | None = None
        self.is_watched = is_watched(judging, turn)
        """Whether the input is to be judged at all."""
        self.outgoing = Outgoing(
            None if judging.is_idle else self._guard,
            lambda rule: judging.refusal(rule, turn.languages),
            choices=turn.choices,
            is_open=not self.is_watched,
            citing=Citing(turn.sources, turn.choices),
        )
        if not self.is_watched:
            self.judged_input.set()

    @property
    def version(self) -> str | None:
        """As clients are told it."""
        return self.judging.policy

    @property
    def transforms_input(self) -> bool:
        """Whether a model may be shown nothing before the input was judged."""
        return self.judging.judge.transforms_input and self.is_watched

    @property
    def judged(self) -> Judged | None:
        """So far; None where nobody judges."""
        if self.judging.is_idle:
            return None
        return Judged(
            version=self.judging.version,
            input=None if self._input is None else self._input.verdict,
            output=self.outgoing.verdicts,
        )

    async def judge_input(self) -> InputVerdict:
        return await judge_input(self.judging, self._turn)

    def decided(self, decided: InputVerdict) -> None:
        """From now on text may leave; or none ever will."""
        self._input = decided
        if decided.blocked_by is None:
            self.outgoing.open()
        else:
            self.outgoing.block(decided.blocked_by, decided.to_blame)
            self._report(decided)
        self.judged_input.set()

    async def scan(self, choice: int, text: str) -> None:
        """Have what is due judged."""
        [verdict] = await self.judging.verdicts(Stage.OUTPUT, (text,))
        self.outgoing.scanned(choice, verdict)

    def _report(self, decided: InputVerdict) -> None:
        """Not what a client itself asked to have blocked: whoever does that takes care."""
        finding, user = decided.finding, self._turn.user
        if finding is None or finding.rule == SCORING_RULE or user is None:
            return
        if self._abuse is not None:
            self._abuse.prompt_blocked(
                UserId(user),
                address=self._turn.address,
                rule=finding.rule,
                category=finding.category,
            )

    def _guard(self) -> Guard:
        """For one stretch of one choice, of which nothing was generated yet."""
        judge = self.judging.judge
        return Guard(
            judge.window(_system_prompt(self._turn)),
            version=judge.version,
            scans=self.judging.scans_output,
            note=lambda finding, text: judge.note_output((finding,), text),
            withheld=judge.note_withheld,
            every_s=lambda: scan_every_s(self._turns()),
        )


def _system_prompt(turn: Turn) -> str:
    """What output must not repeat. What is recalled of the user stands with it, and may be told."""
    recalled = {place for place, piece in enumerate(turn.pieces) if piece.kind in _RECALLED}
    return "\n".join(
        each.content
        for place, each in enumerate(turn.messages)
        if each.role in {"system", "developer"} and place not in recalled
    )
