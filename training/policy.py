"""`python -m training.policy --data DIR`: makes the weights that the package ships.

`--check` makes them again and compares: the same rows on the same kind of processor give the same
bytes. The figures of a cross-validation come out on the way, as `training.report` writes them.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: sums in one order only

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from antiphon.classifier import weights
from antiphon.classifier.embedder import Embedder
from antiphon.classifier.loading import arrays_of
from training.fitting import Features, features
from training.injection_validation import (
    HeldDocuments,
    fit_all_injections,
    injection_held_out,
)
from training.injections import Document, own_documents, public_documents
from training.remembering import Remembering
from training.report import report
from training.rows import Row, answer_rows, disguised_rows, own_rows, public_rows
from training.validation import Held, calibrations, fit_all, folds, held_out


@dataclass(frozen=True, slots=True)
class Learned:
    """All there is to learn from, its features, and what the cross-validation said of it."""

    rows: list[Row]
    public: list[Row]
    found: Features
    held: Held
    documents: list[Document]
    own: list[Document]
    held_documents: HeldDocuments
    embedder: Remembering


def validated(folder: Path) -> Learned:
    """The cross-validation. Raises OSError, KeyError for a folder that lacks a set."""
    public = public_rows(folder)
    rows = [*public, *disguised_rows(public), *own_rows()]
    seen = len(rows)
    rows += answer_rows(folder)
    embedder = Remembering(Embedder())
    say(f"looking at {len(public)} public rows, {len(rows)} in all")
    found = features([row.text for row in rows], embedder, seen=seen)
    say("cross-validating")
    held = held_out(rows, found, folds(rows), embedder, measured=len(public))
    say("cross-validating injections")
    documents, own = public_documents(folder), own_documents()
    held_documents = injection_held_out(documents, own, embedder)
    return Learned(rows, public, found, held, documents, own, held_documents, embedder)


def trained(learned: Learned) -> bytes:
    """The weights' file: fitted on everything, calibrated by the cross-validation."""
    full, light = calibrations(learned.public, learned.held)
    parts = fit_all(learned.rows, learned.found, full, light)
    injection = fit_all_injections(
        learned.documents, learned.own, learned.embedder, learned.held_documents
    )
    return weights.pack(arrays_of(parts, injection))


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--check", is_flag=True, help="Compare with the shipped weights, write nothing.")
@click.option("--table", type=click.Path(path_type=Path), help="Write the figures here, too.")
def main(data: Path, check: bool, table: Path | None) -> None:
    """Trains the policy's classifier on the public sets in DATA and on our own rows."""
    learned = validated(data)
    if table is not None:
        table.write_text(report(learned.public, learned.held, learned.held_documents), "utf-8")
    made = trained(learned)
    digest = weights.digest(made)
    if check:
        same = weights.path().read_bytes() == made
        say(f"{digest}: {'the same' if same else 'not the same'} as the shipped weights")
        sys.exit(0 if same else 1)
    weights.path().write_bytes(made)
    weights.path().with_suffix(".sha256").write_text(f"{digest}  weights.bin\n", "utf-8")
    say(f"{digest}: {len(made):,} bytes")


def say(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
