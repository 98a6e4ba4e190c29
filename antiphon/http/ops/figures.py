"""The figures of the operations page that are read off: what was counted since the start, how fast
tokens come now, how long first tokens took lately. Values made from what others keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from prometheus_client import CollectorRegistry

from antiphon.http.ops.recent import Recent
from antiphon.http.ops.summary import Summary, quantile, summarised
from antiphon.ids import ModelName

_LATELY_S = 300.0
"""How far back first tokens are looked at, as far as their turns are remembered."""

_LOOKED_AT = 1000
"""A page that draws itself again every two seconds must not take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokens:
    """How long first tokens took of turns that arrived lately; None where there were none."""

    turns: int
    median_s: float | None
    p95_s: float | None
    queued_median_s: float | None
    prefill_median_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Tokens a second of one model: over ten seconds, and each of the last minute's seconds."""

    model: ModelName
    tokens_per_second: float
    last_minute: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything, at one moment. Totals are since the start."""

    rates: tuple[Rate, ...]
    first_tokens: FirstTokens
    ends: Mapping[str, int]
    """Turns by how they ended, errors by their class."""
    statuses: Mapping[str, int]
    """HTTP answers."""
    refused: Mapping[str, int]
    """Requests that were refused for load."""
    verdicts: Mapping[str, Mapping[str, int]]
    """By stage, then by outcome."""
    findings: Mapping[str, Mapping[str, int]]
    """By rule, then by action; those of a shadow are `shadow`."""
    work: Mapping[str, Mapping[str, int]]
    """Titles, summaries, memories: by kind, then by outcome."""


def figures(registry: CollectorRegistry, recent: Recent, models: Sequence[ModelName]) -> Figures:
    """As things are now."""
    timelines, pulse, now = recent.timelines, recent.pulse, recent.clock()
    lately = [
        summarised(line, now)
        for line in islice(timelines, _LOOKED_AT)
        if now - line.began <= _LATELY_S and not line.arrived.upkeep
    ]
    return Figures(
        rates=tuple(
            Rate(
                model=model,
                tokens_per_second=round(pulse.per_second(model, now), 1),
                last_minute=pulse.last_minute(model, now),
            )
            for model in models
        ),
        first_tokens=_first_tokens(lately),
        ends=dict(sorted(timelines.ends.items(), key=lambda item: -item[1])),
        statuses=_totals(registry, "antiphon_http_requests", "status"),
        refused=_totals(registry, "antiphon_admission_rejections", "reason"),
        verdicts=_tables(registry, "antiphon_policy_verdicts", "stage", "outcome"),
        findings=_tables(registry, "antiphon_policy_findings", "rule", "action"),
        work=_tables(registry, "antiphon_work", "kind", "outcome"),
    )


def _first_tokens(lately: Sequence[Summary]) -> FirstTokens:
    known = [each for each in lately if each.first_token_s is not None]
    times = [each.first_token_s for each in known if each.first_token_s is not None]
    return FirstTokens(
        turns=len(times),
        median_s=quantile(times, 0.5),
        p95_s=quantile(times, 0.95),
        queued_median_s=quantile([s for each in known if (s := each.queued_s) is not None], 0.5),
        prefill_median_s=quantile([s for each in known if (s := each.prefill_s) is not None], 0.5),
    )


def _totals(registry: CollectorRegistry, name: str, label: str) -> dict[str, int]:
    totals: dict[str, int] = {}
    for labels, value in samples(registry, name):
        totals[labels[label]] = totals.get(labels[label], 0) + value
    return dict(sorted(totals.items()))


def _tables(
    registry: CollectorRegistry, name: str, row: str, column: str
) -> dict[str, dict[str, int]]:
    tables: dict[str, dict[str, int]] = {}
    for labels, value in samples(registry, name):
        head = "shadow" if labels.get("shadow") == "true" else labels[column]
        cells = tables.setdefault(labels[row], {})
        cells[head] = cells.get(head, 0) + value
    return dict(sorted(tables.items()))


def samples(registry: CollectorRegistry, name: str) -> list[tuple[dict[str, str], int]]:
    """What a counter has counted, by its labels. Only this one is collected, not all of them."""
    total = f"{name}_total"
    return [
        (sample.labels, int(sample.value))
        for family in registry.restricted_registry([total]).collect()
        for sample in family.samples
        if sample.name == total
    ]
