"""The pieces that a text may be cut between: sentences, rows, lines of code. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from antiphon.reading_files import Block, BlockKind

_SENTENCE_END = re.compile(
    # Where a run begins, and without ever going back: a million full stops are looked at once.
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|(?<![。！？])[。！？]++[」』”]?+\s*+|\n"
)
_WORD = re.compile(
    r"(?P<wide>[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef])"
    r"|(?P<letters>[^\W\d_]+)|(?P<digits>\d+)|(?P<other>[^\w\s]|_)"
)
_LETTERS = 6
"""Of a word, for one token: English words are mostly one, longer ones are cut."""
_OTHER_LETTERS = 2
"""Where a word has letters beyond ASCII: other languages are cut smaller."""
_DIGITS = 3

LEAD_SHARE = 0.25
"""Of a chunk, the most that the columns' names may take, said again before later rows."""


def estimated_tokens(text: str) -> int:
    """About how many tokens a model sees in the text. Vocabularies differ by more than this
    errs."""
    tokens = 0
    for found in _WORD.finditer(text):
        size = found.end() - found.start()
        match found.lastgroup:
            case "letters" if found[0].isascii():
                tokens += -(-size // _LETTERS)
            case "letters":
                tokens += -(-size // _OTHER_LETTERS)
            case "digits":
                tokens += -(-size // _DIGITS)
            case _:
                tokens += 1
    return tokens


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that is best kept whole. `block` is the number of the block that it is of, `section`
    how many headings come before its end."""

    start: int
    end: int
    tokens: int
    block: int
    section: int
    kind: BlockKind


def units_of(
    text: str, blocks: Sequence[Block], heading_starts: Sequence[int], most: int
) -> Iterator[Unit]:
    """All of the text's units, none of more than `most` tokens."""
    for number, block in enumerate(blocks):
        section = bisect_right(heading_starts, block.start)
        room = most - int(LEAD_SHARE * most) if block.kind is BlockKind.ROW else most
        for start, end in _spans(text, block):
            tokens = estimated_tokens(text[start:end])
            if tokens <= room:
                yield Unit(start, end, tokens, number, section, block.kind)
                continue
            for first, last in _smaller(text, start, end, room):
                size = estimated_tokens(text[first:last])
                yield Unit(first, last, size, number, section, block.kind)


def _spans(text: str, block: Block) -> Iterator[tuple[int, int]]:
    match block.kind:
        case BlockKind.HEADING | BlockKind.ROW | BlockKind.COLUMNS:
            yield block.start, block.end
        case BlockKind.CODE:
            yield from _cut(text, block, re.compile("\n"))
        case BlockKind.PARAGRAPH | BlockKind.ITEM:
            yield from _cut(text, block, _SENTENCE_END)


def _cut(text: str, block: Block, end: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = block.start
    for found in end.finditer(text, block.start, block.end):
        yield start, found.end()
        start = found.end()
    if start < block.end:
        yield start, block.end


def _smaller(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut after as many words as are not too many, or in the middle of what has no spaces."""
    tokens = 0
    first = start
    for found in re.compile(r"\S{1,64}\s*").finditer(text, start, end):
        size = estimated_tokens(found[0])
        if tokens + size > most and found.start() > first:
            yield first, found.start()
            first, tokens = found.start(), 0
        tokens += size
    if first < end:
        yield first, end
