"""One file's bytes become a document: the pure core of the reader process. It knows no path, no
process and no network."""

from antiphon.documents.archive import Archive
from antiphon.documents.building import Advance, DocumentBuilder
from antiphon.documents.decoding import decode
from antiphon.documents.docx import read_docx
from antiphon.documents.html import read_html
from antiphon.documents.images import read_image
from antiphon.documents.markdown import read_markdown
from antiphon.documents.media import Kind, Media, media_of, office_media
from antiphon.documents.pdf import read_pdf
from antiphon.documents.plain import read_code, read_plain
from antiphon.documents.reader_config import Limits
from antiphon.documents.refusing import refuse
from antiphon.documents.tables import read_csv, read_json, read_json_lines
from antiphon.reading_files import Unreadable


def read_document(
    data: bytes,
    filename: str,
    declared: str | None,
    limits: Limits,
    advance: Advance | None = None,
) -> DocumentBuilder:
    """The document with all its blocks. Raises UnreadableFile."""
    if len(data) > limits.file_bytes:
        most = limits.file_bytes // 2**20
        refuse(Unreadable.TOO_LARGE, f"The file has more than {most} MiB.")
    if not data.strip():
        refuse(Unreadable.EMPTY)
    media = media_of(data, filename, declared)
    if media.kind is Kind.ARCHIVE:
        archive = Archive(data, limits)
        media = office_media(archive.names)
        _refuse_other(media)
        builder = DocumentBuilder(media.media_type, limits, advance)
        read_docx(archive, builder)
        return builder
    _refuse_other(media)
    builder = DocumentBuilder(media.media_type, limits, advance)
    match media.kind:
        case Kind.PDF:
            read_pdf(data, builder)
        case Kind.IMAGE:
            read_image(data, builder)
        case Kind.HTML:
            read_html(data, _charset(declared), builder)
        case _:
            _read_text(data, media.kind, _charset(declared), builder)
    return builder


def _read_text(data: bytes, kind: Kind, declared: str | None, builder: DocumentBuilder) -> None:
    text, notices = decode(data, declared)
    for notice in notices:
        builder.notice(notice)
    match kind:
        case Kind.MARKDOWN:
            read_markdown(text, builder)
        case Kind.CSV:
            read_csv(text, builder)
        case Kind.TSV:
            read_csv(text, builder, separator="\t")
        case Kind.JSON:
            read_json(text, builder)
        case Kind.JSON_LINES:
            read_json_lines(text, builder)
        case Kind.CODE:
            read_code(text, builder)
        case _:
            read_plain(text, builder)


def _refuse_other(media: Media) -> None:
    if media.kind is Kind.OTHER:
        refuse(
            Unreadable.UNSUPPORTED,
            f"The file is {media.name}. What can be read: PDF, DOCX, HTML, Markdown, text, CSV, "
            "TSV, JSON and source code.",
        )


def _charset(declared: str | None) -> str | None:
    """Of a media type such as `text/plain; charset=koi8-r`."""
    _, found, charset = (declared or "").partition("charset=")
    return charset.strip(" \"'") if found else None
