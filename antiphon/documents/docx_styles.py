"""Which styles of a DOCX are headings, and of which level, and which are list items: by what they
say, their own name, or the style that they are based on."""

import re
from collections.abc import Iterator, Mapping

from antiphon.documents.xml_parts import Handlers

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
"""Names of built-in styles are English in every language's Word; their ids are not."""
_TEXT_LEVEL = 9
"""What `outlineLvl` says of body text."""
_CHAIN = 20


class Styles:
    """The heading levels of one document's styles, 1 for the widest."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._listed: set[str] = set()
        self._based_on: dict[str, str] = {}
        self._style: str | None = None
        self.handlers = Handlers(self._start, self._end)

    def level(self, style: str) -> int | None:
        """None for a style that isn't a heading's."""
        for name in self._chain(style):
            if name in self._levels:
                level = self._levels[name]
                return level if level <= _TEXT_LEVEL else None
        return None

    def is_listed(self, style: str) -> bool:
        """Whether its paragraphs are items of a list."""
        return not self._listed.isdisjoint(self._chain(style))

    def _chain(self, style: str) -> Iterator[str]:
        """A style, the one that it is based on, and so on; some go in a circle."""
        for _ in range(_CHAIN):
            yield style
            if style not in self._based_on:
                return
            style = self._based_on[style]

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        value = attributes.get("val", "")
        match name:
            case "style":
                self._style = attributes.get("styleId")
            case "name" if self._style is not None:
                if (found := _HEADING.fullmatch(value)) is not None:
                    self._levels.setdefault(self._style, int(found[1]))
                elif value.casefold() == "title":
                    self._levels.setdefault(self._style, 1)
            case "outlineLvl" if self._style is not None and value.isascii() and value.isdigit():
                self._levels[self._style] = int(value[:2]) + 1
            case "numPr" if self._style is not None:
                self._listed.add(self._style)
            case "basedOn" if self._style is not None:
                self._based_on[self._style] = value
            case _:
                pass

    def _end(self, name: str) -> None:
        if name == "style":
            self._style = None
