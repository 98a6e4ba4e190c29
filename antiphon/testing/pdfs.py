"""PDF files made in code: orderly ones of any length, and such as are meant to harm their reader.

Written by hand down to the bytes, since no library makes files as wrong as these.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from antiphon.testing.prose import paragraphs

_BODY, _HEADING = 11, 18
_LINE = 90
"""Characters of a line, at which Helvetica of that size about fills it."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading, and the pages under it, each a sequence of paragraphs."""

    title: str
    pages: tuple[tuple[str, ...], ...]


def report(pages: int, *, seed: int = 0, outline: bool = True) -> bytes:
    """A report of so many pages, about 3,000 characters each, a chapter every ten pages."""
    chapters = [
        Chapter(
            f"Chapter {first // 10 + 1}: Findings of part {first // 10 + 1}",
            tuple(tuple(paragraphs(seed + number, count=5)) for number in range(first, last)),
        )
        for first in range(0, pages, 10)
        for last in (min(first + 10, pages),)
    ]
    return book(chapters, title=f"Report of {pages} pages", outline=outline)


def book(chapters: Sequence[Chapter], *, title: str, outline: bool) -> bytes:
    """A file of these chapters; with an `outline`, it says itself where they begin."""
    objects = Objects()
    font = objects.add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    tree = objects.reserve()
    pages: list[int] = []
    begins: list[tuple[str, int]] = []
    for chapter in chapters:
        for at, body in enumerate(chapter.pages):
            content = objects.stream(_page(chapter.title if at == 0 else None, body))
            pages.append(objects.add(_leaf(tree, font, content)))
            if at == 0:
                begins.append((chapter.title, pages[-1]))
    objects.put(tree, _tree(pages))
    root = b"<< /Type /Catalog /Pages %d 0 R" % tree
    if outline:
        root += b" /Outlines %d 0 R" % _outline(objects, begins)
    info = objects.add(b"<< /Title (%s) >>" % _escaped(title))
    return objects.file(objects.add(root + b" >>"), info=info)


def blank_pages(count: int) -> bytes:
    """So many pages, as quick to make as they are to count."""
    objects = Objects()
    tree = objects.reserve()
    leaf = b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] >>" % tree
    objects.put(tree, _tree([objects.add(leaf) for _ in range(count)]))
    return objects.file(objects.add(b"<< /Type /Catalog /Pages %d 0 R >>" % tree))


def circular() -> bytes:
    """Its tree of pages contains itself, its outline and its cross-references go in a circle."""
    objects = Objects()
    tree, outline, first = objects.reserve(), objects.reserve(), objects.reserve()
    objects.put(
        tree,
        b"<< /Type /Pages /Kids [%d 0 R %d 0 R] /Parent %d 0 R /Count 100000 >>"
        % (tree, tree, tree),
    )
    objects.put(outline, b"<< /Type /Outlines /First %d 0 R /Count 1 >>" % first)
    objects.put(first, b"<< /Title (Again) /Next %d 0 R /First %d 0 R >>" % (first, outline))
    root = objects.add(b"<< /Type /Catalog /Pages %d 0 R /Outlines %d 0 R >>" % (tree, outline))
    return objects.file(root, circular=True)


def bomb(unpacked_mib: int) -> bytes:
    """One page whose content unpacks to so much, twice packed: a kilobyte for a hundred megabytes.
    What it unpacks to is text that is shown again and again."""
    objects = Objects()
    font = objects.add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    line = b"BT /F 11 Tf 50 700 Td (again and again) Tj ET\n"
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(line * (2**20 // len(line))) for _ in range(unpacked_mib))
    twice = zlib.compress(packed + packer.flush(), 9)
    filters = b" /Filter [/FlateDecode /FlateDecode]"
    content = objects.add(_stream(twice, filters))
    tree = objects.reserve()
    objects.put(tree, _tree([objects.add(_leaf(tree, font, content))]))
    return objects.file(objects.add(b"<< /Type /Catalog /Pages %d 0 R >>" % tree))


def endless(calls: int = 12, depth: int = 12) -> bytes:
    """One page that draws a form which draws the next one many times, and so on: more work than
    anybody will ever finish, in a few kilobytes."""
    objects = Objects()
    font = objects.add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    last = objects.add(
        _stream(
            b"BT /F 11 Tf 50 700 Td (again) Tj ET",
            b" /Type /XObject /Subtype /Form /BBox [0 0 595 842]"
            b" /Resources << /Font << /F %d 0 R >> >>" % font,
        )
    )
    for _ in range(depth):
        last = objects.add(
            _stream(
                b"/X Do " * calls,
                b" /Type /XObject /Subtype /Form /BBox [0 0 595 842]"
                b" /Resources << /XObject << /X %d 0 R >> >>" % last,
            )
        )
    content = objects.stream(b"/X Do")
    tree = objects.reserve()
    leaf = (
        b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
        b" /Resources << /XObject << /X %d 0 R >> >> >>" % (tree, content, last)
    )
    objects.put(tree, _tree([objects.add(leaf)]))
    return objects.file(objects.add(b"<< /Type /Catalog /Pages %d 0 R >>" % tree))


def locked() -> bytes:
    """Encrypted with a password that nobody has."""
    objects = Objects()
    tree = objects.reserve()
    objects.put(tree, _tree([objects.add(b"<< /Type /Page /Parent %d 0 R >>" % tree)]))
    key = b"<" + b"5a" * 32 + b">"
    objects.encrypt = objects.add(
        b"<< /Filter /Standard /V 1 /R 2 /O %s /U %s /P -4 >>" % (key, key)
    )
    return objects.file(objects.add(b"<< /Type /Catalog /Pages %d 0 R >>" % tree))


class Objects:
    """The numbered objects of a file in the making."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self.encrypt: int | None = None

    def reserve(self) -> int:
        self._bodies.append(b"null")
        return len(self._bodies)

    def put(self, number: int, body: bytes) -> None:
        self._bodies[number - 1] = body

    def add(self, body: bytes) -> int:
        self._bodies.append(body)
        return len(self._bodies)

    def stream(self, content: bytes) -> int:
        return self.add(_stream(zlib.compress(content), b" /Filter /FlateDecode"))

    def file(self, root: int, *, info: int | None = None, circular: bool = False) -> bytes:
        """The whole file. In a `circular` one the cross-references name themselves as those before
        them."""
        out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        places: list[int] = []
        for number, body in enumerate(self._bodies, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        table = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        for place in places:
            out += b"%010d 00000 n \n" % place
        trailer = b"/Size %d /Root %d 0 R" % (len(places) + 1, root)
        if info is not None:
            trailer += b" /Info %d 0 R" % info
        if circular:
            trailer += b" /Prev %d" % table
        if self.encrypt is not None:
            trailer += b" /Encrypt %d 0 R /ID [<00> <00>]" % self.encrypt
        out += b"trailer\n<< %s >>\nstartxref\n%d\n%%%%EOF\n" % (trailer, table)
        return bytes(out)


def _stream(data: bytes, entries: bytes) -> bytes:
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def _leaf(tree: int, font: int, content: int) -> bytes:
    return (
        b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
        b" /Resources << /Font << /F %d 0 R >> >> >>" % (tree, content, font)
    )


def _tree(pages: Sequence[int]) -> bytes:
    kids = b" ".join(b"%d 0 R" % page for page in pages)
    return b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids)


def _outline(objects: Objects, begins: Sequence[tuple[str, int]]) -> int:
    top = objects.reserve()
    numbers = [objects.reserve() for _ in begins]
    for at, (title, page) in enumerate(begins):
        entry = b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit]" % (_escaped(title), top, page)
        if at + 1 < len(numbers):
            entry += b" /Next %d 0 R" % numbers[at + 1]
        objects.put(numbers[at], entry + b" >>")
    ends = b" /First %d 0 R /Last %d 0 R" % (numbers[0], numbers[-1]) if numbers else b""
    objects.put(top, b"<< /Type /Outlines /Count %d%s >>" % (len(numbers), ends))
    return top


def _page(title: str | None, body: Iterable[str]) -> bytes:
    out: list[bytes] = [b"BT"]
    y = 800
    if title is not None:
        out.append(b"/F %d Tf 1 0 0 1 50 %d Tm (%s) Tj" % (_HEADING, y, _escaped(title)))
        y -= 36
    for paragraph in body:
        for line in _lines(paragraph):
            out.append(b"/F %d Tf 1 0 0 1 50 %d Tm (%s) Tj" % (_BODY, y, _escaped(line)))
            y -= 14
        y -= 10
    out.append(b"ET")
    return b"\n".join(out)


def _lines(paragraph: str) -> Iterable[str]:
    line = ""
    for word in paragraph.split():
        if line and len(line) + 1 + len(word) > _LINE:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        yield line


def _escaped(text: str) -> bytes:
    return (
        text.encode("latin-1", "replace")
        .replace(b"\\", b"\\\\")
        .replace(b"(", b"\\(")
        .replace(b")", b"\\)")
    )
