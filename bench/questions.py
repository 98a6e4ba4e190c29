"""Questions with the exact spans that answer each, as the data of brandonstarxel's
chunking_evaluation are laid out."""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`spans` are the references as they stand in the text, without spaces; `start` is where the
    first one does, with all that is before it."""

    text: str
    corpus: str
    start: int
    spans: tuple[str, ...]


def questions_of(data: Path) -> list[Question]:
    with (data / "questions.csv").open(encoding="utf-8", newline="") as rows:
        return [_question(row) for row in csv.DictReader(rows)]


def dense(text: str) -> str:
    """Without spaces, in which a text that was read may differ."""
    return re.sub(r"\s+", "", text)


def _question(row: dict[str, str]) -> Question:
    references = json.loads(row["references"])
    return Question(
        text=row["question"],
        corpus=row["corpus_id"],
        start=min(each["start_index"] for each in references),
        spans=tuple(dense(each["content"]) for each in references),
    )
