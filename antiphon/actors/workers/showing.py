"""Whether a text that a worker has made may be shown to models later: it is judged with every turn
then, and one that is blocked would block them all. So it is judged before it is kept."""

from collections.abc import Sequence

from antiphon.actors.workers.writer import ModelUnavailable, upkeep
from antiphon.ids import ModelName
from antiphon.moderating import Moderation
from antiphon.records import User
from antiphon.verdicts import OnFailure, Stage, Verdict


async def may_be_shown(
    moderation: Moderation, user: User, model: ModelName, texts: Sequence[str]
) -> list[bool]:
    """Of each text. Raises ModelUnavailable where a rule must be sure and can't be run now."""
    judge = moderation.judge_for(upkeep(user, model, (), 1))
    try:
        verdicts = await judge.judge(Stage.INPUT, texts)
    finally:
        judge.close()
    return [_passes(verdict) for verdict in verdicts]


def _passes(verdict: Verdict) -> bool:
    if verdict.blocked_by is None:
        return True
    for missing in verdict.not_run:
        if missing.rule == verdict.blocked_by and missing.on_failure is OnFailure.CLOSED:
            raise ModelUnavailable(f"rule {missing.rule!r} could not be run")
    return False
