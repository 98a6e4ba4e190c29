"""What the commands have in common: where settings come from, and how little is logged."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from antiphon.logs import configure_logging
from antiphon.settings import Settings, load_settings


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config`, which every command takes."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="A TOML file of settings; ANTIPHON_* variables win over it.",
    )(command)


def quietly(config: Path | None) -> Settings:
    """Settings for a command whose output is for people: only warnings are logged."""
    settings = load_settings(config, os.environ)
    configure_logging("warning", settings.log_format, sys.stderr)
    return settings
