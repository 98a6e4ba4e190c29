"""One turn's judge, with the classifier's scores where its client asked for them.

What a client asked to have blocked is blocked by a rule of this name that no file holds; as every
rule it is said to be one that could not be run, where it couldn't, and then it blocks, too.
"""

from collections.abc import Sequence
from dataclasses import replace

from antiphon.errors import ModerationUnavailable
from antiphon.moderating import AllPass, Judge, Moderation
from antiphon.verdicts import (
    REFUSAL,
    Action,
    CategoryScores,
    Failure,
    Finding,
    NotRun,
    OnFailure,
    Scoring,
    Stage,
    Verdict,
)

SCORING_RULE = "moderation"


class Judging:
    """Of one turn."""

    def __init__(
        self, judge: Judge, moderation: Moderation | None, scoring: Scoring | None
    ) -> None:
        self.judge = judge
        self._moderation = moderation
        self._scoring = scoring

    @property
    def version(self) -> str:
        return self.judge.version

    @property
    def policy(self) -> str | None:
        """The version, as clients are told it; None where there is no policy."""
        return None if isinstance(self.judge, AllPass) else self.judge.version

    @property
    def is_idle(self) -> bool:
        """Whether output passes as it is, and nobody asks."""
        return isinstance(self.judge, AllPass) and self._scoring is None

    @property
    def scans_output(self) -> bool:
        return self.judge.scans_output or self._scoring is not None

    def watches(self, stage: Stage) -> bool:
        """Whether anybody wants to know of texts at this stage."""
        return self.judge.watches(stage) or self._scoring is not None

    async def verdicts(self, stage: Stage, texts: Sequence[str]) -> tuple[Verdict, ...]:
        """One for each text."""
        judged = self.judge.scans_output if stage is Stage.OUTPUT else self.judge.watches(stage)
        verdicts = (
            await self.judge.judge(stage, texts)
            if judged
            else tuple(Verdict(version=self.version) for _ in texts)
        )
        if self._scoring is None:
            return verdicts
        blocks = (
            self._scoring.blocks_output if stage is Stage.OUTPUT else self._scoring.blocks_input
        )
        scores = await self._scores(verdicts, texts)
        return tuple(
            _scored(verdict, score, stage, blocks=blocks)
            for verdict, score in zip(verdicts, scores, strict=True)
        )

    def refusal(self, rule: str, languages: Sequence[str]) -> str:
        return self.judge.refusal(rule, languages) or REFUSAL

    async def _scores(
        self, verdicts: Sequence[Verdict], texts: Sequence[str]
    ) -> list[CategoryScores | Failure]:
        """What no rule has had scored is scored now."""
        found: list[CategoryScores | Failure] = [
            verdict.scores or Failure.WORKER_LOST for verdict in verdicts
        ]
        missing = [index for index, verdict in enumerate(verdicts) if verdict.scores is None]
        if missing and self._moderation is not None:
            try:
                scores = await self._moderation.score([texts[index] for index in missing])
            except ModerationUnavailable as error:
                for index in missing:
                    found[index] = _failure(error)
            else:
                for index, score in zip(missing, scores, strict=True):
                    found[index] = score
        return found


def _scored(
    verdict: Verdict, scores: CategoryScores | Failure, stage: Stage, *, blocks: bool
) -> Verdict:
    if isinstance(scores, Failure):
        on_failure = OnFailure.CLOSED if blocks else OnFailure.OPEN
        missing = NotRun(rule=SCORING_RULE, stage=stage, failure=scores, on_failure=on_failure)
        return replace(verdict, not_run=(*verdict.not_run, missing))
    verdict = replace(verdict, scores=scores)
    if not (blocks and scores.flagged):
        return verdict
    worst = max(sorted(scores.flagged), key=lambda name: scores.scores.get(name, 0.0))
    finding = Finding(
        rule=SCORING_RULE,
        stage=stage,
        action=Action.BLOCK,
        category=worst,
        score=scores.scores.get(worst),
    )
    return replace(verdict, findings=(*verdict.findings, finding))


def _failure(error: ModerationUnavailable) -> Failure:
    """Its reason, where that is one of those a rule may have."""
    try:
        return Failure(error.reason)
    except ValueError:
        return Failure.WORKER_LOST
