"""The commands about engines: `antiphon engines verify`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, progress, quietly
from antiphon.settings import Settings

if TYPE_CHECKING:
    from antiphon.engine.models import PreparedModel, Progress


@click.group(cls=ManualGroup)
def engines() -> None:
    """The engine of the settings, without a server around it."""


@engines.command()
@config_option
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as JSON."
)
@click.option("--storm", type=click.IntRange(1), default=200, help="Admits of a storm of aborts.")
@click.option(
    "--conversations", type=click.IntRange(2), default=16, help="Each with a secret word."
)
@click.pass_obj
def verify(
    outer: Path | None, config: Path | None, out: Path | None, storm: int, conversations: int
) -> None:
    """Start the engine and see whether it keeps its contract and how fast it is; status 1 when it
    doesn't keep it. Takes a few minutes, and the whole machine."""
    import msgspec
    import trio

    from antiphon.engine.models import progress_on
    from antiphon.engine.upstream import prepare_upstream
    from antiphon.verifying.report import lines_of
    from antiphon.verifying.run import verify as run
    from antiphon.verifying.subjects import subject_of
    from antiphon.verifying.talk import Sizes

    settings = quietly(config or outer)
    prepare = prepare_upstream if settings.engine.kind == "upstream" else prepared_model
    model = prepare(settings, progress_on(sys.stderr))
    sizes = Sizes(storm=storm, conversations=conversations)

    async def verified() -> bool:
        async with subject_of(settings, model) as subject:
            with progress("checking the engine") as told:
                report = await run(
                    subject,
                    start_timeout_s=settings.engine.start_timeout_s,
                    sizes=sizes,
                    told=told,
                )
        click.echo("\n".join(lines_of(report)))
        if out is not None:
            encoded = msgspec.json.format(msgspec.json.encode(report), indent=2)
            await trio.Path(out).write_bytes(encoded + b"\n")
        return report.passed

    sys.exit(0 if trio.run(verified) else 1)


def prepared_model(settings: Settings, watcher: "Progress") -> "PreparedModel":
    """What an engine of ours is to serve. Raises SettingsError, ModelError."""
    from antiphon.engine.models import ModelStore, use_checkpoint
    from antiphon.engine_trt.installed import require_installed

    if settings.engine.kind == "tensorrt-llm":
        require_installed()
        return use_checkpoint(settings.model)
    return ModelStore(settings.data_dir).ensure(settings.model, watcher)
