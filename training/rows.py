"""Everything there is to learn from: the public sets, and the rows in the folder `rows`.

A label is 1, 0, or unknown (NaN): a set that doesn't tell a category apart says nothing of it.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from antiphon.classifier.model import HEADS
from training.disguises import disguised

OWN = Path(__file__).parent / "rows"
LONGEST = 4000

_OPENAI = {
    "S": "sexual",
    "H": "hate",
    "V": "violence",
    "HR": "harassment",
    "SH": "self-harm",
    "S3": "sexual/minors",
    "H2": "hate/threatening",
    "V2": "violence/graphic",
}
_UNTOLD_BY_OPENAI = (
    "illicit",
    "illicit/violent",
    "self-harm/intent",
    "self-harm/instructions",
    "harassment/threatening",
)
_AREAS = {
    "Suicide, Self-Harm, and Eating Disorders": ("self-harm", "self-harm/instructions"),
    "Physical harm and Violence": ("violence", "illicit", "illicit/violent"),
    "Illegal and Highly Regulated items": ("illicit",),
    "Scams and fraud": ("illicit",),
    "Child safety": ("sexual/minors", "sexual"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One text with what it is. `group` stays together in a cross-validation; own rows have
    none and are never measured."""

    text: str
    labels: NDArray[np.float32]
    weight: float
    set: str
    group: str | None


def public_rows(folder: Path) -> list[Row]:
    """The rows of the public sets, in the order of their files. Raises OSError, KeyError."""
    return [
        *_openai(folder / "openai_moderation_half.jsonl"),
        *_hatecheck(folder / "hatecheck_functions.csv"),
        *_xstest(folder / "xstest_half.csv"),
        *_simple(folder / "simplesafetytests_half.csv"),
        *_turns(folder / "mtbench101_half.jsonl"),
    ]


def answer_rows(folder: Path) -> list[Row]:
    """Answers of MT-Bench-101 that aren't among the public rows: what a model says all day. For
    n-grams only, which judge output; the measured ones are of other dialogues."""
    found = []
    for number, (_, bot) in enumerate(turns(folder / "mtbench101_half.jsonl")):
        if number % 12 in (3, 6, 9):
            row = Row(
                text=bot[:1500],
                labels=_labels(()),
                weight=0.3,
                set="answers",
                group=f"turns {number}",
            )
            found.append(row)
    return found


def own_rows(*, seed: int = 0, each: int = 6) -> list[Row]:
    """The rows we wrote, their slots filled `each` times at random, some of them disguised."""
    random = Random(seed)
    slots = _slots()
    rows = []
    for name in ("hate", "harmless_hate", "requests", "texts", "posts"):
        for labels, template in _lines(OWN / f"{name}.txt"):
            filled = 1 + (each - 1) * ("{" in template)
            texts = {_filled(template, slots, random) for _ in range(filled)}
            for text in sorted(texts):
                rows.append(_own(text, labels, 0.5 if filled > 1 else 1.0))
                if random.random() < 0.25:
                    rows.append(_own(disguised(text, random), labels, 0.4))
    return rows


def disguised_rows(rows: list[Row], *, seed: int = 1, share: float = 0.25) -> list[Row]:
    """Some rows of hate speech again, in disguise: for training only."""
    random = Random(seed)
    return [
        Row(
            text=disguised(row.text, random),
            labels=row.labels,
            weight=row.weight,
            set=row.set,
            group=row.group,
        )
        for row in rows
        if row.set == "hatecheck" and random.random() < share
    ]


def known(**labels: float) -> NDArray[np.float32]:
    """Labels by name; those not named are 0."""
    found = np.zeros(len(HEADS), dtype=np.float32)
    for name, value in labels.items():
        found[HEADS.index(name)] = value
    return found


def _labels(names: tuple[str, ...], unknown: tuple[str, ...] = ()) -> NDArray[np.float32]:
    """What is of the categories named is to be flagged."""
    found = known(any=1.0 if names else 0.0, **dict.fromkeys(names, 1.0))
    for name in unknown:
        if name not in names:
            found[HEADS.index(name)] = np.nan
    return found


def _openai(path: Path) -> Iterator[Row]:
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        row = json.loads(line)
        names = tuple(name for key, name in _OPENAI.items() if row.get(key))
        yield Row(
            text=row["prompt"][:LONGEST],
            labels=_labels(names, _UNTOLD_BY_OPENAI if names else ()),
            weight=1.0,
            set="openai",
            group=f"openai {number}",
        )


def _hatecheck(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            function = row["functionality"]
            if row["label_gold"] == "hateful":
                names: tuple[str, ...] = ("hate",)
                if function.startswith("threat"):
                    names = ("hate", "hate/threatening", "violence")
                unknown: tuple[str, ...] = (
                    "harassment",
                    "harassment/threatening",
                    "hate/threatening",
                    "violence",
                )
            else:
                names, unknown = (), ("harassment",) if function.startswith("target") else ()
            yield Row(
                text=row["test_case"],
                labels=_labels(names, unknown),
                weight=0.5,
                set="hatecheck",
                group=f"hatecheck {function}",
            )


def _xstest(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names: tuple[str, ...] = ()
            unknown: tuple[str, ...] = ()
            if row["label"] == "unsafe":
                names = ("hate",) if row["type"] == "contrast_discr" else ("illicit",)
                unknown = tuple(name for name in HEADS if name not in ("any", "sexual"))
            yield Row(
                text=row["prompt"],
                labels=_labels(names, unknown),
                weight=2.0,
                set="xstest",
                group=f"xstest {row['id']}",
            )


def _simple(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names = _AREAS[row["harm_area"]]
            yield Row(
                text=row["prompts_final"],
                labels=_labels(names, tuple(name for name in HEADS if name != "any")),
                weight=2.0,
                set="simple",
                group=f"simple {row['id']}",
            )


def turns(path: Path) -> Iterator[tuple[str, str]]:
    """Every user's turn and the answer to it, of MT-Bench-101."""
    for line in path.read_text("utf-8").splitlines():
        for turn in json.loads(line)["history"]:
            yield turn["user"], turn["bot"]


def _turns(path: Path) -> Iterator[Row]:
    for number, (user, bot) in enumerate(turns(path)):
        for text, kept in ((user, number % 4 == 0), (bot, number % 12 == 0)):
            if kept:
                yield Row(
                    text=text[:LONGEST],
                    labels=_labels(()),
                    weight=0.3,
                    set="turns",
                    group=f"turns {number}",
                )


def _own(text: str, labels: str, weight: float) -> Row:
    if labels == "safe":
        return Row(text=text, labels=_labels(()), weight=weight, set="own", group=None)
    if labels == "safe~":  # rude, but about nobody's identity: harassment perhaps, hate never
        return Row(
            text=text,
            labels=_labels((), ("harassment",)),
            weight=weight * 0.6,
            set="own",
            group=None,
        )
    names = tuple(labels.split())
    unknown = ("harassment",) if "hate" in names else ()
    return Row(text=text, labels=_labels(names, unknown), weight=weight, set="own", group=None)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    labels = ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("= "):
            labels = line[2:]
        elif line:
            yield labels, line


@cache
def _slots() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (OWN / "slots.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            found[name] = []
        elif line:
            found[name].append(line)
    return found


def _filled(template: str, slots: Mapping[str, list[str]], random: Random) -> str:
    text = re.sub(r"\{(\w+)\}", lambda slot: random.choice(slots[slot[1]]), template)
    text = text[0].upper() + text[1:]
    chance = random.random()
    return text.lower() if chance < 0.1 else text.upper() if chance < 0.16 else text
