"""How a document is cut into chunks: at its headings, then between paragraphs, sentences and rows,
and only where one of these is too long, in the middle of it. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from antiphon.documents.reader_wire import Cut
from antiphon.documents.units import LEAD_SHARE, Unit, estimated_tokens, units_of
from antiphon.reading_files import Block, BlockKind, Chunking, Heading

_SMALL_SHARE = 0.25
"""Of a chunk: a section of less is put together with the next one, since a heading with a line
under it is found by little."""
_FULL_SHARE = 0.5
"""From here on a chunk ends at the end of a paragraph, when the next one doesn't fit whole."""


def cut(
    text: str,
    blocks: Sequence[Block],
    headings: Sequence[Heading],
    page_starts: Sequence[int],
    chunking: Chunking,
) -> Iterator[Cut]:
    """The document's chunks, in order. Together they are all of it."""
    starts = [heading.start for heading in headings]
    paths = _paths(headings)
    units = list(units_of(text, blocks, starts, chunking.max_tokens))
    leads = _leads(text, blocks, chunking)
    for first, last in _ranges(units, chunking, leads):
        group = units[first:last]
        start, end = group[0].start, group[-1].end
        # Empty lines between two chunks are of neither.
        start += len(text[start:end]) - len(text[start:end].lstrip("\n"))
        end = start + len(text[start:end].rstrip())
        page = bisect_right(page_starts, start) or None
        yield Cut(
            start=start,
            end=end,
            lead=leads.get(group[0].block),
            path=_common([paths[unit.section] for unit in group]),
            page=page,
        )


def _paths(headings: Sequence[Heading]) -> list[tuple[int, ...]]:
    """What holds after so many headings, as places among them."""
    paths: list[tuple[int, ...]] = [()]
    for place, heading in enumerate(headings):
        above = tuple(at for at in paths[-1] if headings[at].level < heading.level)
        paths.append((*above, place))
    return paths


def _common(paths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """What all of them begin with; of one with others under it, itself."""
    common = paths[0]
    for path in paths[1:]:
        shared = 0
        while shared < min(len(common), len(path)) and common[shared] == path[shared]:
            shared += 1
        common = common[:shared]
    return common


def _leads(text: str, blocks: Sequence[Block], chunking: Chunking) -> dict[int, tuple[int, int]]:
    """For each row but the first, by its block, where its columns' names stand."""
    leads: dict[int, tuple[int, int]] = {}
    columns: tuple[int, int] | None = None
    for number, block in enumerate(blocks):
        if block.kind is BlockKind.COLUMNS:
            short = estimated_tokens(text[block.start : block.end])
            fits = short <= LEAD_SHARE * chunking.max_tokens
            columns = (block.start, block.end) if fits else None
        elif block.kind is not BlockKind.ROW:
            columns = None
        elif columns is not None:
            leads[number] = columns
    return leads


def _ranges(
    units: Sequence[Unit], chunking: Chunking, leads: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Which units are a chunk, as half-open ranges that may overlap; each ends after the one
    before."""
    first = last = 0
    while last < len(units):
        most = chunking.max_tokens
        if units[first].block in leads:
            most -= int(LEAD_SHARE * most)
        last = _end(units, first, last, most)
        yield first, last
        if last < len(units):
            first = _next(units, first, last, chunking)


def _end(units: Sequence[Unit], first: int, before: int, most: int) -> int:
    """Where the chunk that begins at `first` ends: after `before`, where the last one did."""
    tokens = sum(unit.tokens for unit in units[first : before + 1])
    last = before + 1
    while last < len(units):
        unit = units[last]
        begins_section = unit.section != units[last - 1].section
        if begins_section and tokens >= _SMALL_SHARE * most:
            break
        if tokens + unit.tokens > most:
            last = _at_a_block(units, before, last, tokens, most)
            break
        tokens += unit.tokens
        last += 1
    return _without_last_heading(units, before, last)


def _at_a_block(units: Sequence[Unit], before: int, full: int, tokens: int, most: int) -> int:
    """The chunk is full at `full`: where a paragraph ends before that, if it leaves enough."""
    end = full
    while end > before + 1 and tokens >= _FULL_SHARE * most:
        if units[end - 1].block != units[end].block:
            return end
        end -= 1
        tokens -= units[end].tokens
    return full


def _without_last_heading(units: Sequence[Unit], before: int, last: int) -> int:
    """A heading stands before what it is about, so not at a chunk's end."""
    end = last
    while end < len(units) and end > before + 1 and units[end - 1].kind is BlockKind.HEADING:
        end -= 1
    return last if units[end - 1].kind is BlockKind.HEADING else end


def _next(units: Sequence[Unit], first: int, last: int, chunking: Chunking) -> int:
    """Where the next chunk begins: a little before the end of this one, in the same section, if
    that leaves room for what is new."""
    room = min(
        chunking.overlap_tokens,
        int((1 - LEAD_SHARE) * chunking.max_tokens) - units[last].tokens,
    )
    begin = last
    while begin - 1 > first:
        unit = units[begin - 1]
        room -= unit.tokens
        if room < 0 or unit.section != units[last].section or unit.kind is BlockKind.HEADING:
            break
        begin -= 1
    return begin
