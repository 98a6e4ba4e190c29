"""The commands about engines: `antiphon engines verify`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from antiphon.cli_options import config_option, quietly
from antiphon.errors import SettingsError
from antiphon.settings import Settings

if TYPE_CHECKING:
    from antiphon.engine.models import PreparedModel, Progress


@click.group()
def engines() -> None:
    """The engine of the settings, without a server around it."""


@engines.command()
@config_option
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as JSON."
)
@click.pass_obj
def verify(outer: Path | None, config: Path | None, out: Path | None) -> None:
    """Start the engine and see whether it keeps its contract and how fast it is; status 1 when it
    doesn't keep it. Takes a few minutes, and the whole machine."""
    import msgspec
    import trio

    from antiphon.engine.models import progress_on
    from antiphon.hosts import engine_launcher, model_tokenizer
    from antiphon.verifying.report import lines_of
    from antiphon.verifying.run import verify as run

    settings = quietly(config or outer)
    if settings.engine.kind == "upstream":
        raise SettingsError("engine.kind", "an upstream has no engine of ours to verify")
    model = prepared_model(settings, progress_on(sys.stderr))

    async def verified() -> bool:
        report = await run(
            engine_launcher(settings, model),
            model_tokenizer(settings, model),
            model=model.name,
            start_timeout_s=settings.engine.start_timeout_s,
        )
        click.echo("\n".join(lines_of(report)))
        if out is not None:
            encoded = msgspec.json.format(msgspec.json.encode(report), indent=2)
            await trio.Path(out).write_bytes(encoded + b"\n")
        return report.passed

    sys.exit(0 if trio.run(verified) else 1)


def prepared_model(settings: Settings, progress: "Progress") -> "PreparedModel":
    """What an engine of ours is to serve. Raises SettingsError, ModelError."""
    from antiphon.engine.models import ModelStore, use_checkpoint
    from antiphon.engine_trt.installed import require_installed

    if settings.engine.kind == "tensorrt-llm":
        require_installed()
        return use_checkpoint(settings.model)
    return ModelStore(settings.data_dir).ensure(settings.model, progress)
