"""The commands about capacity: `antiphon simulate`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from antiphon.cli_help import ManualGroup
from antiphon.cli_options import config_option, progress, quietly

if TYPE_CHECKING:
    from antiphon.settings import Settings
    from antiphon.simulating.plot import Line
    from antiphon.simulating.report import Report
    from antiphon.simulating.simulation import Outcome, Setup

_FORMATS = click.Choice(["table", "markdown", "json"])


@click.group(cls=ManualGroup)
def simulate() -> None:
    """The pool in virtual time: how long people would wait, and how many replicas it takes.

    The same scheduler, predictions and routing as in `serve`, with the settings of --config, and an
    engine that is a model of one.
    """


def _common(command: Any) -> Any:
    """What both kinds of simulation take."""
    options = (
        click.option(
            "--engine", default="cpu-openvino", help="A name of `simulate engines`, or a JSON file."
        ),
        click.option("--slots", type=click.IntRange(min=1), help="Instead of the engine model's."),
        click.option("--step-tokens", type=click.IntRange(min=2), help="The same."),
        click.option(
            "--spare-cache-tokens",
            type=click.IntRange(min=0),
            help="The same: idle prefixes beside the KV cache.",
        ),
        click.option("--smaller", help="The engine model of a smaller one, for overload."),
        click.option(
            "--smaller-replicas",
            type=click.IntRange(min=1),
            default=1,
            help="How many of the smaller one.",
        ),
        click.option(
            "--free-on-smaller", is_flag=True, help="Who doesn't pay gets the smaller one at once."
        ),
        click.option(
            "--policy",
            type=click.Choice(["fair", "fcfs", "both"]),
            help="Instead of the setting; `both` compares them.",
        ),
        click.option(
            "--admission/--no-admission",
            default=True,
            help="Whether predicted times to first token decide.",
        ),
        click.option(
            "--seed", type=int, default=1, help="The same seed gives the same run, to the token."
        ),
        click.option(
            "--format", "layout", type=_FORMATS, default="table", help="How the report is printed."
        ),
        click.option(
            "--out",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write the report as JSON, too.",
        ),
        click.option(
            "--plot",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Draw times to first token as SVG.",
        ),
        config_option,
        click.pass_obj,
    )
    for option in reversed(options):
        command = option(command)
    return command


@simulate.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replicas", type=click.IntRange(min=1), default=1, help="How many serve it.")
@click.option("--speed", type=click.FloatRange(min=1e-6), default=1.0, help="Of the arrivals.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first requests.")
@click.option("--between", type=float, default=0.0, help="Objective between tokens, in seconds.")
@_common
def trace(
    outer: Path | None,
    file: Path,
    replicas: int,
    speed: float,
    limit: int | None,
    between: float,
    **options: Any,
) -> None:
    """Replay the trace in FILE: Azure LLM inference (CSV), BurstGPT (CSV), Mooncake (JSON lines),
    or JSON lines of our own: at, prompt_tokens, output_tokens and more."""
    import msgspec

    from antiphon.simulating.scenario import replayed
    from antiphon.simulating.trace import read_trace

    setup = _setup(quietly(options["config"] or outer), options)
    setup = msgspec.structs.replace(setup, replicas=replicas, between_s=between)
    found = read_trace(file, limit=limit)
    if found.broken or found.failed:
        click.echo(
            f"left out: {len(found.broken)} lines that can't be read, "
            f"{found.failed} requests without an answer",
            err=True,
        )
    runs = [
        replayed(each, found.arrivals, source=file.name, speed=speed)
        for each in _policies(setup, options["policy"])
    ]
    _show(runs, options)


@simulate.command()
@click.argument("name")
@click.option("--replicas", type=click.IntRange(min=1), help="In all; else the fewest are found.")
@click.option("--rate", type=click.FloatRange(min=0.001), help="Prompts a second, in all.")
@click.option("--cell", type=click.IntRange(min=1), default=16, help="Replicas that are simulated.")
@click.option(
    "--seconds", type=click.FloatRange(min=10), default=600.0, help="Virtual time to simulate."
)
@click.option(
    "--assume", multiple=True, metavar="KEY=VALUE", help="Another assumption: a field of the load."
)
@click.option("--surge", type=click.FloatRange(min=1), default=1.0, help="A viral moment, × rate.")
@click.option("--flood", type=click.FloatRange(0, 1), default=0.0, help="One tenant's part of it.")
@_common
def load(
    outer: Path | None,
    name: str,
    replicas: int | None,
    rate: float | None,
    cell: int,
    seconds: float,
    assume: tuple[str, ...],
    surge: float,
    flood: float,
    **options: Any,
) -> None:
    """Simulate the load model NAME at its peak: 100m-users or 10m-users. Without --replicas, look
    for the fewest that keep the objectives."""
    from antiphon.simulating.load_models import Surge, load_named
    from antiphon.simulating.scenario import Cell, needed, sampled

    changes = dict(each.partition("=")[::2] for each in assume)
    model = load_named(name, changes)
    setup = _setup(quietly(options["config"] or outer), options)
    sample = Cell(
        replicas=cell,
        seconds=seconds,
        seed=options["seed"],
        surge=Surge(factor=surge, flood=flood) if surge > 1 or flood else None,
    )
    rate = rate or model.peak_rate
    runs = []
    for each in _policies(setup, options["policy"]):
        count = replicas
        if count is None:
            found = needed(
                each,
                model,
                sample,
                rate=rate,
                watch=lambda tried: click.echo(f"{tried:,} replicas", err=True),
            )
            count = found.replicas
            accelerators = count * each.engine.accelerators
            click.echo(f"needed: {count:,} replicas ({accelerators:,} accelerators)", err=True)
        runs.append(sampled(each, model, sample, rate=rate, all_replicas=count))
    _show(runs, options)


@simulate.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("engine.json"),
    help="Where to write the engine model.",
)
@click.option("--name", default="calibrated", help="What the engine model is called.")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=2, help="More of them average out more noise."
)
@config_option
@click.pass_obj
def calibrate(outer: Path | None, out: Path, name: str, rounds: int, config: Path | None) -> None:
    """Start the engine of the settings, watch it work for a minute or two, and write what its steps
    cost as an engine model. Takes the whole machine; on a busy one it learns a slow engine."""
    import os
    import platform

    import trio

    from antiphon.cli_engines import prepared_model
    from antiphon.engine.models import progress_on
    from antiphon.errors import SettingsError
    from antiphon.hosts import engine_launcher
    from antiphon.simulating.calibration import calibrated
    from antiphon.simulating.engine_model import encode_engine
    from antiphon.simulating.measuring import watch

    settings = quietly(config or outer)
    if settings.engine.kind == "upstream":
        raise SettingsError("engine.kind", "an upstream has no engine of ours to watch")
    model = prepared_model(settings, progress_on(sys.stderr))

    async def watched() -> None:
        with progress("watching the engine") as told:
            seen = await watch(
                engine_launcher(settings, model),
                start_timeout_s=settings.engine.start_timeout_s,
                rounds=rounds,
                told=told,
            )
        engine, fitted = calibrated(
            seen.steps,
            seen.capabilities,
            name=name,
            model=model.name,
            machine=f"{platform.machine()}, {os.cpu_count()} cores",
            engine=settings.engine,
        )
        await trio.Path(out).write_bytes(encode_engine(engine))
        click.echo(f"{out}: {fitted.used} steps, each within {fitted.error:.1%} on the median")

    trio.run(watched)


@simulate.command("engines")
def list_engines() -> None:
    """List the engine models that come with the program, and where their figures are from."""
    from antiphon.simulating.engine_model import catalogue, load_engine

    for name in catalogue():
        model = load_engine(name)
        click.echo(f"{name}\t{model.model} on {model.machine}")
        click.echo(f"\t{model.slots} slots, {model.kv_tokens:,} tokens of KV; {model.source}")


def _setup(settings: "Settings", options: dict[str, Any]) -> "Setup":
    from antiphon.simulating.engine_model import load_engine
    from antiphon.simulating.simulation import Setup

    fields = ("slots", "step_tokens", "spare_cache_tokens")
    changes = {field: options[field] for field in fields if options[field] is not None}
    smaller = options["smaller"]
    return Setup(
        engine=load_engine(options["engine"], **changes),
        smaller=None if smaller is None else load_engine(smaller),
        smaller_replicas=options["smaller_replicas"],
        free_on_smaller=options["free_on_smaller"],
        scheduling=settings.scheduling,
        queue=settings.queue,
        generation=settings.generation,
        admission=options["admission"],
    )


def _policies(setup: "Setup", policy: str | None) -> "list[Setup]":
    import msgspec

    default = policy or setup.scheduling.policy
    names = ("fair", "fcfs") if policy == "both" else (default,)
    return [
        msgspec.structs.replace(
            setup, scheduling=msgspec.structs.replace(setup.scheduling, policy=name)
        )
        for name in names
    ]


def _show(runs: "list[tuple[Outcome, Report]]", options: dict[str, Any]) -> None:
    import msgspec

    from antiphon.simulating.report_text import markdown, table

    reports = [report for _, report in runs]
    encoded = msgspec.json.format(
        msgspec.json.encode(reports[0] if len(reports) == 1 else reports), indent=2
    )
    match options["layout"]:
        case "json":
            click.echo(encoded)
        case "markdown":
            click.echo("\n\n".join(markdown(report) for report in reports))
        case _:
            click.echo("\n\n".join(table(report) for report in reports))
    if options["out"] is not None:
        options["out"].write_bytes(encoded + b"\n")
    if options["plot"] is not None:
        options["plot"].write_text(_drawn(runs), encoding="utf-8")


def _drawn(runs: "list[tuple[Outcome, Report]]") -> str:
    from antiphon.simulating.plot import Chart, distribution, svg
    from antiphon.simulating.records import LANES, merged

    lines: list[Line] = []
    for number, (outcome, report) in enumerate(runs):
        for lane in LANES:
            values = merged(outcome.records.select((lane,))).first_s
            if len(values):
                name = lane.value if len(runs) == 1 else f"{lane.value}, {report.policy}"
                lines.append(
                    distribution(name, values, colour=LANES.index(lane), dashed=number > 0)
                )
    report = runs[0][1]
    return svg(
        Chart(
            title=f"Time to first token: {report.source}",
            x_label="seconds",
            y_label="share of requests that had one",
            lines=tuple(lines),
            marks=tuple(
                {
                    f"{each.objective_s:g} s": each.objective_s
                    for each in report.classes
                    if each.objective_s
                }.items()
            ),
            log_x=True,
        )
    )
