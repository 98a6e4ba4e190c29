"""Rules measured on a file of labelled texts, as `antiphon policy eval` shows it: what is blocked,
by which rule, and how sure the figures are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from antiphon.classifier.evaluation import above, curve_table, read_examples
from antiphon.classifier.figures import Figures, Interval, figures, rate
from antiphon.policy.compiled import ScopedRules
from antiphon.policy.scan import Scorer
from antiphon.progress import Told, telling, untold
from antiphon.trying.trial import judge_whole
from antiphon.verdicts import Action, Stage, Verdict

_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How many texts a rule matched, of those that are to be flagged and of the harmless ones."""

    rule: str
    action: Action
    shadow: bool
    flagged: int
    harmless: int
    first: int
    """Texts that it was the one to block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesEvaluation:
    """What the rules did."""

    source: str
    version: str
    stage: Stage
    rows: int
    positives: int
    blocked: Interval | None
    """Share of what is to be flagged."""
    false_alarms: Interval | None
    """Share of the harmless texts that are blocked."""
    rules: tuple[RuleCount, ...]
    classifier: Figures | None
    """Of the classifier's scores, where a rule asks it; 0.5 is the rules' own thresholds."""


def evaluate_rules(
    scoped: ScopedRules,
    stage: Stage,
    dataset: Path,
    *,
    scorer: Callable[[], Scorer],
    text: str | None = None,
    label: str | None = None,
    told: Told = untold,
) -> RulesEvaluation:
    """Raises DatasetError, OSError."""
    examples = read_examples(dataset, text=text, label=label)
    texts = [example.text for example in examples]
    truths = [example.flagged for example in examples]
    verdicts: list[Verdict] = []
    loaded: list[Scorer] = []

    def load_once() -> Scorer:
        loaded[:] = loaded or [scorer()]
        return loaded[0]

    batches = range(0, len(texts), _BATCH)
    for at in telling(batches, len(batches), told):
        verdicts += judge_whole(scoped, stage, texts[at : at + _BATCH], load_once)
    if stage is Stage.OUTPUT:
        verdicts = [
            Verdict(
                version=verdict.version,
                findings=(*scoped.search(stage, each), *verdict.findings),
                not_run=verdict.not_run,
                scores=verdict.scores,
            )
            for each, verdict in zip(texts, verdicts, strict=True)
        ]
    blocked = [verdict.blocked_by for verdict in verdicts]
    positives = sum(truths)
    hits = sum(by is not None and truth for by, truth in zip(blocked, truths, strict=True))
    alarms = sum(by is not None and not truth for by, truth in zip(blocked, truths, strict=True))
    return RulesEvaluation(
        source=dataset.name,
        version=scoped.version,
        stage=stage,
        rows=len(examples),
        positives=positives,
        blocked=rate(hits, positives) if positives else None,
        false_alarms=rate(alarms, len(truths) - positives) if positives < len(truths) else None,
        rules=tuple(_counts(scoped, stage, verdicts, truths, blocked)),
        classifier=_classified(verdicts, truths, loaded),
    )


def evaluation_lines(measured: RulesEvaluation) -> list[str]:
    """For people."""
    lines = [
        f"{measured.source}: {measured.rows} texts, {measured.positives} of them to be flagged; "
        f"rules {measured.version}, stage {measured.stage}",
        f"blocked of those to be flagged: {_said(measured.blocked)}",
        f"blocked of the harmless ones:   {_said(measured.false_alarms)}",
        "",
        "| rule | does | matched, to be flagged | matched, harmless | blocked first |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.rule} | {each.action}{' (shadow)' if each.shadow else ''} "
        f"| {each.flagged} | {each.harmless} | {each.first} |"
        for each in measured.rules
    ]
    shown = measured.classifier
    if shown is not None:
        lines += [
            "",
            f"classifier: AUROC {_said(shown.auroc)}, flagged {_said(shown.flagged)}, "
            f"false alarms {_said(shown.false_alarms)} (95 % intervals)",
            "its own thresholds are 0.5 here:",
            "",
            curve_table(shown),
        ]
    return lines


def evaluation_json(measured: RulesEvaluation) -> dict[str, Any]:
    """For programs."""
    shown = measured.classifier
    return {
        "source": measured.source,
        "version": measured.version,
        "stage": measured.stage.value,
        "rows": measured.rows,
        "positives": measured.positives,
        "blocked": _plain(measured.blocked),
        "false_alarms": _plain(measured.false_alarms),
        "rules": [
            {
                "rule": each.rule,
                "action": each.action.value,
                "shadow": each.shadow,
                "flagged": each.flagged,
                "harmless": each.harmless,
                "first": each.first,
            }
            for each in measured.rules
        ],
        "classifier": None
        if shown is None
        else {
            "auroc": _plain(shown.auroc),
            "flagged": _plain(shown.flagged),
            "false_alarms": _plain(shown.false_alarms),
            "curve": [
                [point.threshold, point.flagged, point.false_alarms] for point in shown.curve
            ],
        },
    }


def _counts(
    scoped: ScopedRules,
    stage: Stage,
    verdicts: Sequence[Verdict],
    truths: Sequence[bool],
    blocked: Sequence[str | None],
) -> list[RuleCount]:
    matched = [{finding.rule for finding in verdict.findings} for verdict in verdicts]
    return [
        RuleCount(
            rule=rule.id,
            action=rule.action,
            shadow=rule.shadow,
            flagged=sum(
                rule.id in each and true for each, true in zip(matched, truths, strict=True)
            ),
            harmless=sum(
                rule.id in each and not true for each, true in zip(matched, truths, strict=True)
            ),
            first=blocked.count(rule.id),
        )
        for rule in scoped.rules
        if stage in rule.stages
    ]


def _classified(
    verdicts: Sequence[Verdict], truths: Sequence[bool], loaded: Sequence[Scorer]
) -> Figures | None:
    if not loaded or all(verdict.scores is None for verdict in verdicts):
        return None
    limits = loaded[0].thresholds
    scores = [
        0.0 if verdict.scores is None else above(verdict.scores.scores, limits)
        for verdict in verdicts
    ]
    return figures(scores, truths, threshold=0.5)


def _said(interval: Interval | None) -> str:
    return "–" if interval is None else str(interval)


def _plain(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.value, interval.low, interval.high]
