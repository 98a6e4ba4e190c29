"""Fixtures that more than one room's tests use."""

from pathlib import Path
from typing import Any

import pytest
import structlog

from antiphon.testing.models import prepared_default_model


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of what takes long; the contract suite asks for it."""
    parser.addoption("--storm", type=int, help="admits of a storm of aborts")
    parser.addoption("--conversations", type=int, help="at once, each with a secret word")


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """The prepared default model's folder, made on first use and kept in the server's cache."""
    return prepared_default_model().folder


@pytest.fixture(autouse=True)
def _uncached_loggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that configures logging, as every command does, must not settle for the rest of the
    session what a module's logger writes to: it would be deaf to `capture_logs`."""
    configure = structlog.configure

    def uncached(**options: Any) -> None:
        configure(**{**options, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", uncached)
