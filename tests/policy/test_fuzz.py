"""The fuzz itself: it passes the real window, and would see a leak."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def fuzz():
    path = Path(__file__).parents[2] / "chaos" / "disguises.py"
    spec = importlib.util.spec_from_file_location("disguise_fuzz", path)
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_no_disguised_phrase_leaks(fuzz):
    report = fuzz.run(2_000, seed=5)

    assert (report.streams, report.leaked, report.withheld) == (2_000, 0, 0)


def test_a_window_that_holds_too_little_is_caught(fuzz, capsys):
    report = fuzz.run(200, seed=5, broken=True)

    assert report.leaked > 50
    assert "leaked" in capsys.readouterr().out
