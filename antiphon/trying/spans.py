"""The personal data matcher measured on texts whose entities are marked, in the form of
presidio-research: a JSON array of `full_text` and `spans`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.evaluation import DatasetError
from antiphon.classifier.figures import RESAMPLES, Interval, rate
from antiphon.policy.personal import ENTITIES
from antiphon.policy.rulebook import parse_rules
from antiphon.verdicts import PolicyScope, Stage

SAME = {"DOMAIN_NAME": "URL"}
"""Entities that a data set names otherwise."""
ALL = "all together"
_RIGHT, _WRONG, _MISSED = range(3)

Span = tuple[str, int, int]
"""An entity, where it begins and where it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFigures:
    """Of one entity: a span is right where it overlaps one that is marked as the same entity."""

    entity: str
    right: int
    wrong: int
    missed: int
    precision: Interval
    recall: Interval
    f1: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvaluation:
    source: str
    rows: int
    exact: int
    """Spans, of all that are right, that begin and end where they should."""
    entities: tuple[EntityFigures, ...]
    """Those that the file has; the last is all together."""


def evaluate_spans(path: Path) -> SpanEvaluation:
    """Raises DatasetError, OSError."""
    rows = _rows(path)
    search = _searcher()
    names = [*ENTITIES, ALL]
    counts = np.zeros((len(rows), len(names), 3), dtype=np.int64)
    exact = 0
    for number, (text, marked) in enumerate(rows):
        found = search(text)
        exact += len(set(found) & set(marked))
        for entity, outcome in _compared(found, marked):
            counts[number, names.index(entity), outcome] += 1
    counts[:, -1] = counts[:, :-1].sum(axis=1)
    random = np.random.default_rng(0)
    drawn = random.multinomial(len(rows), [1 / len(rows)] * len(rows), size=RESAMPLES)
    return SpanEvaluation(
        source=path.name,
        rows=len(rows),
        exact=exact,
        entities=tuple(
            _figures(name, counts[:, column], drawn)
            for column, name in enumerate(names)
            if counts[:, column, (_RIGHT, _MISSED)].any()
        ),
    )


def span_lines(measured: SpanEvaluation) -> list[str]:
    """For people."""
    right = measured.entities[-1].right if measured.entities else 0
    lines = [
        f"{measured.source}: {measured.rows} texts; of {right} spans that are right, "
        f"{measured.exact} begin and end where they should",
        "",
        "| entity | right | wrong | missed | precision | recall | F1 (95 % intervals) |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.entity} | {each.right} | {each.wrong} | {each.missed} "
        f"| {each.precision} | {each.recall} | {each.f1} |"
        for each in measured.entities
    ]
    return lines


def span_json(measured: SpanEvaluation) -> dict[str, Any]:
    """For programs."""
    return {
        "source": measured.source,
        "rows": measured.rows,
        "exact": measured.exact,
        "entities": {
            each.entity: {
                "right": each.right,
                "wrong": each.wrong,
                "missed": each.missed,
                "precision": _plain(each.precision),
                "recall": _plain(each.recall),
                "f1": _plain(each.f1),
            }
            for each in measured.entities
        },
    }


def _plain(interval: Interval) -> list[float]:
    return [interval.value, interval.low, interval.high]


def _rows(path: Path) -> list[tuple[str, list[Span]]]:
    try:
        rows = json.loads(path.read_bytes())
        return [
            (
                row["full_text"],
                [
                    (entity, span["start_position"], span["end_position"])
                    for span in row["spans"]
                    if (entity := SAME.get(span["entity_type"], span["entity_type"])) in ENTITIES
                ],
            )
            for row in rows
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(path, 0, "is no JSON array of full_text and spans") from error


def _searcher() -> Callable[[str], list[Span]]:
    """All entities, each found by its name."""
    entities = ", ".join(f'"{entity}"' for entity in ENTITIES)
    rules = parse_rules(
        "spans",
        'format = 1\n[[rules]]\nid = "personal"\nstages = ["output"]\naction = "transform"\n'
        f'replacement = "{{entity}}"\nmatch = {{ kind = "personal", entities = [{entities}] }}\n',
        folder=None,
    ).for_scope(PolicyScope())
    return lambda text: [
        (str(finding.replacement), finding.start, finding.end)
        for finding in rules.search(Stage.OUTPUT, text)
    ]


def _compared(found: Sequence[Span], marked: Sequence[Span]) -> list[tuple[str, int]]:
    """Each span of either side once, with what it is."""
    left = list(marked)
    outcomes = []
    for entity, start, end in found:
        hit = next(
            (each for each in left if each[0] == entity and start < each[2] and each[1] < end),
            None,
        )
        if hit is not None:
            left.remove(hit)
        outcomes.append((entity, _WRONG if hit is None else _RIGHT))
    return [*outcomes, *((entity, _MISSED) for entity, _, _ in left)]


def _figures(name: str, counts: NDArray[np.int64], drawn: NDArray[np.int64]) -> EntityFigures:
    right, wrong, missed = (int(count) for count in counts.sum(axis=0))
    totals = drawn @ counts
    # Wilson's intervals, since the bootstrap knows no doubt where nothing was wrong.
    return EntityFigures(
        entity=name,
        right=right,
        wrong=wrong,
        missed=missed,
        precision=_rate(right, right + wrong),
        recall=_rate(right, right + missed),
        f1=_interval(
            _share(2 * right, 2 * right + wrong + missed),
            2 * totals[:, _RIGHT],
            2 * totals[:, _RIGHT] + totals[:, _WRONG] + totals[:, _MISSED],
        ),
    )


def _rate(part: int, whole: int) -> Interval:
    return rate(part, whole) if whole else Interval(value=0.0, low=0.0, high=1.0)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _interval(value: float, above: NDArray[np.int64], below: NDArray[np.int64]) -> Interval:
    """By the bootstrap: rows drawn again and again."""
    drawn = above[below > 0] / below[below > 0]
    low, high = np.quantile(drawn, [0.025, 0.975]) if len(drawn) else (0.0, 0.0)
    return Interval(value=value, low=float(low), high=float(high))
