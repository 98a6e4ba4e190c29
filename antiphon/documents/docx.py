"""DOCX: the parts of the archive that have text, in the order in which people read them."""

import posixpath
from collections.abc import Mapping

from antiphon.documents.archive import Archive
from antiphon.documents.building import DocumentBuilder, flat
from antiphon.documents.docx_body import Body
from antiphon.documents.docx_styles import Styles
from antiphon.documents.refusing import refuse
from antiphon.documents.xml_parts import Handlers, parse
from antiphon.reading_files import Unreadable

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_RELATIONS = "_rels/.rels"
_PROPERTIES = "docProps/core.xml"


def read_docx(archive: Archive, builder: DocumentBuilder) -> None:
    """Raises UnreadableFile."""
    main = _main_part(archive)
    if main not in archive.names:
        refuse(Unreadable.DAMAGED, "The document has no text part.")
    folder = posixpath.dirname(main)
    styles = Styles()
    if (part := f"{folder}/styles.xml") in archive.names:
        parse(archive.pieces(part), styles.handlers)
    builder.title = _title(archive)
    body = Body(builder, styles)
    parse(archive.pieces(main), body.handlers)
    builder.advanced(0.9)
    for notes in ("footnotes", "endnotes"):
        if (part := f"{folder}/{notes}.xml") in archive.names:
            parse(archive.pieces(part), body.handlers)
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


def _main_part(archive: Archive) -> str:
    found = "word/document.xml"

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal found
        if name == "Relationship" and attributes.get("Type", "").endswith("/officeDocument"):
            found = attributes.get("Target", found).lstrip("/")

    if _RELATIONS in archive.names:
        parse(archive.pieces(_RELATIONS), Handlers(start, lambda name: None))
    return found


def _title(archive: Archive) -> str | None:
    inside = False
    words: list[str] = []

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal inside
        inside = name == "title"

    def end(name: str) -> None:
        nonlocal inside
        inside = False

    def text(characters: str) -> None:
        if inside:
            words.append(characters)

    if _PROPERTIES in archive.names:
        parse(archive.pieces(_PROPERTIES), Handlers(start, end, text))
    return flat("".join(words))[:200] or None
