"""HTML as a browser would understand it (selectolax, with the parser Lexbor), less what a browser
would not show: scripts, templates, and what is hidden, where instructions to models like to be."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from antiphon.documents.building import DocumentBuilder, flat
from antiphon.documents.decoding import decode
from antiphon.documents.refusing import refuse
from antiphon.reading_files import BlockKind, Unreadable

MEDIA_TYPE = "text/html"
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_DEPTH = 5_000
"""Tags within tags; real pages have dozens."""
_UNSEEN = frozenset(
    {"head", "script", "style", "noscript", "template", "svg", "iframe", "object", "datalist"}
)
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header"),
        *("hgroup", "hr", "html", "legend", "main", "menu", "nav", "ol", "optgroup", "option"),
        *("p", "search", "section", "select", "summary", "table", "tbody", "tfoot", "thead"),
        *("ul", "caption", "colgroup", "li", "tr", "td", "th", "pre"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    }
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN_STYLE = re.compile(
    r"(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:\D|$)|opacity\s*:\s*0(?:;|$))",
    re.IGNORECASE,
)
_LINK_SIGNS = " \n¶"
"""What generators of documentation put behind a heading, for people to link to it."""
_BREAK = "\0"
"""In a text that is being put together; no text of a page has it (HTML, 13.2.5.1)."""
_PROGRESS_EVERY = 20_000


def read_html(data: bytes, declared: str | None, builder: DocumentBuilder) -> None:
    """Raises UnreadableFile."""
    meta = _DECLARED.search(data[:4096])
    # What came with the file counts before what is in it (HTML, 13.2.3.2).
    text, notices = decode(data, declared or (meta[1].decode("ascii") if meta else None))
    for notice in notices:
        builder.notice(notice)
    # As UTF-8, whatever the page says of itself: that was heeded above.
    parser = LexborHTMLParser(text.encode("utf-8", "replace"))
    builder.advanced(0.5)
    title = parser.css_first("head > title")
    builder.title = flat(title.text())[:200] or None if title is not None else None
    if parser.root is not None:
        _Walk(builder).run(parser.root)
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)


class _Walk:
    """The text of the tags around the current place, until one of them ends it."""

    def __init__(self, builder: DocumentBuilder) -> None:
        self._builder = builder
        self._words: list[str] = []
        self._cells: list[list[str] | None] = []
        """Of each table around this place, the cells of its row; None before its first row."""
        self._rows: list[int] = []
        self._listed = False
        self._code = 0

    def run(self, root: LexborNode) -> None:
        for seen, (node, is_start) in enumerate(_steps(root)):
            tag = node.tag or ""
            if tag == "-text":
                self._words.append(node.text_content or "")
            elif is_start:
                self._start(tag)
            else:
                self._end(tag)
            if seen % _PROGRESS_EVERY == 0:
                # How many will come, nobody knows yet.
                self._builder.advanced(0.5 + 0.4 * (1 - 1 / (1 + seen / 200_000)))
        self._flush()

    def _start(self, tag: str) -> None:
        if tag == "br":
            self._words.append(_BREAK)
        if tag not in _BLOCKS:
            return
        if not self._in_cell:
            self._flush()
        elif tag not in {"td", "th", "tr"}:
            self._words.append(" ")
        match tag:
            case "li":
                self._listed = True
            case "pre":
                self._code += 1
            case "table":
                self._cells.append(None)
                self._rows.append(0)
            case "tr" if self._cells:
                self._cells[-1] = []
            case "td" | "th" if self._cells and len(self._cells) == 1:
                self._words = []
            case _:
                pass

    def _end(self, tag: str) -> None:
        if tag not in _BLOCKS:
            return
        match tag:
            case "td" | "th" if len(self._cells) == 1 and self._cells[0] is not None:
                self._cells[0].append(self._taken().replace(_BREAK, " "))
            case "tr" if len(self._cells) == 1 and self._cells[0] is not None:
                self._row(self._cells[0])
                self._cells[0] = None
            case "table" if self._cells:
                self._cells.pop()
                self._rows.pop()
            case _ if self._in_cell:
                # A table within a cell, a paragraph within it: parts of that cell's text.
                self._words.append(" ")
                if tag == "pre":
                    self._code = max(0, self._code - 1)
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                text = self._taken().replace(_BREAK, " ").rstrip(_LINK_SIGNS)
                self._builder.heading(_HEADINGS[tag], text)
            case "pre":
                self._builder.add(BlockKind.CODE, self._taken().replace(_BREAK, "\n"))
                self._code = max(0, self._code - 1)
            case _:
                self._flush()
                if tag == "li":
                    self._listed = False

    @property
    def _in_cell(self) -> bool:
        return bool(self._cells) and self._cells[0] is not None

    def _row(self, cells: list[str]) -> None:
        if len(cells) == 1:
            # One column is a layout, not a table.
            self._builder.add(BlockKind.PARAGRAPH, flat(cells[0]))
        elif cells:
            self._builder.row(cells, first=self._rows[0] == 0)
        self._rows[0] += 1

    def _taken(self) -> str:
        words, self._words = "".join(self._words), []
        return words

    def _flush(self) -> None:
        text = self._taken()
        if self._code:
            self._builder.add(BlockKind.CODE, text.replace(_BREAK, "\n"))
            return
        # Line ends of the source mean nothing; those that `br` made do.
        text = "\n".join(map(flat, text.split(_BREAK))).strip("\n")
        if self._listed and text:
            self._builder.add(BlockKind.ITEM, f"- {text}")
        else:
            self._builder.add(BlockKind.PARAGRAPH, text)


def _steps(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every tag that is shown at its start and its end, and every text; without recursion, which
    depth would break."""
    node: LexborNode = root
    depth = 0
    while True:
        if node.tag == "-text":
            yield node, True
        elif _is_shown(node):
            yield node, True
            child = node.first_child
            if child is not None:
                depth += 1
                if depth > _DEPTH:
                    refuse(Unreadable.TOO_DEEP)
                node = child
                continue
            yield node, False
        while node.next is None:
            parent = node.parent
            if parent is None or depth == 0:
                return
            depth -= 1
            node = parent
            yield node, False
        if depth == 0:
            return
        node = node.next


def _is_shown(node: LexborNode) -> bool:
    tag = node.tag or "-"
    if tag[0] in "-!" or tag in _UNSEEN:
        return False
    attributes = node.attributes
    if not attributes:
        return True
    if "hidden" in attributes:
        return False
    style = attributes.get("style")
    return not (style and _HIDDEN_STYLE.search(style))
