"""Several verdicts as one, for whoever shows or counts them: each rule once, each category at its
highest score. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from antiphon.verdicts import CategoryScores, Finding, NotRun, Verdict


def merged(version: str, verdicts: Iterable[Verdict]) -> Verdict:
    """A long answer is judged many times: what is kept of that doesn't grow with it. Places in the
    texts mean nothing any more."""
    findings: dict[tuple[object, ...], Finding] = {}
    not_run: dict[tuple[object, ...], NotRun] = {}
    scores: CategoryScores | None = None
    for verdict in verdicts:
        for finding in verdict.findings:
            key = (finding.rule, finding.stage, finding.action, finding.category, finding.shadow)
            known = findings.get(key)
            if known is None or (finding.score or 0.0) > (known.score or 0.0):
                findings[key] = finding
        for missing in verdict.not_run:
            not_run.setdefault((missing.rule, missing.stage, missing.failure), missing)
        scores = _higher(scores, verdict.scores)
    return Verdict(
        version=version,
        findings=tuple(findings.values()),
        not_run=tuple(not_run.values()),
        scores=scores,
    )


def _higher(one: CategoryScores | None, other: CategoryScores | None) -> CategoryScores | None:
    if one is None or other is None:
        return one or other
    categories: Mapping[str, float] = {**one.scores, **other.scores}
    return replace(
        one,
        scores={
            name: max(one.scores.get(name, 0.0), other.scores.get(name, 0.0)) for name in categories
        },
        flagged=one.flagged | other.flagged,
    )
