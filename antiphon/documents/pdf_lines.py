"""A PDF page's lines, and which of them belong together: a page knows letters and places, and
neither words that were broken nor paragraphs. Pure but for asking PDFium."""

import ctypes
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pypdfium2
import pypdfium2.raw as pdfium

from antiphon.documents.building import flat

_HYPHEN = "\ufffe"
"""What PDFium makes of a hyphen at a line's end that only breaks the word; some builds say
U+0002."""
_HYPHENS = (_HYPHEN, "\x02", "\u00ad")
_ENDS = tuple(".:!?…。！？\"'”’)")
_LARGER = 1.15
"""How much larger than the text around it a heading's letters are."""
_HEADING_LEVELS = 3
_HEADING_CHARACTERS = 150
_GAP = 0.4
"""Of a line's height: with so much more than usual between two lines, a new paragraph begins."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line; its letters are so tall, and it is at this place, both in points. A `size` of 0 is
    unknown."""

    text: str
    size: float = 0.0
    top: float = 0.0
    bottom: float = 0.0


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    size: float
    lines: int

    @property
    def is_title_like(self) -> bool:
        return (
            self.lines <= 2
            and len(self.text) <= _HEADING_CHARACTERS
            and any(character.isalpha() for character in self.text)
        )


def lines_of(page: pypdfium2.PdfTextPage) -> list[Line]:
    """The page's lines that have text."""
    text = page.get_text_range()
    # Places are known by character; where some were left out of the text, they can't be told.
    placed = len(text) == page.count_chars()
    lines: list[Line] = []
    at = 0
    for raw in text.split("\r\n"):
        stripped = raw.strip()
        if stripped:
            first = at + raw.index(stripped[0])
            lines.append(_placed(page, stripped, first) if placed else Line(stripped))
        at += len(raw) + 2
    return lines


def _placed(page: pypdfium2.PdfTextPage, text: str, index: int) -> Line:
    box = pdfium.FS_RECTF()
    # The box and not the font's nominal size, which is 1 where a matrix makes it larger.
    if not pdfium.FPDFText_GetLooseCharBox(page, index, ctypes.byref(box)):
        return Line(text)
    return Line(text, round(abs(box.top - box.bottom), 1), box.top, box.bottom)


def body_size(lines: Iterable[Line]) -> float:
    """The size that most characters have; 0 where none is known."""
    sizes: Counter[float] = Counter()
    for line in lines:
        if line.size:
            sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def heading_sizes(lines: Iterable[Line], body: float) -> dict[float, int]:
    """The level of a heading by its size, for the sizes that headings have here."""
    larger = {line.size for line in lines if body and line.size > _LARGER * body}
    levels = sorted(larger, reverse=True)
    return {size: min(at, _HEADING_LEVELS) for at, size in enumerate(levels, start=1)}


def paragraphs(page: Sequence[Line]) -> Iterator[Paragraph]:
    """What belongs together, as one line each."""
    typical, gap = _typical(page), _usual_gap(page)
    group: list[Line] = []
    for line in page:
        if group and _begins_anew(group[-1], line, typical, gap):
            yield _joined(group)
            group = []
        group.append(line)
    if group:
        yield _joined(group)


def _typical(page: Sequence[Line]) -> int:
    """The length of a full line."""
    lengths = sorted(len(line.text) for line in page)
    return lengths[len(lengths) * 9 // 10] if lengths else 0


def _usual_gap(page: Sequence[Line]) -> float:
    """What is between two lines of a paragraph: the middle one of what is between lines alike."""
    gaps = sorted(
        before.bottom - line.top
        for before, line in pairwise(page)
        if before.size and before.size == line.size and line.top < before.top
    )
    return max(0.0, gaps[(len(gaps) - 1) // 2]) if gaps else 0.0


def _begins_anew(before: Line, line: Line, typical: int, usual_gap: float) -> bool:
    if before.text.endswith(_HYPHENS):
        return False
    if abs(before.size - line.size) > 0.5:
        return True
    if before.size and line.size:
        if before.bottom - line.top > usual_gap + _GAP * line.size:
            return True
        if line.bottom > before.top:
            # Further up: the next column, in the middle of a sentence or not.
            return before.text.endswith(_ENDS)
    return len(before.text) < 0.6 * typical and (
        before.text.endswith(_ENDS) or not line.text[0].islower()
    )


def _joined(group: Sequence[Line]) -> Paragraph:
    text = ""
    for line in group:
        if text.endswith(_HYPHENS):
            text = text[:-1] + line.text
        elif text.endswith("-"):
            text += line.text
        else:
            text = f"{text} {line.text}" if text else line.text
    return Paragraph(flat(text), group[0].size, len(group))
