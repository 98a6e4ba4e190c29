"""The commands `antiphon policy`: rules checked, tried on a text and measured before they go live.

Everything runs in this process: no server is asked, and no database is opened.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, progress, quietly
from antiphon.verdicts import Stage

if TYPE_CHECKING:
    from antiphon.policy.rulebook import Rulebook
    from antiphon.policy.scan import Scorer

STAGES = click.Choice([stage.value for stage in Stage])
LONGEST_TEXT = 1 << 20

rules_option = click.option(
    "--rules",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file of rules; else those of the settings, which are the server's own by default.",
)
plan_option = click.option("--plan", metavar="NAME", help="Judge as for users of this plan.")
tenant_option = click.option("--tenant", metavar="NAME", help="Judge as for this tenant.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=ManualGroup)
def policy() -> None:
    """The rules that texts are judged by."""


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say whether a file of rules can be used, and what its rules do. With a broken one, name the
    line and the key; status 2."""
    from antiphon.policy.rulebook import read_rules
    from antiphon.trying.report import table

    rulebook = read_rules(file)
    click.echo(f"{file}: {len(rulebook.rules)} rules, version {rulebook.version}")
    click.echo("\n".join(table(rulebook)))


@policy.command()
@rules_option
@config_option
@click.pass_obj
def show(outer: Path | None, config: Path | None, rules: Path | None) -> None:
    """Print the rules in force, as TOML that can be changed and used."""
    from antiphon.policy.rulebook import default_rules, default_text, read_rules

    file = rules or quietly(config or outer).policy.rules
    if file is None:
        version, source, text = default_rules().version, "they come with Antiphon", default_text()
    else:
        version, source = read_rules(file).version, str(file)
        text = file.read_text(encoding="utf-8-sig")
    click.echo(f"version {version}: {source}", err=True)
    click.echo(text, nl=not text.endswith("\n"))


@policy.command("test")
@click.argument("text", required=False)
@rules_option
@click.option("--stage", type=STAGES, default=Stage.INPUT.value, help="Where the text stands.")
@plan_option
@tenant_option
@click.option(
    "--system-prompt", metavar="TEXT", default="", help="What output must not repeat, for `leak`."
)
@click.option(
    "--language",
    "languages",
    metavar="TAG",
    multiple=True,
    help="Of the client, such as de or pt-BR; can be given more than once.",
)
@json_option
@config_option
@click.pass_obj
def try_text(
    outer: Path | None,
    text: str | None,
    rules: Path | None,
    stage: str,
    plan: str | None,
    tenant: str | None,
    system_prompt: str,
    languages: tuple[str, ...],
    as_json: bool,
    config: Path | None,
) -> None:
    """Judge TEXT, or what comes on standard input. Output is streamed a character at a time, and
    what would have left when is said."""
    from antiphon.trying.report import trial_json, trial_lines
    from antiphon.trying.trial import try_out
    from antiphon.verdicts import PolicyScope

    rulebook = _rulebook(outer, config, rules)
    tried = try_out(
        rulebook,
        PolicyScope(plan=plan, tenant=tenant),
        Stage(stage),
        _text(text),
        scorer=_scorer,
        system_prompt=system_prompt,
        languages=languages,
    )
    _print(trial_json(tried) if as_json else trial_lines(tried))


@policy.command("eval")
@click.argument("dataset", type=click.Path(path_type=Path))
@rules_option
@click.option("--stage", type=STAGES, default=Stage.INPUT.value, help="Where the texts stand.")
@plan_option
@tenant_option
@click.option("--text", "text_column", metavar="COLUMN", help="The column of the texts.")
@click.option("--label", "label_column", metavar="COLUMN", help="The column of the labels.")
@json_option
@config_option
@click.pass_obj
def evaluate(
    outer: Path | None,
    dataset: Path,
    rules: Path | None,
    stage: str,
    plan: str | None,
    tenant: str | None,
    text_column: str | None,
    label_column: str | None,
    as_json: bool,
    config: Path | None,
) -> None:
    """Measure the rules on a DATASET: a CSV or JSONL file that has a column of texts and one of
    labels, safe or what they are to be blocked for. A JSON file of texts with marked spans, as
    presidio-research has them, measures what `personal` finds, whatever the rules are."""
    from antiphon.classifier.evaluation import DatasetError
    from antiphon.trying.evaluation import evaluate_rules, evaluation_json, evaluation_lines
    from antiphon.trying.spans import evaluate_spans, span_json, span_lines
    from antiphon.verdicts import PolicyScope

    try:
        if dataset.suffix.lower() == ".json":
            spans = evaluate_spans(dataset)
            _print(span_json(spans) if as_json else span_lines(spans))
            return
        rulebook = _rulebook(outer, config, rules)
        with progress("judging") as told:
            measured = evaluate_rules(
                rulebook.for_scope(PolicyScope(plan=plan, tenant=tenant)),
                Stage(stage),
                dataset,
                scorer=_scorer,
                text=text_column,
                label=label_column,
                told=told,
            )
    except (DatasetError, OSError) as error:
        raise click.ClickException(_unreadable(dataset, error)) from error
    _print(evaluation_json(measured) if as_json else evaluation_lines(measured))


def _print(shown: dict[str, Any] | list[str]) -> None:
    """Lines for people, or an object for programs."""
    import json

    if isinstance(shown, dict):
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        click.echo("\n".join(shown))


def _rulebook(outer: Path | None, config: Path | None, rules: Path | None) -> "Rulebook":
    from antiphon.policy.rulebook import default_rules, read_rules

    file = rules or quietly(config or outer).policy.rules
    return default_rules() if file is None else read_rules(file)


def _scorer() -> "Scorer":
    """The embedded classifier, which takes a moment to load: only where a rule needs it."""
    from antiphon.classifier import load

    try:
        return load()
    except OSError as error:
        raise click.ClickException(f"the classifier can't be loaded: {error}") from error


def _text(text: str | None) -> str:
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise click.UsageError("give a TEXT, or - and the text on standard input")
    data = sys.stdin.buffer.read(LONGEST_TEXT + 1)
    if len(data) > LONGEST_TEXT:
        raise click.ClickException(f"the text is longer than {LONGEST_TEXT >> 20} MiB")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.ClickException("the text on standard input is not UTF-8") from error


def _unreadable(dataset: Path, error: Exception) -> str:
    return f"{dataset}: {error.strerror}" if isinstance(error, OSError) else str(error)
