"""A file's bytes read in this very process, without its limits: for tests of the readers, whose
files mean no harm."""

from antiphon.documents.building import DocumentBuilder
from antiphon.documents.reader_config import Limits
from antiphon.documents.reading import read_document
from antiphon.reading_files import BlockKind


def extract(
    data: bytes | str,
    filename: str,
    declared: str | None = None,
    limits: Limits | None = None,
) -> DocumentBuilder:
    """The document. Raises UnreadableFile."""
    raw = data.encode() if isinstance(data, str) else data
    return read_document(raw, filename, declared, limits or Limits())


def shown(builder: DocumentBuilder) -> list[tuple[BlockKind, str]]:
    """Each block's kind and text."""
    text = builder.text()
    return [(block.kind, text[block.start : block.end]) for block in builder.blocks]


def outline(builder: DocumentBuilder) -> list[tuple[int, str]]:
    """Each heading's level and text; that it stands in the text where it says is seen to."""
    text = builder.text()
    for heading in builder.headings:
        assert text.startswith(heading.text, heading.start)
    return [(heading.level, heading.text) for heading in builder.headings]
