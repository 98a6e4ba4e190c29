"""PDF, by PDFium: text page by page, headings from the file's own outline or else from the size of
its letters. Pictures of text are not read.

PDFium repairs what it can without saying so; a file that was cut short is recognised here.
"""

import itertools
import re

import pypdfium2

from antiphon.documents.building import DocumentBuilder, flat
from antiphon.documents.pdf_lines import Line, body_size, heading_sizes, lines_of, paragraphs
from antiphon.documents.refusing import refuse
from antiphon.reading_files import BlockKind, Unreadable

MEDIA_TYPE = "application/pdf"
_ENTRIES = 5_000
"""Of an outline; longer ones name every paragraph, or go in a circle."""
_DEPTH = 6
_LINEARIZED = re.compile(rb"/Linearized\b.{0,200}?/L\s+(\d{1,18})", re.DOTALL)
_PASSWORD_ERROR = 4
"""FPDF_ERR_PASSWORD."""


def read_pdf(data: bytes, builder: DocumentBuilder) -> None:
    """Raises UnreadableFile."""
    if _is_cut_short(data):
        refuse(Unreadable.DAMAGED, "The PDF is incomplete: its end is missing.")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == _PASSWORD_ERROR:
            refuse(Unreadable.ENCRYPTED)
        refuse(Unreadable.DAMAGED, "The PDF is damaged: it can't be opened.")
    count = len(document)
    if count > builder.limits.pages:
        most = builder.limits.pages
        refuse(
            Unreadable.TOO_MANY_PAGES, f"The PDF has {count:,} pages; at most {most:,} are read."
        )
    if not count:
        refuse(Unreadable.DAMAGED, "The PDF has no pages.")
    builder.title = flat(document.get_metadata_value("Title"))[:200] or None
    pages = _pages(document, count, builder)
    outline = _outline(document)
    _tell(builder, pages, outline)
    if not builder.blocks:
        refuse(
            Unreadable.NO_TEXT,
            "The PDF contains no text that can be read: its pages may be pictures.",
        )
    blank = sum(page == [] for page in pages)
    if blank:
        builder.notice(f"{blank} of {count} pages have no text; pictures of text aren't read.")


def _is_cut_short(data: bytes) -> bool:
    """A whole file says where it ends (ISO 32000-1, 7.5.5); one that was made for the web says at
    its beginning how long it is, and has such an end there, too (annex F)."""
    if b"%%EOF" not in data:
        return True
    linearized = _LINEARIZED.search(data[:2048])
    return linearized is not None and int(linearized[1]) > len(data)


def _pages(
    document: pypdfium2.PdfDocument, count: int, builder: DocumentBuilder
) -> list[list[Line] | None]:
    """The lines of each page; None for one that can't be read."""
    pages: list[list[Line] | None] = []
    length = 0
    for number in range(count):
        page = None
        try:
            page = document[number]
            text = page.get_textpage()
            pages.append(lines_of(text))
            text.close()
        except pypdfium2.PdfiumError:
            pages.append(None)
        finally:
            if page is not None:
                page.close()
        length += sum(len(line.text) for line in pages[-1] or ())
        if length > builder.limits.characters:
            refuse(Unreadable.TOO_MUCH_TEXT)
        builder.advanced(0.9 * (number + 1) / count)
    lost = pages.count(None)
    if lost == count:
        refuse(Unreadable.DAMAGED, "The PDF is damaged: none of its pages can be opened.")
    if lost:
        builder.notice(f"{lost} of {count} pages are damaged and were left out.")
    return pages


def _outline(document: pypdfium2.PdfDocument) -> dict[int, list[tuple[int, str]]]:
    """Levels and titles of the outline's entries, by page."""
    entries: dict[int, list[tuple[int, str]]] = {}
    for bookmark in itertools.islice(document.get_toc(max_depth=_DEPTH), _ENTRIES):
        target = bookmark.get_dest()
        title = flat(bookmark.get_title())
        page = target.get_index() if target is not None else None
        if title and page is not None:
            entries.setdefault(page, []).append((bookmark.level + 1, title))
    return entries


def _tell(
    builder: DocumentBuilder,
    pages: list[list[Line] | None],
    outline: dict[int, list[tuple[int, str]]],
) -> None:
    lines = [line for page in pages for line in page or ()]
    body = body_size(lines)
    # Letters are only asked where the file itself says nothing.
    sizes = {} if outline else heading_sizes(lines, body)
    for number, page in enumerate(pages):
        builder.page()
        waiting = {_key(title): (level, title) for level, title in outline.get(number, ())}
        if waiting and (first := _first_without_line(waiting, page or [])) is not None:
            level, title = waiting.pop(first)
            builder.heading(level, title)
        for paragraph in paragraphs(page or []):
            text = paragraph.text
            if (named := waiting.pop(_key(text), None)) is not None:
                builder.heading(named[0], text)
            elif paragraph.size in sizes and paragraph.is_title_like:
                builder.heading(sizes[paragraph.size], text)
            else:
                builder.add(BlockKind.PARAGRAPH, text)


def _key(text: str) -> str:
    """By which an entry of the outline is found on its page, whatever its number or its case."""
    return "".join(character for character in text.casefold() if character.isalnum())


def _first_without_line(waiting: dict[str, tuple[int, str]], page: list[Line]) -> str | None:
    """The outline's first entry for a page, when it stands nowhere on it."""
    there = {_key(line.text) for line in page}
    return next((key for key in waiting if key not in there), None)
