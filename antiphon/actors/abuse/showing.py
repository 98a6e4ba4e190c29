"""What operators are shown: who stands how, and why. Values made from the detection as it is; no
text of anybody's is in them, since none is kept."""

import heapq
from dataclasses import dataclass

from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.actions import Standing, lasts_s, thresholds
from antiphon.actors.abuse.detection import Record
from antiphon.actors.abuse.signals import MOST, TOLERATED, Action, Kind, Signal, Subject
from antiphon.actors.abuse.telling import instant

_SHOWN = 200
"""Of all subjects those with the highest scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectView:
    """One subject. `until`: the end of a suspension; of another action when it ends if nothing more
    is counted."""

    kind: Kind
    id: str
    score: float
    action: Action
    since: str | None
    until: str | None
    pardoned_until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalView:
    """One signal: `points` for each, `count` of them since `first`, `now` is what is left of all
    points, of which `most` could count."""

    signal: Signal
    points: float
    count: int
    first: str
    last: str
    now: float
    most: float | None
    tolerated: bool
    """Whether answered prompts take some of it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkView:
    signal: Signal
    points: float
    at: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """Why a subject stands as it does. The score is the sum of `now`, less `tolerated_points` of
    those that are tolerated."""

    subject: SuspectView
    passed: dict[str, float] | None
    """The threshold, and the score when it was passed."""
    thresholds: dict[str, float]
    signals: tuple[SignalView, ...]
    answered: int
    tolerated_points: float
    recent: tuple[MarkView, ...]
    brought_by: dict[str, float]
    """Of an address: what each of its users brought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspensionView:
    """As the database has it: by any server."""

    user: str
    reason: str
    until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    mode: str
    half_life_s: float
    thresholds: dict[str, dict[str, float]]
    subjects: tuple[SuspectView, ...]
    """With the highest scores; those against whom something is done first."""
    suspended: tuple[SuspensionView, ...]
    remembered: int
    unwritten: int


def overview(abuse: Abuse, now_ms: int) -> Overview:
    """It looks at every subject there is."""
    views = (_suspect(abuse, each, record, now_ms) for each, record in abuse.detection.suspects())
    settings = abuse.settings
    return Overview(
        mode=settings.mode,
        half_life_s=settings.half_life_s,
        thresholds={kind.value: _named(abuse, kind) for kind in Kind},
        subjects=tuple(heapq.nlargest(_SHOWN, views, lambda view: (_severity(view), view.score))),
        suspended=tuple(
            SuspensionView(
                user=user.id,
                reason=user.suspended or "",
                until=_instant(user.suspended_until_ms),
            )
            for user in abuse.suspended
            if user.suspension(now_ms) is not None
        ),
        remembered=len(abuse.detection),
        unwritten=abuse.owed,
    )


def evidence(abuse: Abuse, subject: Subject, now_ms: int) -> EvidenceView | None:
    """None for one of whom nothing is known."""
    record = abuse.detection.record(subject)
    if record is None:
        return None
    now, settings, standing = abuse.clock(), abuse.settings, record.standing
    score, half_life_s = record.score, settings.half_life_s
    return EvidenceView(
        subject=_suspect(abuse, subject, record, now_ms),
        passed=_passed(standing),
        thresholds=_named(abuse, subject.kind),
        signals=tuple(
            SignalView(
                signal=signal,
                points=tally.weight,
                count=tally.count,
                first=instant(tally.first_ms),
                last=instant(tally.last_ms),
                now=round(score.points(signal, now, half_life_s), 3),
                most=MOST.get(signal),
                tolerated=signal in TOLERATED,
            )
            for signal, tally in score.tallies.items()
        ),
        answered=score.answered.count,
        tolerated_points=round(score.tolerated(now, half_life_s, settings.tolerance), 3),
        recent=tuple(
            MarkView(
                signal=mark.signal,
                points=mark.points,
                at=instant(mark.at_ms),
                detail=mark.detail,
            )
            for mark in reversed(score.marks)
        ),
        brought_by={user: round(each, 3) for user, each in score.brought(now, half_life_s)},
    )


def _suspect(abuse: Abuse, subject: Subject, record: Record, now_ms: int) -> SuspectView:
    standing, score = record.standing, abuse.detection.score(subject)
    until_ms = standing.until_ms
    if until_ms is None and standing.action is not Action.NONE:
        rest_s = lasts_s(score, standing.threshold, abuse.settings.half_life_s)
        until_ms = now_ms + round(rest_s * 1000)
    pardoned = record.pardoned_until_ms if record.pardoned_until_ms > now_ms else None
    return SuspectView(
        kind=subject.kind,
        id=subject.id,
        score=round(score, 3),
        action=standing.action,
        since=instant(standing.since_ms) if standing.since_ms else None,
        until=_instant(until_ms),
        pardoned_until=_instant(pardoned),
    )


def _passed(standing: Standing) -> dict[str, float] | None:
    if standing.action is Action.NONE:
        return None
    return {"threshold": standing.threshold, "score": round(standing.score, 3)}


def _named(abuse: Abuse, kind: Kind) -> dict[str, float]:
    return {action.value: at for action, at in thresholds(abuse.settings, kind).items()}


def _severity(view: SuspectView) -> int:
    return view.action.severity


def _instant(unix_ms: int | None) -> str | None:
    return None if unix_ms is None else instant(unix_ms)
