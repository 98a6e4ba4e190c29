"""How long work is shown."""

import io
import sys

import pytest

from antiphon.cli_options import progress
from antiphon.progress import telling, untold


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_item_is_told_after_it():
    told: list[float] = []

    seen = [(item, list(told)) for item in telling("abcd", 4, told.append)]

    assert told == [0.25, 0.5, 0.75, 1.0]
    assert seen[1] == ("b", [0.25])


def test_a_bar_is_drawn_where_somebody_watches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", screen := Tty())

    with progress("exporting") as told:
        told(0.5)
        told(0.25)  # never back
        told(1.0)

    assert "exporting" in screen.getvalue()
    assert "50%" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_a_program_reads_no_bar(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())

    with progress("exporting") as told:
        told(0.5)

    assert told is untold
    assert log.getvalue() == ""
