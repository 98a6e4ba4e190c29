"""How long work is shown: a bar on a terminal, one line a step elsewhere."""

import sys
from typing import Protocol, TextIO

import click

_BAR_UNITS = 1000


class Progress(Protocol):
    """What the store tells whoever waits for it."""

    def note(self, text: str) -> None:
        """One line that stays."""

    def advance(self, step: str, fraction: float) -> None:
        """`step` is done to `fraction` (0…1); another step's first call begins it."""


class SilentProgress:
    """Nobody is watching."""

    def note(self, text: str) -> None:
        del text

    def advance(self, step: str, fraction: float) -> None:
        del step, fraction


class LineProgress:
    """One line for each step, for logs and pipes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._step: str | None = None

    def note(self, text: str) -> None:
        click.echo(text, file=self._out)

    def advance(self, step: str, fraction: float) -> None:
        del fraction
        if step != self._step:
            self._step = step
            self.note(f"{step} …")


class BarProgress:
    """A bar for each step, drawn in place; a finished bar stays as its line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._step: str | None = None
        self._shown = 0
        self._bar = self._new_bar("")

    def _new_bar(self, step: str) -> "click._termui_impl.ProgressBar[int]":
        return click.progressbar(length=_BAR_UNITS, label=step, file=self._out, show_eta=False)

    def note(self, text: str) -> None:
        self._finish()
        click.echo(text, file=self._out)

    def advance(self, step: str, fraction: float) -> None:
        if step != self._step:
            self._finish()
            self._step, self._shown = step, 0
            self._bar = self._new_bar(step)
            self._bar.render_progress()
        reached = round(min(max(fraction, 0.0), 1.0) * _BAR_UNITS)
        if reached > self._shown:
            self._bar.update(reached - self._shown)
            self._shown = reached
        if reached == _BAR_UNITS:
            self._finish()

    def _finish(self) -> None:
        if self._step is not None:
            self._bar.render_finish()
            self._step = None


def progress_on(out: TextIO | None = None) -> Progress:
    """The progress that suits a stream: standard error unless told otherwise."""
    stream = sys.stderr if out is None else out
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)
