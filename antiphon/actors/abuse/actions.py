"""From a score to what follows from it. Pure.

An action ends only once the score is half of what it began at: nobody goes in and out of it with
each request. A suspension ends by the clock instead.
"""

import math
from dataclasses import dataclass

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.signals import Action, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a subject stands. `score` is what it was when the action began, `threshold` what it
    passed."""

    action: Action = Action.NONE
    since_ms: int = 0
    score: float = 0.0
    threshold: float = 0.0
    until_ms: int | None = None
    """Of a suspension alone."""


GOOD = Standing()


def thresholds(settings: AbuseSettings, kind: Kind) -> dict[Action, float]:
    """The actions there are for that kind of subject, and from which score on, mildest first."""
    each = {Action.WARN: settings.warn_at, Action.SLOW: settings.slow_at}
    if kind is Kind.USER or settings.suspend_addresses:
        each[Action.SUSPEND] = settings.suspend_at
    return {action: at for action, at in each.items() if at}


def decide(current: Action, score: float, of_prompts: float, limits: dict[Action, float]) -> Action:
    """What follows now. Nobody is suspended unless blocked prompts are at least half of the
    reason: the rest is what honest programs do, too."""
    reached = Action.NONE
    for action, at in limits.items():
        if score >= at and (action is not Action.SUSPEND or of_prompts >= at / 2):
            reached = action
    if reached.severity >= current.severity:
        return reached
    for action in (Action.SLOW, Action.WARN):
        if reached.severity < action.severity <= current.severity:
            begins_at = limits.get(action)
            if begins_at is not None and score >= begins_at / 2:
                return action
    return reached


def lasts_s(score: float, threshold: float, half_life_s: float) -> float:
    """How long an action goes on from here, if nothing more is counted."""
    if threshold <= 0 or score <= threshold / 2:
        return 0.0
    return half_life_s * math.log2(2 * score / threshold)


def address_share(settings: AbuseSettings) -> float:
    """How much of an address's score one of its users alone may bring: it takes several to have
    all others behind it slowed down."""
    return (settings.slow_at or settings.suspend_at or settings.warn_at) / 2
