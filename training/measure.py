"""`python -m training.measure --data DIR`: the classifier's figures by cross-validation.

Nothing is written but the table. The shipped weights have seen all these rows, so their figures
on them would say nothing; on other rows `antiphon policy eval` measures them.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: as in training

from pathlib import Path

import click

from training.policy import say, validated
from training.report import report


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), required=True)
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    default=Path("bench-results/policy.md"),
    show_default=True,
)
def main(data: Path, table: Path) -> None:
    """Measures the policy's classifier on the public sets in DATA, cross-validated."""
    learned = validated(data)
    text = report(learned.public, learned.held, learned.held_documents)
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(text, "utf-8")
    click.echo(text)
    say(f"written to {table}")


if __name__ == "__main__":
    main()
