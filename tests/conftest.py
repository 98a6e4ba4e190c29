"""Fixtures that more than one room's tests use."""

from pathlib import Path

import pytest

from antiphon.testing.models import prepared_default_model


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """The prepared default model's folder, made on first use and kept in the server's cache."""
    return prepared_default_model().folder
