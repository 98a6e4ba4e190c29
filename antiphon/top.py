"""What `antiphon top` shows: the pages of the operations listener, drawn for a terminal.

Nothing that comes from there reaches the terminal with a control character in it.
"""

import os
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click

from antiphon.errors import OpsUnreachable
from antiphon.http.ops.outline import Row, format_age, rows
from antiphon.ops_client import Address, Child, Circuit, Sample, Slot, fetch
from antiphon.plain import plain

UNBOUNDED = 1_000_000
"""A width or height for output that is no screen."""
_WIDE = 120
"""From here on headings are whole words."""
_REQUEST_ID_COLUMNS = 40
_MARKS = {"free": "·", "prefill": "P", "decode": "D", "releasing": "R"}
_STATE_COLOURS = {"prefill": "cyan", "decode": "green", "releasing": "yellow"}
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_ERASE_LINE = "\x1b[2K"


@dataclass(frozen=True, slots=True)
class Span:
    """Text in one colour, before it is cut and painted."""

    text: str
    colour: str | None = None


Line = Sequence[Span]


def watch(
    address: Address,
    every_s: float,
    *,
    write: Callable[[str], object],
    size: Callable[[], os.terminal_size],
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Draw again and again until Ctrl-C, also while the server is gone. Raises OpsUnreachable when
    there is none to begin with."""
    sample = fetch(address)
    answered_at = time.monotonic()
    lost: str | None = None
    try:
        write(_ENTER)
        while True:
            width, height = size()
            write(_frame(draw(sample, width, height, colour=True, lost=lost), height))
            pause(every_s)
            try:
                sample = fetch(address)
            except OpsUnreachable as error:
                ago = format_age(time.monotonic() - answered_at)
                lost = f"{error}; this is from {ago} ago"
            else:
                answered_at, lost = time.monotonic(), None
    except KeyboardInterrupt:
        pass  # it is how people leave
    finally:
        write(_LEAVE)


def _frame(lines: list[str], height: int) -> str:
    """Every line of the screen. Each is erased before it is written: after a full line the cursor
    still stands on its last character, which erasing to the end would take away."""
    padded = [*lines, *[""] * (height - len(lines))]
    return _HOME + "\n".join(_ERASE_LINE + line for line in padded)


def draw(
    sample: Sample, width: int, height: int, *, colour: bool = False, lost: str | None = None
) -> list[str]:
    """The screen: at most `height` lines of at most `width` columns. `lost` says why the sample is
    an old one."""
    above = [*_header(sample, lost), *_strip(sample.slots, width)]
    busy = [_busy(slot) for slot in sample.slots if slot.state != "free"]
    tree = _table(list(rows(sample.tree)), width)
    room = max(0, height - len(above) - 1)
    tree_room = max(room // 2, room - len(busy))
    busy_room = max(0, room - min(len(tree), tree_room))
    lines = [*above, *_shortened(busy, busy_room), (), *_shortened(tree, tree_room)]
    return [_rendered(line, width, colour) for line in _shortened(lines, height)]


def _header(sample: Sample, lost: str | None) -> Iterator[Line]:
    title = Span(f"antiphon {sample.address}  ")
    readiness = sample.readiness
    if lost is not None:
        yield (Span(lost, "red"),)
    elif readiness.status == "ready":
        yield (title, Span("ready", "yellow" if readiness.reasons else "green"))
        yield from ((Span(f"  {reason}", "yellow"),) for reason in readiness.reasons)
    else:
        yield (title, Span("NOT READY", "red"))
        yield from ((Span(f"  {reason}", "red"),) for reason in readiness.reasons)
    loop = sample.loop
    yield (
        Span(
            f"{loop.tasks} tasks, {loop.runnable} runnable; {loop.threads} threads, "
            f"{loop.worker_threads} at work; loop lag {loop.loop_lag_s * 1000:.1f} ms lately, "
            f"{loop.loop_lag_max_s * 1000:.1f} ms at most"
        ),
    )
    yield from (_circuit(breaker) for breaker in sample.breakers)


def _circuit(breaker: Circuit) -> Line:
    closed = breaker.circuit == "closed"
    told = [f"{breaker.failures_in_row} failures in a row"] if breaker.failures_in_row else []
    if breaker.retry_after_s is not None:
        told.append(f"next try in {format_age(breaker.retry_after_s)}")
    return (
        Span(f"circuit {breaker.name}: "),
        Span(breaker.circuit.replace("_", " "), "green" if closed else "red"),
        Span("".join(f", {word}" for word in told)),
    )


def _strip(slots: Sequence[Slot], width: int) -> Iterator[Line]:
    yield ()
    if not slots:
        yield (Span("no engine has been ready yet", "yellow"),)
        return
    models = dict.fromkeys(slot.model for slot in slots)
    for model in models:
        of_model = [slot for slot in slots if slot.model == model]
        yield from _strip_of(f"{model}: " if len(models) > 1 else "", of_model, width)


def _strip_of(name: str, slots: Sequence[Slot], width: int) -> Iterator[Line]:
    counts = Counter(slot.state for slot in slots)
    told = ", ".join(f"{counts[state]} {state}" for state in _MARKS if counts[state])
    yield (Span(f"{name}{len(slots)} slots: {told}"),)
    marks = [Span(_MARKS.get(slot.state, "?"), _STATE_COLOURS.get(slot.state)) for slot in slots]
    step = max(1, width)
    yield from (marks[start : start + step] for start in range(0, len(marks), step))


def _busy(slot: Slot) -> Line:
    request = _cut(plain(slot.request_id or ""), _REQUEST_ID_COLUMNS)
    return (
        Span(f"{slot.slot:>4} "),
        Span(f"{slot.state:<9} ", _STATE_COLOURS.get(slot.state)),
        Span(f"{slot.tokens:>6} tokens {format_age(slot.age_s):>7}  {request}"),
    )


def _table(tree: list[Row[Child]], width: int) -> list[Line]:
    """The tree with a line of headings. Where there is no room for every column, what happens now
    and how it ended last come before what a child always has."""
    wide = width >= _WIDE
    headings = [
        Span("child"),
        Span("state"),
        Span("up"),
        Span("incarnation" if wide else "inc"),
        Span("restarts" if wide else "rst"),
    ]
    cells = [headings, *(_cells(row, max(16, width * 2 // 5)) for row in tree)]
    facts = [Span("mailbox or window"), *(_facts(row.node) for row in tree)]
    notes = [[Span("handling, last exit")], *([*_notes(row.node)] for row in tree)]
    if wide:
        cells = [[*line, fact] for line, fact in zip(cells, facts, strict=True)]
    else:
        notes = [
            [*note, Span(", " if note and fact.text else ""), fact]
            for note, fact in zip(notes, facts, strict=True)
        ]
    widths = [max(columns(cell.text) for cell in column) for column in zip(*cells, strict=True)]
    return [
        [*(_padded(*cell) for cell in zip(line, widths, strict=True)), *note]
        for line, note in zip(cells, notes, strict=True)
    ]


def _cells(row: Row[Child], name_columns: int) -> list[Span]:
    node = row.node
    hidden = f" ({row.hidden} children)" if row.hidden else ""
    return [
        Span(_cut(plain(row.rails + row.name), name_columns - len(hidden)) + hidden),
        Span(plain(node.state), "green" if node.state == "up" else "yellow"),
        Span(format_age(node.uptime_s)),
        Span(str(node.incarnation)),
        Span(str(node.restarts), "yellow" if node.restarts else None),
    ]


def _facts(node: Child) -> Span:
    box, told = node.mailbox, []
    if box is not None:
        told.append(f"{box.depth + box.system_depth} of {box.capacity}, peak {box.peak}")
        if box.dropped:
            told.append(f"{box.dropped} dropped")
    if node.strategy is not None:
        period = "" if node.period_s is None else f" in {node.period_s:g} s"
        told.append(f"{node.strategy}, {node.restarts_in_window} of {node.intensity}{period}")
    return Span(plain(", ".join(told)), "red" if box is not None and box.dropped else None)


def _notes(node: Child) -> Iterator[Span]:
    box, ended = node.mailbox, node.last_exit
    if box is not None and box.current is not None:
        end = ", " if ended is not None else ""
        yield Span(f"{box.current} for {format_age(box.current_age_s)}{end}", "cyan")
    if ended is not None:
        bad = ended.kind not in ("normal", "stopped")
        yield Span(f"{format_age(ended.age_s)} ago: ")
        yield Span(ended.text, "red" if bad else None)


def _shortened(lines: Sequence[Line], height: int) -> list[Line]:
    if len(lines) <= height:
        return list(lines)
    if height < 1:
        return []
    return [*lines[: height - 1], (Span(f"… {len(lines) - height + 1} more"),)]


def _rendered(line: Line, width: int, colour: bool) -> str:
    """Cut to the width first, painted last: colours have no width."""
    spans = [Span(plain(span.text), span.colour) for span in line]
    while spans and not spans[-1].text.strip():
        spans.pop()
    if spans:  # padding that nothing follows is not worth a mark
        spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].colour)
    if sum(columns(span.text) for span in spans) > width:
        spans = [*_clipped(spans, width - 1), Span("…"[:width])]
    if not colour:
        return "".join(span.text for span in spans).rstrip()
    return "".join(
        click.style(span.text, fg=span.colour) if span.colour else span.text for span in spans
    )


def _clipped(spans: Line, room: int) -> Iterator[Span]:
    for span in spans:
        text = _prefix(span.text, room)
        yield Span(text, span.colour)
        if text != span.text:
            return
        room -= columns(text)


def _padded(cell: Span, width: int) -> Span:
    return Span(cell.text + " " * (width - columns(cell.text) + 2), cell.colour)


def columns(text: str) -> int:
    """How wide a terminal shows it."""
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    return text if columns(text) <= width else _prefix(text, width - 1) + "…"[: max(0, width)]


def _prefix(text: str, room: int) -> str:
    """The start of the text that is no wider than that."""
    for position, char in enumerate(text):
        room -= _columns(char)
        if room < 0:
            return text[:position]
    return text
