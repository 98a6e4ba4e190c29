"""The figures of the cross-validation as Markdown, with intervals and whole curves."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.evaluation import curve_table
from antiphon.classifier.figures import Figures, Interval, figures, rate
from antiphon.classifier.linear import Floats
from antiphon.classifier.model import HEADS, led
from training.injection_validation import HeldDocuments, limit
from training.rows import Row
from training.validation import FULL, LIGHT, Alarms, Held, calibration

_SETS = {
    "openai": "OpenAI's moderation set",
    "hatecheck": "HateCheck, by function",
    "xstest": "XSTest",
    "simple": "SimpleSafetyTests",
    "turns": "MT-Bench-101 turns",
}


def report(rows: Sequence[Row], held: Held, documents: HeldDocuments) -> str:
    """Everything that the model card shows."""
    full = scores(rows, held.full(), FULL)
    light = scores(rows, held.ngrams, LIGHT)
    truths = np.array([row.labels[0] == 1 for row in rows])
    injected = np.array([document.attack is not None for document in documents.documents])
    centred = 1 / (1 + np.exp(-(documents.logits - limit(documents))))
    whole = figures(centred, injected, threshold=0.5)
    return "\n".join(
        [
            "| set | rows, to be flagged | figure | full | light |",
            "|---|---|---|---|---|",
            *_set_lines(rows, truths, full, light),
            "",
            "| injections in e-mails and turns | value (95 % interval) |",
            "|---|---|",
            *_injection_lines(documents, centred),
            "",
            "By function of HateCheck, share flagged at the default threshold:",
            "",
            *_by_group(rows, truths, full),
            "",
            "By category of OpenAI's set, AUROC of the category's own head:",
            "",
            *_by_category(rows, held.full()),
            "",
            "Every threshold, XSTest's safe prompts against SimpleSafetyTests:",
            "",
            curve_table(_over_blocking(rows, truths, full)),
            "Every threshold, OpenAI's set:",
            "",
            curve_table(_figures(rows, truths, full, "openai")),
            "Every threshold, injections:",
            "",
            curve_table(whole),
        ]
    )


def scores(rows: Sequence[Row], logits: Floats, alarms: Alarms) -> Floats:
    """The first head's logits as scores, 0.5 being the default threshold."""
    slope, intercept = calibration(rows, logits, alarms)[0]
    found: Floats = 1 / (1 + np.exp(-(led(logits)[:, 0] * slope + intercept)))
    return found


def _set_lines(
    rows: Sequence[Row], truths: NDArray[np.bool_], full: Floats, light: Floats
) -> list[str]:
    lines = []
    for name, shown in _SETS.items():
        both = [_figures(rows, truths, found, name) for found in (full, light)]
        head = f"| {shown} | {both[0].rows}, {both[0].positives} |"
        for figure in ("auroc", "flagged", "false_alarms"):
            values: list[Interval | None] = [getattr(each, figure) for each in both]
            if values[0] is not None:
                label = {"auroc": "AUROC", "flagged": "flagged", "false_alarms": "false alarms"}
                lines.append(f"{head} {label[figure]} | {values[0]} | {values[1]} |")
    return lines


def _injection_lines(documents: HeldDocuments, centred: Floats) -> list[str]:
    lines = []
    for place in ("start", "middle", "end"):
        chosen = [document.place == place for document in documents.documents]
        hits = centred[np.array(chosen)] >= 0.5
        lines.append(f"| flagged, attack at the {place} | {rate(int(hits.sum()), len(hits))} |")
    attacked = np.array([document.attack is not None for document in documents.documents])
    hits = centred[attacked] >= 0.5
    lines.append(f"| flagged, all | {rate(int(hits.sum()), len(hits))} |")
    for name, shown in (("mail", "clean e-mails"), ("turns", "MT-Bench-101 turns")):
        chosen = [
            document.set == name and document.attack is None for document in documents.documents
        ]
        hits = centred[np.array(chosen)] >= 0.5
        lines.append(f"| false alarms, {shown} | {rate(int(hits.sum()), len(hits))} |")
    return lines


def _by_group(rows: Sequence[Row], truths: NDArray[np.bool_], full: Floats) -> list[str]:
    lines = ["| function | label | flagged |", "|---|---|---|"]
    groups = sorted({row.group or "" for row in rows if row.set == "hatecheck"})
    for group in groups:
        at = np.array([row.group == group for row in rows])
        label = "hateful" if truths[at][0] else "not hateful"
        hits = full[at] >= 0.5
        name = group.removeprefix("hatecheck ")
        lines.append(f"| {name} | {label} | {rate(int(hits.sum()), len(hits))} |")
    return lines


def _by_category(rows: Sequence[Row], logits: Floats) -> list[str]:
    lines = ["| category | rows | AUROC |", "|---|---|---|"]
    chosen = np.array([row.set == "openai" for row in rows])
    labels = np.stack([row.labels for row in rows])
    for head, name in enumerate(HEADS[1:], 1):
        known = chosen & ~np.isnan(labels[:, head])
        positives = int((labels[known, head] == 1).sum())
        if positives >= 10:
            found = figures(logits[known, head], labels[known, head] == 1, threshold=0.0)
            lines.append(f"| {name} | {positives} | {found.auroc} |")
    return lines


def _figures(rows: Sequence[Row], truths: NDArray[np.bool_], found: Floats, name: str) -> Figures:
    at = np.array([row.set == name for row in rows])
    return figures(found[at], truths[at], threshold=0.5)


def _over_blocking(rows: Sequence[Row], truths: NDArray[np.bool_], full: Floats) -> Figures:
    at = np.array([row.set in ("xstest", "simple") for row in rows])
    unsafe = np.array([row.set == "simple" for row in rows])
    at &= unsafe | ~truths
    return figures(full[at], unsafe[at], threshold=0.5)
