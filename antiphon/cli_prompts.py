"""The commands `antiphon prompts`: system prompts in numbered versions, and which are in force.
They read and write the database of the settings, also while servers run on it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, quietly, shown_time

if TYPE_CHECKING:
    from antiphon.context_records import PromptActivation, PromptVersion

_LONGEST_BYTES = 1 << 20
_FIRST_LINE = 60
_SOON = "running servers know within seconds"

version_number = click.IntRange(min=1, max=999_999_999)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class _Canary(click.ParamType[tuple[int, float]]):
    """VERSION=SHARE."""

    name = "VERSION=SHARE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, float]:
        version, _, share = str(value).partition("=")
        try:
            found = int(version), float(share)
        except ValueError:
            found = 0, 0.0
        if found[0] < 1 or not 0 < found[1] < 1:
            self.fail(
                f"{value!r} is no canary; write 3=0.1 to give version 3 a tenth of all "
                "conversations",
                param,
                ctx,
            )
        return found


@click.group(cls=ManualGroup)
def prompts() -> None:
    """System prompts: named, in numbered versions that never change. Which one is in force is said
    by `activate`; where it is used, by the settings and by requests."""


@prompts.command()
@click.argument("name")
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--note", default="", help="What is new in it, as a reminder.")
@json_option
@config_option
@click.pass_obj
def add(
    outer: Path | None,
    name: str,
    file: str | None,
    note: str,
    as_json: bool,
    config: Path | None,
) -> None:
    """Keep the text of FILE, or of standard input, as the next version of a prompt. It is in force
    only once it is activated. {{name}} stands for a variable, whose value requests give."""
    from antiphon import admin

    text = _text(file)
    added = admin.with_store(
        quietly(config or outer), lambda store: admin.add_prompt(store, name, text, note)
    )
    if as_json:
        _print_json(_version_json(added))
        return
    click.echo(
        f"{name} has a version {added.version}: antiphon prompts activate {name} {added.version}"
    )


@prompts.command("list")
@click.argument("name", required=False)
@json_option
@config_option
@click.pass_obj
def list_prompts(outer: Path | None, name: str | None, as_json: bool, config: Path | None) -> None:
    """List every prompt with what is in force of it; or, of NAME, every version and activation."""
    from antiphon import admin
    from antiphon.storage import Store

    async def read(
        store: Store,
    ) -> tuple[tuple["PromptVersion", ...], tuple["PromptActivation", ...]]:
        return await store.prompt_versions(name), await store.prompt_activations(name)

    versions, activations = admin.with_store(quietly(config or outer), read)
    if name is not None and not versions:
        raise click.ClickException(f"there is no prompt {name!r}")
    if as_json:
        _print_json(
            {
                "versions": [_version_json(each) for each in versions],
                "activations": [_activation_json(each) for each in activations],
            }
        )
        return
    latest = {each.name: each for each in reversed(activations)}
    if name is None:
        for each in sorted({version.name for version in versions}):
            last = max(version.version for version in versions if version.name == each)
            state = _arms(latest[each]) if each in latest else "none is in force"
            click.echo("\t".join([each, f"versions 1…{last}", state]))
        if not versions:
            click.echo("There are no prompts yet: antiphon prompts add", err=True)
        return
    now = latest[name].arms if name in latest else {}
    for version in versions:
        share = f"in force: {now[version.version]:.4g}" if version.version in now else ""
        first = version.text.strip().split("\n", 1)[0][:_FIRST_LINE]
        fields = [str(version.version), shown_time(version.created_ms), share, version.note, first]
        click.echo("\t".join(fields))
    for activation in activations:
        fields = [f"activation {activation.number}", shown_time(activation.created_ms)]
        click.echo("\t".join([*fields, _arms(activation)]))


@prompts.command()
@click.argument("name")
@click.argument("version", required=False, type=version_number)
@json_option
@config_option
@click.pass_obj
def show(
    outer: Path | None, name: str, version: int | None, as_json: bool, config: Path | None
) -> None:
    """Print the text of a VERSION of the prompt NAME, or of the newest one, as it was added."""
    from antiphon import admin

    found = admin.with_store(
        quietly(config or outer), lambda store: admin.find_prompt(store, name, version)
    )
    if as_json:
        _print_json(_version_json(found))
        return
    click.echo(f"{name} version {found.version} of {shown_time(found.created_ms)}", err=True)
    click.echo(found.text, nl=False)


@prompts.command()
@click.argument("name")
@click.argument("version", type=version_number)
@click.option(
    "--canary",
    "canaries",
    multiple=True,
    type=_Canary(),
    help="Give a part of all conversations, always the same ones, another version.",
)
@json_option
@config_option
@click.pass_obj
def activate(
    outer: Path | None,
    name: str,
    version: int,
    canaries: tuple[tuple[int, float], ...],
    as_json: bool,
    config: Path | None,
) -> None:
    """Put a VERSION of the prompt NAME in force, instead of whatever is."""
    from antiphon import admin

    shares = dict(canaries)
    if len(shares) < len(canaries):
        raise click.UsageError("Give each version one --canary.")
    settings = quietly(config or outer)
    made = admin.with_store(
        settings, lambda store: admin.activate_prompt(settings, store, name, version, shares)
    )
    _say(made, as_json)


@prompts.command()
@click.argument("name")
@json_option
@config_option
@click.pass_obj
def rollback(outer: Path | None, name: str, as_json: bool, config: Path | None) -> None:
    """Put in force again what was in force of NAME before. It is an activation, too: a second
    rollback takes the first one back."""
    from antiphon import admin

    made = admin.with_store(
        quietly(config or outer), lambda store: admin.roll_back_prompt(store, name)
    )
    _say(made, as_json)


def _say(made: "PromptActivation", as_json: bool) -> None:
    if as_json:
        _print_json(_activation_json(made))
    else:
        click.echo(f"{made.name}: {_arms(made)}; {_SOON}")


def _arms(activation: "PromptActivation") -> str:
    """Those with the most conversations first."""
    arms = sorted(activation.arms.items(), key=lambda arm: (-arm[1], arm[0]))
    if len(arms) == 1:
        return f"version {arms[0][0]}"
    return ", ".join(f"version {version} for {share:.4g}" for version, share in arms)


def _version_json(version: "PromptVersion") -> dict[str, Any]:
    from antiphon.prompts import variables_of

    return {
        "name": version.name,
        "version": version.version,
        "note": version.note,
        "created_ms": version.created_ms,
        "variables": list(variables_of(version.text)),
        "text": version.text,
    }


def _activation_json(activation: "PromptActivation") -> dict[str, Any]:
    return {
        "name": activation.name,
        "activation": activation.number,
        "arms": {str(version): share for version, share in activation.arms.items()},
        "created_ms": activation.created_ms,
    }


def _print_json(shown: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(shown, ensure_ascii=False, indent=2))


def _text(file: str | None) -> str:
    """Without the line end that editors put at the end."""
    if file is None and sys.stdin.isatty():
        raise click.UsageError("Give a FILE, or - and the text on standard input.")
    try:
        if file is None or file == "-":
            data = sys.stdin.buffer.read(_LONGEST_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(_LONGEST_BYTES + 1)
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from error
    if len(data) > _LONGEST_BYTES:
        raise click.ClickException(f"the text is longer than {_LONGEST_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise click.ClickException("the text is not UTF-8") from error
