"""Measures a scorer on a file of labelled texts.

For `antiphon policy eval`: `evaluate(path, scorer)` -> `Evaluation` (frozen: `.figures`, which has
rows, positives, auroc, flagged, false_alarms, at, curve; `.ms_per_text`), `markdown(evaluation)` ->
a table. Whoever has verdicts of rules instead of scores calls `figures.figures` with 0.0 and 1.0.
"""

import csv
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from antiphon.classifier.figures import Figures, Interval, figures

TEXT_COLUMNS = ("text", "prompt", "input", "content", "test_case", "prompts_final")
LABEL_COLUMNS = ("label", "flagged", "unsafe", "label_gold", "toxic")
SAFE_WORDS = frozenset(
    {"", "0", "0.0", "false", "no", "none", "safe", "ok", "clean", "benign", "non-hateful", "[]"}
)
"""A label that is one of these means harmless; any other names what the text is flagged for."""
_BATCH = 16


class Scorer(Protocol):
    """As much of a classifier as an evaluation needs."""

    @property
    def thresholds(self) -> Mapping[str, float]: ...

    @property
    def injection_threshold(self) -> float: ...

    def scores(
        self, texts: Sequence[str], *, light: bool = False
    ) -> Sequence[Mapping[str, float]]: ...

    def injection(self, texts: Sequence[str]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row of a file."""

    text: str
    flagged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a scorer does on a file."""

    source: str
    measured: str
    """full, light, injection, or a category."""
    figures: Figures
    ms_per_text: float
    """Of this process's CPU."""


class DatasetError(Exception):
    """The file can't be evaluated: `line` (from 1; 0 for the whole file) and what is wrong."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem


def read_examples(
    path: Path, *, text: str | None = None, label: str | None = None
) -> list[Example]:
    """The rows of a CSV or JSONL file. Columns that aren't named are looked for by their usual
    names. Raises DatasetError, OSError."""
    try:
        rows = list(_csv(path) if path.suffix.lower() == ".csv" else _jsonl(path))
    except UnicodeDecodeError as error:
        raise DatasetError(path, 0, "is not UTF-8") from error
    except csv.Error as error:
        raise DatasetError(path, 0, str(error)) from error
    if not rows:
        raise DatasetError(path, 0, "has no rows")
    text = text or _column(path, rows[0][1], TEXT_COLUMNS, "text")
    label = label or _column(path, rows[0][1], LABEL_COLUMNS, "label")
    examples = []
    for line, row in rows:
        if not isinstance(row.get(text), str) or label not in row:
            raise DatasetError(path, line, f"lacks {text!r} or {label!r}")
        examples.append(Example(text=str(row[text]), flagged=_is_flagged(row[label])))
    return examples


def evaluate(
    path: Path,
    scorer: Scorer,
    *,
    light: bool = False,
    measured: str | None = None,
    text: str | None = None,
    label: str | None = None,
) -> Evaluation:
    """The scorer's figures on the file: of its highest score, or of what `measured` names, a
    category or `injection`. Raises DatasetError, OSError."""
    examples = read_examples(path, text=text, label=label)
    score, threshold = _measure(scorer, light=light, measured=measured)
    began = time.process_time()
    found: list[float] = []
    for at in range(0, len(examples), _BATCH):
        found += score([example.text for example in examples[at : at + _BATCH]])
    spent = time.process_time() - began
    return Evaluation(
        source=path.name,
        measured=measured or ("light" if light else "full"),
        figures=figures(found, [example.flagged for example in examples], threshold=threshold),
        ms_per_text=spent / len(examples) * 1000,
    )


def above(scores: Mapping[str, float], thresholds: Mapping[str, float]) -> float:
    """All categories as one score, in which 0.5 is where the first of them is flagged."""
    return max(
        (_centred(score, thresholds[name]) for name, score in scores.items() if name in thresholds),
        default=0.0,
    )


def markdown(evaluation: Evaluation) -> str:
    """The figures as a table, and the curve as another."""
    shown = evaluation.figures
    head = [
        f"### {evaluation.source}: {evaluation.measured}",
        "",
        "| figure | value (95 % interval) |",
        "|---|---|",
        f"| rows | {shown.rows}, {shown.positives} of them to be flagged |",
        f"| AUROC | {_said(shown.auroc)} |",
        f"| flagged at {shown.at.threshold:.3f} | {_said(shown.flagged)} |",
        f"| false alarms | {_said(shown.false_alarms)} |",
        f"| precision, F1 | {shown.at.precision:.3f}, {shown.at.f1:.3f} |",
        f"| time a text | {evaluation.ms_per_text:.2f} ms |",
        "",
    ]
    return "\n".join([*head, curve_table(shown)])


def curve_table(shown: Figures) -> str:
    """The curve, one threshold a line."""
    lines = ["| threshold | flagged | false alarms | precision | F1 |", "|---|---|---|---|---|"]
    lines += [
        f"| {point.threshold:.2f} | {point.flagged:.3f} | {point.false_alarms:.3f} "
        f"| {point.precision:.3f} | {point.f1:.3f} |"
        for point in shown.curve
    ]
    return "\n".join([*lines, ""])


def _measure(
    scorer: Scorer, *, light: bool, measured: str | None
) -> tuple[Callable[[Sequence[str]], list[float]], float]:
    if measured == "injection":
        return lambda texts: list(scorer.injection(texts)), scorer.injection_threshold
    if measured is not None:
        threshold = scorer.thresholds.get(measured, 0.5)
        return (
            lambda texts: [each.get(measured, 0.0) for each in scorer.scores(texts, light=light)],
            threshold,
        )
    limits = scorer.thresholds
    return (lambda texts: [above(each, limits) for each in scorer.scores(texts, light=light)], 0.5)


def _centred(score: float, threshold: float) -> float:
    if score < threshold:
        return 0.5 * score / threshold
    return 1.0 if threshold >= 1.0 else 0.5 + 0.5 * (score - threshold) / (1.0 - threshold)


def _csv(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            yield reader.line_num, row


def _jsonl(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DatasetError(path, number, "is not JSON") from error
            if not isinstance(row, dict):
                raise DatasetError(path, number, "is not an object")
            yield number, row


def _column(path: Path, row: Mapping[str, object], known: Sequence[str], role: str) -> str:
    for name in known:
        if name in row:
            return name
    raise DatasetError(path, 0, f"has no column for the {role}; name it")


def _is_flagged(label: object) -> bool:
    if isinstance(label, str):
        return label.strip().lower() not in SAFE_WORDS
    return bool(label)


def _said(interval: Interval | None) -> str:
    return "–" if interval is None else str(interval)
