"""What was judged in a turn, as plain JSON that is kept with its response, and back again. No text
is in it."""

from typing import Any

import msgspec

from antiphon.errors import StoreFailed
from antiphon.verdicts import CategoryScores, Finding, Judged, NotRun, Verdict


class _Scores(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    scores: dict[str, float]
    flagged: list[str]


class _Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    findings: list[Finding] = []
    not_run: list[NotRun] = []
    scores: _Scores | None = None


class _Judged(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    input: _Verdict | None
    output: list[_Verdict]


def judged_json(judged: Judged) -> dict[str, Any]:
    """What `judged_of` reads."""
    plain: dict[str, Any] = msgspec.to_builtins(
        _Judged(
            version=judged.version,
            input=None if judged.input is None else _kept(judged.input),
            output=[_kept(verdict) for verdict in judged.output],
        )
    )
    return plain


def judged_of(plain: Any) -> Judged:
    """Raises StoreFailed for what a newer program wrote."""
    try:
        kept = msgspec.convert(plain, _Judged)
    except msgspec.ValidationError as error:
        raise StoreFailed(f"a verdict can't be read: {error}") from error
    return Judged(
        version=kept.version,
        input=None if kept.input is None else _verdict(kept.version, kept.input),
        output=tuple(_verdict(kept.version, each) for each in kept.output),
    )


def _kept(verdict: Verdict) -> _Verdict:
    scores = verdict.scores
    return _Verdict(
        findings=list(verdict.findings),
        not_run=list(verdict.not_run),
        scores=None
        if scores is None
        else _Scores(
            model=scores.model, scores=dict(scores.scores), flagged=sorted(scores.flagged)
        ),
    )


def _verdict(version: str, kept: _Verdict) -> Verdict:
    scores = kept.scores
    return Verdict(
        version=version,
        findings=tuple(kept.findings),
        not_run=tuple(kept.not_run),
        scores=None
        if scores is None
        else CategoryScores(
            model=scores.model, scores=scores.scores, flagged=frozenset(scores.flagged)
        ),
    )
