"""Files that are meant to harm: each is refused with a reason by the real process, in time and in
bounds, and the next file is read as if nothing had happened."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from antiphon.errors import UnreadableFile
from antiphon.readers import Readers
from antiphon.reading_files import Unreadable
from antiphon.reading_settings import ReadingSettings
from antiphon.settings import Settings
from antiphon.testing import office, pdfs

READING = ReadingSettings(
    cpu_s=5, wall_s=60, memory_mib=512, file_mib=4, unpacked_mib=16, characters=200_000, nice=0
)


def settings() -> Settings:
    return msgspec.structs.replace(Settings(), reading=READING)


def damaged(data: bytes, *, kept: float = 0.6) -> bytes:
    return data[: int(len(data) * kept)]


def garbage(size: int) -> bytes:
    return bytes((at * 131 + at // 7) % 256 for at in range(size))


HOSTILE: dict[str, tuple[str, Callable[[], bytes], set[Unreadable]]] = {
    "nothing at all": ("a.txt", lambda: b"", {Unreadable.EMPTY}),
    "only blanks": ("a.md", lambda: b" \n" * 1000, {Unreadable.EMPTY}),
    "too large": ("a.txt", lambda: b"word " * 2**20, {Unreadable.TOO_LARGE}),
    "too much text": ("a.txt", lambda: b"word " * 50_000, {Unreadable.TOO_MUCH_TEXT}),
    "garbage": ("a.txt", lambda: garbage(50_000), {Unreadable.ENCODING}),
    "a program": ("a.txt", lambda: b"\x7fELF" + garbage(500), {Unreadable.UNSUPPORTED}),
    "another kind of archive": (
        "a.docx",
        lambda: office.archive({"x.txt": "text"}),
        {Unreadable.UNSUPPORTED},
    ),
    "a spreadsheet called a document": (
        "a.docx",
        lambda: office.archive({"xl/workbook.xml": "<x/>"}),
        {Unreadable.UNSUPPORTED},
    ),
    # PDF
    "10,000 pages": ("a.pdf", lambda: pdfs.blank_pages(10_000), {Unreadable.TOO_MANY_PAGES}),
    "a PDF without words": ("a.pdf", lambda: pdfs.blank_pages(3), {Unreadable.NO_TEXT}),
    "a PDF cut short": ("a.pdf", lambda: damaged(pdfs.report(20)), {Unreadable.DAMAGED}),
    "a PDF of garbage": (
        "a.pdf",
        lambda: b"%PDF-1.7\n" + garbage(50_000) + b"\n%%EOF",
        {Unreadable.DAMAGED},
    ),
    "a PDF in a circle": (
        "a.pdf",
        pdfs.circular,
        {Unreadable.DAMAGED, Unreadable.TOO_MANY_PAGES, Unreadable.NO_TEXT},
    ),
    "a PDF that unpacks to 600 MiB": (
        "a.pdf",
        lambda: pdfs.bomb(600),
        {Unreadable.CRASHED, Unreadable.TOO_MUCH_MEMORY, Unreadable.TOO_SLOW},
    ),
    "a PDF without end": (
        "a.pdf",
        pdfs.endless,
        {Unreadable.CRASHED, Unreadable.TOO_MUCH_MEMORY, Unreadable.TOO_SLOW},
    ),
    "a PDF with a password": ("a.pdf", pdfs.locked, {Unreadable.ENCRYPTED}),
    # DOCX
    "an entity of another file": (
        "a.docx",
        lambda: office.with_external_entity("file:///etc/passwd"),
        {Unreadable.FORBIDDEN},
    ),
    "a grammar elsewhere": (
        "a.docx",
        lambda: office.with_external_types("http://127.0.0.1:9/x.dtd"),
        {Unreadable.FORBIDDEN},
    ),
    "entities that multiply": (
        "a.docx",
        office.with_multiplying_entities,
        {Unreadable.FORBIDDEN},
    ),
    "a DOCX that unpacks to 64 MiB": ("a.docx", lambda: office.bomb(64), {Unreadable.TOO_LARGE}),
    "one that says it doesn't": ("a.docx", lambda: office.lying_bomb(64), {Unreadable.DAMAGED}),
    "a DOCX of too many parts": (
        "a.docx",
        lambda: office.many_parts(10_001),
        {Unreadable.TOO_LARGE},
    ),
    "a DOCX cut short": (
        "a.docx",
        lambda: damaged(office.docx(office.paragraph("a text"))),
        {Unreadable.DAMAGED},
    ),
    "a DOCX of broken XML": (
        "a.docx",
        lambda: office.docx("<w:p><w:r></w:p>"),
        {Unreadable.DAMAGED},
    ),
    "tables within tables": ("a.docx", lambda: office.nested(5_000), {Unreadable.TOO_DEEP}),
    # HTML, JSON, text
    "tags within tags": ("a.html", lambda: b"<div>" * 20_000 + b"x", {Unreadable.TOO_DEEP}),
    "so many tags that parsing never ends": (
        "a.html",
        lambda: b"<div>" * 500_000 + b"x",
        {Unreadable.TOO_SLOW, Unreadable.TOO_DEEP},
    ),
    "lists within lists": ("a.json", lambda: b"[" * 500_000, {Unreadable.TOO_DEEP}),
    "text that says it is UTF-16": (
        "a.txt",
        lambda: b"\xff\xfe" + b"\x00\xd8" * 5_000,
        {Unreadable.ENCODING},
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_file_fails_with_a_reason_and_nothing_else(what: str, tmp_path: Path):
    filename, make, expected = HOSTILE[what]
    hostile = tmp_path / "hostile"
    hostile.write_bytes(make())
    readers = Readers(settings)

    with pytest.raises(UnreadableFile) as refused:
        await readers.read(hostile, filename)

    assert Unreadable(refused.value.code) in expected
    assert refused.value.message.endswith(".")
    assert "Traceback" not in refused.value.message


async def test_after_hostile_files_an_ordinary_one_is_read(tmp_path: Path):
    readers = Readers(settings)
    for name, content in {"a": pdfs.bomb(600), "b": office.bomb(64)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableFile):
            await readers.read(tmp_path / name, "a.pdf")
    (tmp_path / "good").write_text("A good file.")

    assert (await readers.read(tmp_path / "good", "good.txt")).text == "A good file."


async def test_lists_that_are_deep_and_valid_are_read_or_refused_but_never_kill(tmp_path: Path):
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 400 + "1" + "]" * 400)

    assert "1" in (await Readers(settings).read(deep, "deep.json")).text
    assert json.loads(deep.read_text())
