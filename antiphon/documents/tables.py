"""CSV and TSV: a row a line, its first the names of the columns."""

import csv
import io
import itertools
import json

from antiphon.documents.building import DocumentBuilder
from antiphon.documents.refusing import refuse
from antiphon.reading_files import BlockKind, Unreadable

_SEPARATORS = ",;\t|"
_SAMPLE_ROWS = 20
_PROGRESS_EVERY = 5_000


def read_csv(text: str, builder: DocumentBuilder, *, separator: str | None = None) -> None:
    """Raises UnreadableFile."""
    text = text.replace("\x00", "")
    delimiter = separator or _separator(text)
    # What the standard library refuses as too long a field, an unclosed quote makes of the rest.
    csv.field_size_limit(builder.limits.characters)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = max(1, text.count("\n"))
    first = True
    for number, row in enumerate(reader):
        if any(cell.strip() for cell in row):
            builder.row(row, first=first)
            first = False
        if number % _PROGRESS_EVERY == 0:
            builder.advanced(min(0.9, 0.9 * number / lines))
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


def read_json_lines(text: str, builder: DocumentBuilder) -> None:
    """A value a line. Raises UnreadableFile."""
    for line in text.splitlines():
        if line.strip():
            builder.add(BlockKind.ROW, line)
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


def read_json(text: str, builder: DocumentBuilder) -> None:
    """In lines, as people write it; what is no JSON is read as it is. Raises UnreadableFile."""
    shown = text
    try:
        value = json.loads(text)
        # One that was written in lines keeps its own.
        if "\n" not in text.strip():
            shown = json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        refuse(Unreadable.TOO_DEEP)
    except ValueError:
        builder.notice("The file isn't valid JSON; it was read as plain text.")
    for lines in _batched(shown.split("\n")):
        builder.add(BlockKind.CODE, "\n".join(lines), near=True)
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


def _batched(lines: list[str]) -> list[list[str]]:
    """Cut before each line of the outermost level's own."""
    parts: list[list[str]] = [[]]
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if indent <= 2 and parts[-1] and line.strip()[:1] not in "]}":
            parts.append([])
        parts[-1].append(line)
    return parts


def _separator(text: str) -> str:
    """The one by which the first rows are cut most alike."""

    def alike(separator: str) -> tuple[int, int]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        widths = [len(row) for row in itertools.islice(rows, _SAMPLE_ROWS) if row]
        if not widths or max(widths) == 1:
            return 0, 0
        common = max(set(widths), key=widths.count)
        return (widths.count(common), common) if common > 1 else (0, 0)

    csv.field_size_limit(max(len(text), 1))
    return max(_SEPARATORS, key=alike)
