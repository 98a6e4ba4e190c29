"""What the commands have in common: where settings and a running server are found, how little is
logged, and how times and progress are shown."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from antiphon.logs import configure_logging
from antiphon.progress import Told, untold
from antiphon.settings import Settings, load_settings, parse_bind


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config`, which every command takes."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="A TOML file of settings; ANTIPHON_* variables win over it.",
    )(command)


def ops_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--ops`, of the commands that ask a running server."""
    return click.option(
        "--ops", metavar="HOST:PORT", help="The operations listener; else that of settings."
    )(command)


def ops_address(settings: Settings, ops: str | None) -> tuple[str, int]:
    """Where its operations listener is. Raises SettingsError."""
    return parse_bind("--ops", ops) if ops else parse_bind("ops_bind", settings.ops_bind)


def quietly(config: Path | None) -> Settings:
    """Settings for a command whose output is for people: only warnings are logged."""
    settings = load_settings(config, os.environ)
    configure_logging("warning", settings.log_format, sys.stderr)
    return settings


def shown_time(unix_ms: int) -> str:
    """To the second, in UTC."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="seconds")


@contextmanager
def progress(step: str) -> Iterator[Told]:
    """A bar for one step, where somebody watches; what a program reads has none."""
    if not sys.stderr.isatty():
        yield untold
        return
    with click.progressbar(length=_BAR, label=step, file=sys.stderr) as bar:
        yield lambda share: bar.update(max(0, round(min(share, 1.0) * _BAR) - bar.pos))


_BAR = 1000
