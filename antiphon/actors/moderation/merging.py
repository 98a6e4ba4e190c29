"""What several judges say of the same texts, made into one verdict each; and what is said where one
of them said nothing. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from antiphon.policy.rules import Rule
from antiphon.verdicts import Action, Failure, Finding, Stage, Verdict


def not_run(
    version: str, rules: Iterable[Rule], stage: Stage, failure: Failure, texts: int
) -> tuple[Verdict, ...]:
    """Of rules that judged none of the texts."""
    missing = tuple(rule.not_run(stage, failure) for rule in rules)
    return (Verdict(version=version, not_run=missing),) * texts


def of_findings(version: str, found: Iterable[tuple[Finding, ...]]) -> tuple[Verdict, ...]:
    """Of rules that have judged each text."""
    return tuple(Verdict(version=version, findings=findings) for findings in found)


def merged(
    version: str, order: Mapping[str, int], parts: Sequence[Sequence[Verdict]]
) -> tuple[Verdict, ...]:
    """One verdict for each text from those of each part, in the order of the rules."""
    if len(parts) == 1:
        return tuple(parts[0])
    return tuple(
        Verdict(
            version=version,
            findings=tuple(
                sorted(
                    (finding for verdict in said for finding in verdict.findings),
                    key=lambda finding: (order.get(finding.rule, 0), finding.start),
                )
            ),
            not_run=tuple(
                sorted(
                    (missing for verdict in said for missing in verdict.not_run),
                    key=lambda missing: order.get(missing.rule, 0),
                )
            ),
            scores=next((verdict.scores for verdict in said if verdict.scores is not None), None),
        )
        for said in zip(*parts, strict=True)
    )


def outcomes_of(verdicts: Iterable[Verdict]) -> set[str]:
    """What came of them. Shadows do nothing."""
    outcomes: set[str] = set()
    for verdict in verdicts:
        if verdict.blocked_by is not None:
            outcomes.add("blocked")
        if any(not missing.shadow for missing in verdict.not_run):
            outcomes.add("not_run")
        outcomes |= actions_of(verdict.findings)
    return outcomes


def actions_of(findings: Iterable[Finding]) -> set[str]:
    """What findings did, as outcomes."""
    return {_DONE[finding.action] for finding in findings if not finding.shadow}


def gravest(outcomes: Collection[str]) -> str:
    """One word for all of them: blocked, not_run, transformed, annotated or passed."""
    return next((word for word in _GRAVEST_FIRST if word in outcomes), "passed")


_DONE = {Action.BLOCK: "blocked", Action.TRANSFORM: "transformed", Action.ANNOTATE: "annotated"}
_GRAVEST_FIRST = ("blocked", "not_run", "transformed", "annotated")
