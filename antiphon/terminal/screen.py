"""What a terminal shows: answers as Markdown while they are written, or as plain text where nobody
looks at it.

However long an answer is, what is drawn again is bounded: a block that is finished is drawn once,
and of the one that grows only what fits the screen, a few times a second.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.segment import Segment
from rich.text import Text

from antiphon.plain import plain, plain_lines
from antiphon.terminal.blocks import Blocks

_EVERY_S = 0.1
_LONG = 6000
"""A block with more characters is drawn as plain text until it is finished: parsing and colouring
it ten times a second would cost more than it shows."""
_THEME = "ansi_dark"


class Paper(Protocol):
    """Where one answer is written."""

    def wait(self, why: str) -> None:
        """Nothing comes, for that reason; what has come stays."""

    def write(self, text: str) -> None: ...


class Screen:
    """A terminal for people. `is_rich` is false where output is a file or a pipe: what is no answer
    goes to `aside` then, which is not what a program reads."""

    def __init__(self, console: Console, *, aside: Console, is_rich: bool) -> None:
        self._console = console
        self._aside = console if is_rich else aside
        self.is_rich = is_rich

    @contextmanager
    def answer(self) -> Iterator[Paper]:
        """An answer; whatever ends it, what it has said stays."""
        if not self.is_rich:
            sheet = _Sheet(self._console)
            try:
                yield sheet
            finally:
                sheet.end()
            return
        with Live(
            console=self._console, transient=True, auto_refresh=False, vertical_overflow="visible"
        ) as live:
            page = _Page(live)
            try:
                yield page
            finally:
                page.end()

    def said(self, text: str) -> None:
        """What somebody has said before, whole."""
        if self.is_rich:
            self._console.print(_markdown(plain_lines(text)))
        else:
            self._write(plain_lines(text) + "\n")

    def asked(self, text: str) -> None:
        """What the person has asked before."""
        for line in plain_lines(text).splitlines():
            self._console.print(Text(f"> {line}", style="bold"))

    def note(self, text: str) -> None:
        """Beside the conversation."""
        self._aside.print(Text(plain(text), style="dim"))

    def warn(self, text: str) -> None:
        self._aside.print(Text(plain(text), style="yellow"))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Of so many bytes; what is yielded is called with how many more are done."""
        if not self.is_rich:
            yield lambda count: None
            return
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(plain(what), total=total)
            yield lambda count: progress.advance(task, count)

    def rows(self, rows: Iterable[Sequence[str]]) -> None:
        """Columns; the first one stands out."""
        known = [[plain(cell) for cell in row] for row in rows]
        width = max((len(row[0]) for row in known), default=0)
        for first, *others in known:
            line = Text(first.ljust(width + 2), style="bold")
            self._console.print(line.append("  ".join(others), style="not bold"))

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


class _Sheet:
    """Plain text as it comes."""

    def __init__(self, console: Console) -> None:
        self._file = console.file
        self._is_open = False

    def wait(self, why: str) -> None:
        pass

    def write(self, text: str) -> None:
        self._is_open = True
        self._file.write(plain_lines(text))
        self._file.flush()

    def end(self) -> None:
        if self._is_open:
            self._file.write("\n")
            self._file.flush()


class _Page:
    """Markdown, drawn while it grows."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._blocks = Blocks()
        self._drawn_at = float("-inf")

    def wait(self, why: str) -> None:
        self._live.update(_Tail(self._blocks.rest, f"… {why}".rstrip()), refresh=True)

    def write(self, text: str) -> None:
        done = list(self._blocks.feed(plain_lines(text)))
        if done:
            self._live.update(Text())
            for block in done:
                self._live.console.print(_markdown(block), end="\n")
                self._live.console.print()
        now = time.monotonic()
        if done or now - self._drawn_at >= _EVERY_S:
            self._drawn_at = now
            self._live.update(_Tail(self._blocks.rest), refresh=True)

    def end(self) -> None:
        self._live.update(Text(), refresh=True)
        if rest := self._blocks.finish().rstrip():
            self._live.console.print(_markdown(rest))


class _Tail:
    """The last lines of what grows, and what it waits for: as many as fit, since what has left the
    screen can't be drawn again."""

    def __init__(self, text: str, waits: str = "") -> None:
        self._text = text
        self._waits = waits

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(1, console.height - (3 if self._waits else 2))
        text = self._text
        if len(text) > _LONG:
            drawn: Markdown | Text = Text("\n".join(text[-_LONG:].splitlines()[-room:]))
        else:
            drawn = _markdown(text)
        lines = console.render_lines(drawn, options.update(height=None), pad=False)
        for line in lines[-room:] if text else ():
            yield from line
            yield Segment.line()
        if self._waits:
            yield Text(self._waits, style="dim")


def _markdown(text: str) -> Markdown:
    """A link is shown with its address: what it says may not be where it leads."""
    return Markdown(text, hyperlinks=False, code_theme=_THEME)
