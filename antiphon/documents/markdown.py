"""Markdown (CommonMark and tables) by markdown-it: where its blocks are. The text stays as it was
written, since models read Markdown, too."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from antiphon.documents.building import DocumentBuilder, clean
from antiphon.documents.refusing import refuse
from antiphon.reading_files import BlockKind, Unreadable

MEDIA_TYPE = "text/markdown"
_FRONT_MATTER = re.compile(r"\A---\n(.{0,20000}?)\n(?:---|\.\.\.)\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.{1,200}?)[\"']?\s*$", re.MULTILINE)


def read_markdown(text: str, builder: DocumentBuilder) -> None:
    """Raises UnreadableFile."""
    text = clean(text)
    front = _FRONT_MATTER.match(text)
    if front is not None:
        if (title := _FRONT_TITLE.search(front[1])) is not None:
            builder.title = title[1]
        builder.add(BlockKind.CODE, front[0])
        text = text[front.end() :]
    # Without the inline rules: what is bold doesn't matter here, and they take most of the time.
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    lines = text.split("\n")
    tokens = parser.parse(text)
    depth = 0
    end = 0
    for at, token in enumerate(tokens):
        if token.nesting == -1:
            depth -= 1
        if depth == 0 and token.nesting >= 0 and token.map is not None:
            first, end = token.map
            _add(builder, token, tokens[at + 1 : at + 2], lines[first:end])
            builder.advanced(0.9 * end / max(1, len(lines)))
        if token.nesting == 1:
            depth += 1
    if not builder.blocks:
        refuse(Unreadable.NO_TEXT)
    if builder.title is None:
        first_heading = next((one.text for one in builder.headings if one.level == 1), None)
        builder.title = first_heading


def _add(builder: DocumentBuilder, token: Token, inner: list[Token], lines: list[str]) -> None:
    source = "\n".join(lines)
    match token.type:
        case "heading_open":
            builder.heading(int(token.tag[1:]), inner[0].content if inner else source)
        case "fence" | "code_block" | "html_block":
            builder.add(BlockKind.CODE, source)
        case "table_open":
            for number, line in enumerate(lines):
                if line.strip():
                    builder.add(BlockKind.COLUMNS if number == 0 else BlockKind.ROW, line)
        case "bullet_list_open" | "ordered_list_open":
            for item in _items(lines):
                builder.add(BlockKind.ITEM, item)
        case "hr":
            pass
        case _:
            builder.add(BlockKind.PARAGRAPH, source)


def _items(lines: list[str]) -> list[str]:
    """A list cut where a line of its outermost level begins."""
    items: list[list[str]] = []
    for line in lines:
        if line[:1].strip() or not items:
            items.append([line])
        else:
            items[-1].append(line)
    return ["\n".join(item) for item in items]
