"""The command `antiphon usage`: the ledger of the settings' database, for billing."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, quietly

if TYPE_CHECKING:
    from antiphon.billing import By, Form


@click.group(cls=ManualGroup)
def usage() -> None:
    """What users have used."""


@usage.command("export")
@click.option("--since", metavar="TIME", help="A day or a moment, in UTC; by default the first.")
@click.option("--until", metavar="TIME", help="Without this moment; by default two minutes ago.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    help="For a spreadsheet, or for a program.",
)
@click.option(
    "--by", type=click.Choice(["turn", "day"]), default="turn", help="Lines of turns, or sums."
)
@config_option
@click.pass_obj
def export_usage(
    outer: Path | None,
    config: Path | None,
    since: str | None,
    until: str | None,
    form: "Form",
    by: "By",
) -> None:
    """Print what was settled from --since up to --until, for billing. Periods that follow one
    another have each token exactly once."""
    import sys

    from antiphon import admin, billing

    asked = billing.period(since, until)
    count = admin.with_store(
        quietly(config or outer),
        lambda store: billing.export_usage(store, asked, sys.stdout, form=form, by=by),
    )
    click.echo(f"{count} lines", err=True)
