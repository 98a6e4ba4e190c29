"""The `antiphon` command. Mistakes in settings, rules and models end it with one line and status 2.

Each command imports what it needs when it runs: `antiphon --version` must not load a server.
"""

import functools
import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from antiphon import __version__
from antiphon.cli_abuse import abuse
from antiphon.cli_admin import db, keys, users
from antiphon.cli_chat import chat
from antiphon.cli_engines import engines, prepared_model
from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, ops_address, ops_option, quietly
from antiphon.cli_policy import policy
from antiphon.cli_prompts import prompts
from antiphon.cli_simulate import simulate
from antiphon.cli_usage import usage
from antiphon.errors import AntiphonError, ModelError, OpsUnreachable, RulesError, SettingsError
from antiphon.logs import configure_logging, writes_json
from antiphon.settings import Settings, load_settings, pool_settings, reload_settings

if TYPE_CHECKING:
    from antiphon.engine.models import PreparedModel, Progress
    from antiphon.engine.upstream import UpstreamModel


class _OneLineErrors(ManualGroup):
    """Shows what Antiphon raises on purpose as its sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OpsUnreachable as error:
            click.echo(
                f"antiphon: {error}; is a server running there? --ops, or `ops_bind` in its "
                "settings, names its operations listener",
                err=True,
            )
            ctx.exit(1)
        except AntiphonError as error:
            click.echo(f"antiphon: {error}", err=True)
            ctx.exit(2 if isinstance(error, SettingsError | ModelError | RulesError) else 1)


@click.group(
    cls=_OneLineErrors,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, prog_name="antiphon")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="ANTIPHON_CONFIG",
    show_envvar=True,
    help="A TOML file of settings, unless the command is given one itself.",
)
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """A chat server: the OpenAI API in front of an in-flight-batching engine.

    Settings are read from the TOML file of --config, which every command takes, or else of
    ANTIPHON_CONFIG, and from ANTIPHON_* variables, which win over it. Every command has its own
    --help, with examples. A mistake in settings, rules or models ends a command with one line and
    status 2, any other error with status 1.
    """
    ctx.obj = config


@main.command()
@config_option
@click.pass_obj
def serve(outer: Path | None, config: Path | None) -> None:
    """Fetch and prepare the model where needed, then serve until SIGTERM or Ctrl-C.

    Once it is ready, it prints where the API, the chat page and the operations page are. SIGTERM
    and Ctrl-C drain: new work is refused, what runs goes on for `shutdown.drain_s`; a second one
    ends it at once. SIGHUP reads the settings again. Status 0 after a drain, 1 after a failure, 70
    if something had to be left behind: a process manager should start it anew.
    """
    from antiphon.engine.models import SilentProgress, progress_on

    hangup = _Hangup()
    signal.signal(signal.SIGHUP, hangup)
    reread = functools.partial(reload_settings, config or outer, dict(os.environ))
    settings = load_settings(config or outer, os.environ)
    configure_logging(settings.log_level, settings.log_format, sys.stderr)
    # JSON lines say it all already, and stay JSON.
    as_json = writes_json(settings.log_format, sys.stderr)
    progress = SilentProgress() if as_json else progress_on(sys.stderr)
    previous = signal.signal(signal.SIGTERM, _leave)
    prepared = {
        pool: _prepared(pool_settings(settings, pool), progress) for pool in ("", *settings.pools)
    }
    signal.signal(signal.SIGTERM, previous)

    from antiphon import serving

    sys.exit(serving.serve(settings, prepared, reread, reload_first=hangup.has_come))


def _prepared(settings: Settings, progress: "Progress") -> "PreparedModel | UpstreamModel":
    """What is to be served: a model of our own, or what must be known of somebody else's."""
    if settings.engine.kind == "upstream":
        from antiphon.engine.upstream import prepare_upstream

        return prepare_upstream(settings, progress)
    return prepared_model(settings, progress)


main.add_command(chat)
main.add_command(engines)
main.add_command(simulate)
main.add_command(keys)
main.add_command(users)
main.add_command(usage)
main.add_command(db)
main.add_command(policy)
main.add_command(abuse)
main.add_command(prompts)


@main.group()
def models() -> None:
    """The models in the data directory."""


@models.command()
@click.argument("reference", required=False)
@config_option
@click.pass_obj
def pull(outer: Path | None, reference: str | None, config: Path | None) -> None:
    """Fetch and prepare a model: a known name, a GGUF file, an OpenVINO IR folder or a Hugging Face
    checkpoint folder. Without REFERENCE, the one that `serve` would serve."""
    from antiphon.engine.models import ModelStore, progress_on

    settings = quietly(config or outer)
    signal.signal(signal.SIGTERM, _leave)
    store = ModelStore(settings.data_dir)
    prepared = store.ensure(reference or settings.model, progress_on(sys.stderr))
    click.echo(f"{prepared.name} is ready in {prepared.folder}")


@models.command("list")
@config_option
@click.pass_obj
def list_models(outer: Path | None, config: Path | None) -> None:
    """List the prepared models, and the known names that can be pulled."""
    from antiphon.engine.models import CATALOGUE, ModelStore

    prepared = ModelStore(quietly(config or outer).data_dir).prepared()
    for model in prepared:
        made = datetime.fromtimestamp(model.created, UTC).date()
        click.echo(f"{model.name}\t{model.window} tokens\t{model.size >> 20} MiB\tprepared {made}")
        click.echo(f"\tfrom {model.source} in {model.folder}")
    for name in CATALOGUE.keys() - {model.source for model in prepared}:
        click.echo(f"{name}\tnot prepared: antiphon models pull {name}")


@main.command()
@config_option
@click.pass_context
def check(ctx: click.Context, config: Path | None) -> None:
    """Say what this machine has and what is missing; status 1 when serving can't work."""
    from antiphon.check import Verdict, examine

    findings = examine(quietly(config or ctx.obj))
    for finding in findings:
        click.echo(f"{finding.verdict.value:7} {finding.subject}: {finding.fact}")
    ctx.exit(1 if any(finding.verdict is Verdict.MISSING for finding in findings) else 0)


@main.command()
@config_option
@ops_option
@click.option("--every", type=click.FloatRange(min=0.1), default=1.0, help="Seconds between looks.")
@click.option("--once", is_flag=True, help="Print what there is now, and end.")
@click.pass_obj
def top(outer: Path | None, config: Path | None, ops: str | None, every: float, once: bool) -> None:
    """Show a running server: its tree, its slots, its event loop. Ctrl-C ends it; status 1 when
    nothing answers at first."""
    from antiphon.ops_client import fetch
    from antiphon.top import UNBOUNDED, draw, watch

    address = ops_address(quietly(config or outer), ops)
    if once or not sys.stdout.isatty():
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else UNBOUNDED
        click.echo("\n".join(draw(fetch(address), width, UNBOUNDED)))
        return
    signal.signal(signal.SIGTERM, _leave)
    watch(
        address,
        every,
        write=functools.partial(click.echo, nl=False),
        size=shutil.get_terminal_size,
    )


@main.command()
@config_option
@ops_option
@click.pass_obj
def reload(outer: Path | None, config: Path | None, ops: str | None) -> None:
    """Have a running server read its own settings again. It says of each changed key whether it
    counts now; with wrong settings it changes nothing, and the status is 1."""
    from antiphon.ops_client import ask_to_reload

    settings = quietly(config or outer)
    changes = ask_to_reload(ops_address(settings, ops), settings.ops_token)
    if not changes:
        click.echo("nothing has changed")
    for change in changes:
        needs = "in force" if change.needs is None else change.needs.replace("_", " ") + " needed"
        click.echo(f"{change.key}: {needs}")


class _Hangup:
    """Keeps SIGHUP from ending the process, and in mind, until the server can see to it."""

    def __init__(self) -> None:
        self._came = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self._came = True

    def has_come(self) -> bool:
        return self._came


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    """End through `finally`, so that a child that fetches or prepares ends too."""
    del frame
    sys.exit(128 + signum)
