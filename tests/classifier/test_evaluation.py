"""Files of labelled texts, read and measured."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from antiphon.classifier.evaluation import (
    DatasetError,
    above,
    evaluate,
    markdown,
    read_examples,
)


class ByLength:
    """Scores a text by how long it is."""

    thresholds: Mapping[str, float] = {"hate": 0.5, "violence": 0.8}
    injection_threshold = 0.3

    def scores(self, texts: Sequence[str], *, light: bool = False) -> Sequence[Mapping[str, float]]:
        return [{"hate": min(len(text) / 10, 1.0), "violence": 0.0} for text in texts]

    def injection(self, texts: Sequence[str]) -> Sequence[float]:
        return [0.0 for _ in texts]


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_csv_and_a_jsonl_file_of_the_same_rows_read_the_same(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text('text,label\n"one, two",1\nthree,0\n', encoding="utf-8")
    lines = write(
        tmp_path / "a.jsonl", {"text": "one, two", "label": 1}, {"text": "three", "label": 0}
    )

    assert read_examples(table) == read_examples(lines)
    assert [row.flagged for row in read_examples(table)] == [True, False]


@pytest.mark.parametrize(
    ("label", "flagged"),
    [
        (True, True),
        (0, False),
        (["hate"], True),
        ([], False),
        ("hate", True),
        ("Safe", False),
        ("non-hateful", False),
        ("0", False),
        (None, False),
    ],
)
def test_a_label_is_harmless_when_it_says_so(tmp_path, label, flagged):
    path = write(tmp_path / "a.jsonl", {"text": "x", "label": label})

    assert read_examples(path)[0].flagged is flagged


def test_columns_with_other_names_are_named(tmp_path):
    path = write(tmp_path / "a.jsonl", {"message": "x", "bad": "yes"})

    with pytest.raises(DatasetError, match="no column for the text"):
        read_examples(path)
    assert read_examples(path, text="message", label="bad")[0].flagged


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("", 0, "no rows"),
        ('{"text": "x", "label": 1}\n{"text"\n', 2, "not JSON"),
        ('{"text": "x", "label": 1}\n[]\n', 2, "not an object"),
        ('{"text": "x", "label": 1}\n{"text": 7, "label": 1}\n', 2, "lacks"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, content, line, problem):
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(DatasetError, match=problem) as caught:
        read_examples(path)
    assert caught.value.line == line


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\n\xff\xfe,1\n")

    with pytest.raises(DatasetError, match="UTF-8"):
        read_examples(path)


def test_a_file_is_measured_by_whatever_category_is_flagged_first(tmp_path):
    path = write(
        tmp_path / "a.jsonl",
        {"text": "x" * 9, "label": 1},
        {"text": "x" * 6, "label": 0},
        {"text": "x" * 2, "label": 0},
        {"text": "x" * 4, "label": 1},
    )

    found = evaluate(path, ByLength()).figures

    assert found.auroc is not None
    assert found.auroc.value == 0.75
    assert (found.at.flagged, found.at.false_alarms) == (0.5, 0.5)
    assert "| AUROC | 0.750" in markdown(evaluate(path, ByLength()))


def test_one_category_or_the_injections_are_measured_by_their_own_threshold(tmp_path):
    path = write(tmp_path / "a.jsonl", {"text": "x", "label": 1}, {"text": "y", "label": 0})

    assert evaluate(path, ByLength(), measured="violence").figures.at.threshold == 0.8
    assert evaluate(path, ByLength(), measured="injection").figures.at.threshold == 0.3


def test_above_puts_every_threshold_at_one_half():
    limits = {"hate": 0.2, "violence": 0.9}

    assert above({"hate": 0.2, "violence": 0.0}, limits) == pytest.approx(0.5)
    assert above({"hate": 0.0, "violence": 0.9}, limits) == pytest.approx(0.5)
    assert above({"hate": 0.1, "violence": 0.45}, limits) == pytest.approx(0.25)
    assert above({"hate": 1.0, "violence": 0.0}, limits) == pytest.approx(1.0)
    assert above({"other": 1.0}, limits) == 0.0
