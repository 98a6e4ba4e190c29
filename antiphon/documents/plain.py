"""Plain text and source code: paragraphs are what empty lines are between."""

import re

from antiphon.documents.building import DocumentBuilder, clean
from antiphon.documents.refusing import refuse
from antiphon.reading_files import BlockKind, Unreadable

MEDIA_TYPE = "text/plain"
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_DEFINITION = re.compile(
    r"^(?:(?:export|public|private|protected|static|abstract|async|final|default|pub|open|sealed)"
    r"[ \t]+){0,4}"
    r"(?:def|class|func|fn|function|interface|struct|enum|trait|impl|module|namespace|type|object)"
    r"[ \t]+(?P<name>[\w.$]{1,80})",
    re.MULTILINE,
)
"""What begins at the margin and says its name, in the languages that most code is in."""


def read_plain(text: str, builder: DocumentBuilder) -> None:
    """Raises UnreadableFile."""
    for paragraph in _PARAGRAPHS.split(clean(text)):
        builder.add(BlockKind.PARAGRAPH, paragraph)
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


def read_code(text: str, builder: DocumentBuilder) -> None:
    """Definitions at the margin are its headings. Raises UnreadableFile."""
    for part in _at_the_margin(clean(text)):
        start = builder.add(BlockKind.CODE, part)
        if start is not None and (found := _DEFINITION.search(part)) is not None:
            builder.name(1, found["name"], start)
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


def _at_the_margin(text: str) -> list[str]:
    """Cut at the empty lines after which a line begins at the margin."""
    parts: list[list[str]] = [[]]
    blank = False
    for line in text.split("\n"):
        if blank and line[:1].strip() and line[0] not in ")}]" and parts[-1]:
            parts.append([])
        blank = not line.strip()
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]
