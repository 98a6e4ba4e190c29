"""Fixtures that more than one room's tests use."""

import gc
import signal
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from xdist.scheduler import LoadFileScheduling

from antiphon.testing.models import prepared_default_model

# How long an example takes says how busy the machine is: a second worker is enough. The examples
# are the same ones at every run, or a commit may fail for what another one did;
# `--hypothesis-profile=exploring` looks for others.
hypothesis.settings.register_profile("exploring", deadline=None)
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")

# A shell without job control, such as a script's, starts what is in its background deaf to
# Ctrl-C, and so would be every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of what takes long; the contract suite asks for it."""
    parser.addoption("--storm", type=int, help="admits of a storm of aborts")
    parser.addoption("--conversations", type=int, help="at once, each with a secret word")


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """The prepared default model's folder, made on first use and kept in the server's cache."""
    return prepared_default_model().folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes lasts as long as the tests do: no garbage collection, and several
    tests ask for one, need look through it, then or while it grows."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _uncached_loggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that configures logging, as every command does, must not settle for the rest of the
    session what a module's logger writes to: it would be deaf to `capture_logs`."""
    configure = structlog.configure

    def uncached(**options: Any) -> None:
        configure(**{**options, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", uncached)


class Lanes(LoadFileScheduling):
    """Whole files to whichever of pytest-xdist's workers is free, but all that run the real model
    to one and the same: they share servers, and two models at once would be slow ones."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "engine" if runs_the_model(self.config.rootpath / file) else file


@cache
def runs_the_model(file: Path) -> bool:
    return "pytest.mark.engine" in file.read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)
