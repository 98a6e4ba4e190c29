"""A DOCX's text, tag by tag: paragraphs, headings, lists, tables. What was deleted in a tracked
change, is hidden, or is only there for older programs is left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.documents.building import DocumentBuilder
from antiphon.documents.docx_styles import Styles
from antiphon.documents.xml_parts import Handlers
from antiphon.reading_files import BlockKind

_SKIPPED = frozenset({"del", "moveFrom", "Fallback", "instrText", "delText"})
"""Tracked deletions, the older half of `AlternateContent`, and fields' formulas."""
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_OFF = frozenset({"0", "false", "off"})
_PROGRESS_EVERY = 500


@dataclass(slots=True)
class _Paragraph:
    words: list[str] = field(default_factory=list)
    level: int | None = None
    listed: bool = False


@dataclass(slots=True)
class _Table:
    rows: int = 0
    cells: list[str] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)


class Body:
    """The state between two tags. Paragraphs and tables are stacks: a text box stands in the middle
    of a paragraph, and a table in another one's cell."""

    def __init__(self, builder: DocumentBuilder, styles: Styles) -> None:
        self._builder = builder
        self._styles = styles
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._skipping = 0
        self._in_text = False
        self._in_run_properties = False
        self._hidden = False
        self._seen = 0
        self.handlers = Handlers(self._start, self._end, self._text)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or name in _SKIPPED:
            self._skipping += 1
            return
        paragraph = self._paragraphs[-1] if self._paragraphs else None
        match name:
            case "p":
                self._paragraphs.append(_Paragraph())
            case "r":
                self._hidden = False
            case "t":
                self._in_text = not self._hidden
            case "rPr":
                self._in_run_properties = True
            case "vanish" if self._in_run_properties:
                self._hidden = attributes.get("val", "1") not in _OFF
            case "pStyle" if paragraph is not None:
                style = attributes.get("val", "")
                paragraph.level = self._styles.level(style)
                paragraph.listed = self._styles.is_listed(style)
            case "outlineLvl" if paragraph is not None:
                level = attributes.get("val", "")
                paragraph.level = int(level) + 1 if level in tuple("012345678") else None
            case "numPr" if paragraph is not None:
                paragraph.listed = True
            case "tab" | "br" | "cr" | "noBreakHyphen" if paragraph is not None:
                # In a paragraph's properties, `tab` says where tabs stop.
                if not (name == "tab" and attributes) and not self._hidden:
                    paragraph.words.append(_BREAKS[name])
            case "tbl":
                self._tables.append(_Table())
            case "tc" if self._tables:
                self._tables[-1].cell = []
            case _:
                pass

    def _end(self, name: str) -> None:
        if self._skipping:
            self._skipping -= 1
            return
        match name:
            case "t":
                self._in_text = False
            case "rPr":
                self._in_run_properties = False
            case "p" if self._paragraphs:
                self._tell(self._paragraphs.pop())
            case "tc" if self._tables:
                table = self._tables[-1]
                table.cells.append("\n".join(table.cell))
            case "tr" if self._tables:
                self._row(self._tables[-1])
            case "tbl" if self._tables:
                self._tables.pop()
            case _:
                pass

    def _text(self, characters: str) -> None:
        if self._in_text and not self._skipping and self._paragraphs:
            self._paragraphs[-1].words.append(characters)

    def _tell(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.words)
        if self._tables:
            self._tables[-1].cell.append(text)
        elif paragraph.level is not None:
            self._builder.heading(paragraph.level, text)
        elif paragraph.listed:
            if text.strip():
                self._builder.add(BlockKind.ITEM, f"- {text.strip()}")
        else:
            self._builder.add(BlockKind.PARAGRAPH, text)
        self._seen += 1
        if self._seen % _PROGRESS_EVERY == 0:
            # How many will come, nobody knows yet.
            self._builder.advanced(0.9 * (1 - 1 / (1 + self._seen / 5000)))

    def _row(self, table: _Table) -> None:
        cells, table.cells = table.cells, []
        if len(self._tables) > 1:
            # A table in a cell is part of that cell's text.
            self._tables[-2].cell.append(" ".join(cells))
        elif len(cells) == 1:
            # One column is a layout, not a table.
            self._builder.add(BlockKind.PARAGRAPH, cells[0])
        else:
            self._builder.row(cells, first=table.rows == 0)
        table.rows += 1
