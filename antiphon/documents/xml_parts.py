"""The parts of an office document, read as a stream of tags by expat: nothing is kept but what a
handler keeps, and no entity is ever declared, expanded or fetched.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from xml.parsers import expat

from antiphon.documents.refusing import refuse
from antiphon.reading_files import Unreadable

_DEPTH = 5_000
"""Tags within tags; real documents have dozens."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Told every tag, by its name without its namespace: in these parts no two that matter are
    called alike. Attributes likewise."""

    start: Callable[[str, Mapping[str, str]], None]
    end: Callable[[str], None]
    text: Callable[[str], None] = lambda text: None


def parse(pieces: Iterable[bytes], handlers: Handlers) -> None:
    """Raises UnreadableFile."""
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEPTH:
            refuse(Unreadable.TOO_DEEP)
        handlers.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handlers.end(_local(name))

    def doctype(*_: object) -> None:
        # "DTD declarations shall not be used" (ECMA-376 part 2, 8.1.4): entities come with them,
        # those that multiply and those that name other files.
        refuse(
            Unreadable.FORBIDDEN,
            "The document declares entities, which office documents must not: it may be an attack.",
        )

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = doctype
    try:
        for piece in pieces:
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError:
        refuse(Unreadable.DAMAGED)


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
