"""Pictures as documents: a sentence on their format and size. What they show is not read."""

from antiphon.documents.building import DocumentBuilder
from antiphon.documents.refusing import refuse
from antiphon.pictures import NAMES, Damaged, size_of
from antiphon.reading_files import BlockKind, Unreadable


def read_image(data: bytes, builder: DocumentBuilder) -> None:
    """One sentence on the picture. Raises UnreadableFile."""
    try:
        width, height = size_of(data, builder.media_type)
    except Damaged as error:
        refuse(Unreadable.DAMAGED, str(error))
    name = NAMES[builder.media_type]
    builder.add(BlockKind.PARAGRAPH, f"A {name} picture of {width} × {height} pixels.")
    builder.notice("Only the picture's format and size were read, not what it shows.")
