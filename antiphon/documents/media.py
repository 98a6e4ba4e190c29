"""What a file is: by its first bytes, then by its name and what its sender called it where several
kinds look alike. What a sender says never makes a file into something that it isn't."""

import enum
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from antiphon.documents import docx, html, markdown, pdf, plain
from antiphon.pictures import image_type


class Kind(enum.Enum):
    """How a file is read."""

    PDF = enum.auto()
    ARCHIVE = enum.auto()
    HTML = enum.auto()
    MARKDOWN = enum.auto()
    CSV = enum.auto()
    TSV = enum.auto()
    JSON = enum.auto()
    JSON_LINES = enum.auto()
    CODE = enum.auto()
    PLAIN = enum.auto()
    IMAGE = enum.auto()
    OTHER = enum.auto()


@dataclass(frozen=True, slots=True)
class Media:
    """What a file was found to be. `name` says it to people where it isn't read."""

    kind: Kind
    media_type: str
    name: str = ""


_SIGNATURES = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (DOC, XLS, PPT)"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"%!PS", "a PostScript file"),
    (b"SQLite format 3\x00", "a database"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"ID3", "an audio file"),
    (b"OggS", "an audio file"),
    (b"fLaC", "an audio file"),
)
_CONTAINERS = ((4, b"ftyp", "a video, or a picture of HEIF's kind"), (8, b"WAVE", "an audio file"))
_HTML = re.compile(
    # Without ever going back: of a hundred comments, each could end where any later one does.
    rb"\s*+(?:<\?xml[^>]{0,200}+>\s*+)?+(?:(?><!--.{0,2000}?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_NAMED = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), Media(Kind.HTML, html.MEDIA_TYPE)),
    **dict.fromkeys((".md", ".markdown", ".mdown"), Media(Kind.MARKDOWN, markdown.MEDIA_TYPE)),
    ".csv": Media(Kind.CSV, "text/csv"),
    ".tsv": Media(Kind.TSV, "text/tab-separated-values"),
    ".tab": Media(Kind.TSV, "text/tab-separated-values"),
    ".json": Media(Kind.JSON, "application/json"),
    ".ipynb": Media(Kind.JSON, "application/json"),
    **dict.fromkeys((".jsonl", ".ndjson"), Media(Kind.JSON_LINES, "application/jsonl")),
}
_CODE = {
    suffix: media_type
    for media_type, suffixes in {
        "text/x-python": ".py .pyi",
        "text/javascript": ".js .mjs .cjs .jsx",
        "application/typescript": ".ts .tsx",
        "text/x-c": ".c .h",
        "text/x-c++": ".cc .cpp .cxx .hpp .hh",
        "text/x-csharp": ".cs",
        "text/x-java": ".java",
        "text/x-kotlin": ".kt .kts",
        "text/x-scala": ".scala",
        "text/x-swift": ".swift",
        "text/x-go": ".go",
        "text/x-rust": ".rs",
        "text/x-ruby": ".rb",
        "text/x-php": ".php",
        "text/x-perl": ".pl .pm",
        "text/x-lua": ".lua",
        "text/x-r": ".r",
        "text/x-haskell": ".hs",
        "text/x-elixir": ".ex .exs",
        "text/x-erlang": ".erl .hrl",
        "text/x-tex": ".tex",
        "text/css": ".css",
        "application/x-sh": ".sh .bash .zsh",
        "application/sql": ".sql",
        "application/toml": ".toml",
        "application/yaml": ".yaml .yml",
        "application/xml": ".xml .xsd .xsl",
        "image/svg+xml": ".svg",
    }.items()
    for suffix in suffixes.split()
}
_CALLED = {
    html.MEDIA_TYPE: Kind.HTML,
    "application/xhtml+xml": Kind.HTML,
    markdown.MEDIA_TYPE: Kind.MARKDOWN,
    "text/csv": Kind.CSV,
    "text/tab-separated-values": Kind.TSV,
    "application/json": Kind.JSON,
    "application/jsonl": Kind.JSON_LINES,
    "application/x-ndjson": Kind.JSON_LINES,
}


def media_of(data: bytes, filename: str, declared: str | None) -> Media:
    """What this file is."""
    # PDF readers look for the mark in the first kilobyte (ISO 32000-1, annex H.3.4.1).
    if b"%PDF-" in data[:1024]:
        return Media(Kind.PDF, pdf.MEDIA_TYPE)
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Media(Kind.ARCHIVE, "application/zip")
    if (picture := image_type(data)) is not None:
        return Media(Kind.IMAGE, picture)
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return Media(Kind.OTHER, "application/octet-stream", name)
    for at, mark, name in _CONTAINERS:
        if data[at : at + len(mark)] == mark:
            return Media(Kind.OTHER, "application/octet-stream", name)
    return _text_media(data, filename, declared)


def office_media(names: frozenset[str]) -> Media:
    """What an archive is, by the names of its parts."""
    if "word/document.xml" in names or any(name.startswith("word/document") for name in names):
        return Media(Kind.ARCHIVE, docx.MEDIA_TYPE)
    if any(name.startswith("xl/") for name in names):
        return Media(Kind.OTHER, "application/zip", "a spreadsheet (XLSX)")
    if any(name.startswith("ppt/") for name in names):
        return Media(Kind.OTHER, "application/zip", "a presentation (PPTX)")
    if "content.xml" in names and "mimetype" in names:
        return Media(Kind.OTHER, "application/zip", "an OpenDocument file")
    if "META-INF/container.xml" in names:
        return Media(Kind.OTHER, "application/zip", "an EPUB book")
    return Media(Kind.OTHER, "application/zip", "a ZIP archive")


def _text_media(data: bytes, filename: str, declared: str | None) -> Media:
    suffix = PurePosixPath(filename).suffix.lower()
    if suffix in _NAMED:
        return _NAMED[suffix]
    if suffix in _CODE:
        return Media(Kind.CODE, _CODE[suffix])
    called = (declared or "").partition(";")[0].strip().lower()
    if called in _CALLED:
        return Media(_CALLED[called], called)
    if _HTML.match(data[:4096]):
        return Media(Kind.HTML, html.MEDIA_TYPE)
    return Media(Kind.PLAIN, plain.MEDIA_TYPE)
