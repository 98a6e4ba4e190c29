"""Which chunks a search by words looks at: the database says which have a word, and the rarest
words decide, so that a search costs as much in many chunks as in few.
"""

import heapq
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from antiphon.ids import UserId
from antiphon.persistence.document_schema import PLACE_BITS
from antiphon.persistence.port import Transaction, statement
from antiphon.persistence.words import owner

ROWS = 6_000
"""Chunks are found by the rarest words, as long as no more than these have them; the others only
count where those are, and how many more chunks have one isn't counted. Each costs half a
microsecond; with as many as there are, a search in 100,000 takes thirty times as long, and finds
hardly more (docs/files.md)."""
_SPANS = 4
"""Places that are looked at apart: a vector store's files were mostly put in together, and what
lies between them is somebody else's, or of no interest here."""

_IS_SHARED = statement(
    "search.is_shared",
    """SELECT EXISTS (SELECT 1 FROM documents WHERE number >= $1 AND number <= $2
        AND user_id <> $3)""",
)
# Each word is a string of FTS5's own, in which nothing is syntax. `$2` are words that all must
# have. Without `+ 0`, PostgreSQL goes through all places of the range rather than through those
# that have the word.
_COUNTS = statement(
    "search.counts",
    """SELECT t.value, (SELECT count(*) FROM (SELECT 1 FROM chunk_words
            WHERE string_to_array(words, ' ') @> array_append(CAST($2 AS TEXT[]), t.value)
            AND place + 0 >= $3 AND place + 0 < $4 LIMIT $5) c)
        FROM unnest(CAST($1 AS TEXT[])) t (value)""",
    sqlite="""SELECT t.value, (SELECT count(*) FROM (SELECT 1 FROM chunk_index
            WHERE chunk_index MATCH
                (SELECT coalesce(group_concat('"' || value || '" ', ''), '') FROM json_each($2))
                || '"' || t.value || '"'
            AND rowid >= $3 AND rowid < $4 LIMIT $5))
        FROM json_each($1) t""",
)
# All places of a word in one row: to hand over thousands of rows takes five times as long.
_WITH_WORDS = statement(
    "search.with_words",
    """SELECT t.value, (SELECT string_agg(CAST(c.place AS TEXT), ',') FROM (
            SELECT place FROM chunk_words
            WHERE string_to_array(words, ' ') @> array_append(CAST($2 AS TEXT[]), t.value)
            AND place + 0 >= $3 AND place + 0 < $4 LIMIT $5) c)
        FROM unnest(CAST($1 AS TEXT[])) t (value)""",
    sqlite="""SELECT t.value, (SELECT group_concat(c.rowid) FROM (SELECT rowid FROM chunk_index
            WHERE chunk_index MATCH
                (SELECT coalesce(group_concat('"' || value || '" ', ''), '') FROM json_each($2))
                || '"' || t.value || '"'
            AND rowid >= $3 AND rowid < $4 LIMIT $5) c)
        FROM json_each($1) t""",
)
_WITH_ALL = statement(
    "search.with_all",
    """SELECT place FROM chunk_words WHERE string_to_array(words, ' ') @> CAST($1 AS TEXT[])
        AND place + 0 >= $2 AND place + 0 < $3 ORDER BY place + 0 LIMIT $4""",
    sqlite="""SELECT rowid FROM chunk_index WHERE chunk_index MATCH
        (SELECT '"' || group_concat(value, '" "') || '"' FROM json_each($1))
        AND rowid >= $2 AND rowid < $3 LIMIT $4""",
)


@dataclass(slots=True)
class Candidates:
    """Chunks by their places, and how much each word of the search is worth."""

    chunks: int
    """Of all that is searched."""
    worth: dict[str, float] = field(default_factory=dict)
    found: dict[int, float] = field(default_factory=dict)
    """What the words together are worth by which each was found."""

    def add(self, term: str, places: Sequence[int]) -> None:
        worth = self.value(term, len(places))
        for place in places:
            self.found[place] = self.found.get(place, 0.0) + worth

    def value(self, term: str, count: int) -> float:
        """So many chunks have the word."""
        count = min(count, self.chunks)
        worth = math.log(1 + (self.chunks - count + 0.5) / (count + 0.5))
        self.worth[term] = worth
        return worth

    def best(self, most: int) -> list[int]:
        """Equal ones in the order of their places, so that it is always the same."""
        best = heapq.nsmallest(most, ((-worth, place) for place, worth in self.found.items()))
        return [place for _, place in best]


@dataclass(frozen=True, slots=True)
class _Span:
    """Places from `first` to before `end`, all with the words `mine`."""

    first: int
    end: int
    mine: list[str]


async def candidates(
    tx: Transaction, user: UserId, numbers: Collection[int], chunks: int, wanted: Sequence[str]
) -> Candidates:
    """Of the documents with these numbers, which have so many chunks together."""
    found = Candidates(chunks)
    spans = [await _span(tx, user, first, last) for first, last in _runs(sorted(numbers))]
    counts = dict.fromkeys(wanted, 0)
    for span in spans:
        rows = await tx.fetch(_COUNTS, list(wanted), span.mine, span.first, span.end, ROWS)
        for term, count in rows:
            counts[term] += count
    rare: list[str] = []
    common: list[str] = []
    total = 0
    for term in sorted(counts, key=lambda term: (counts[term], term)):
        total += counts[term]
        (rare if total <= ROWS else common).append(term)
    places: dict[str, list[int]] = {term: [] for term in rare}
    for span in spans if rare else ():
        for term, listed in await tx.fetch(
            _WITH_WORDS, rare, span.mine, span.first, span.end, ROWS
        ):
            each = map(int, listed.split(",")) if listed else ()
            places[term] += [place for place in each if place >> PLACE_BITS in numbers]
    for term in rare:
        found.add(term, places[term])
    for term in common:
        found.value(term, counts[term])
    if not found.found and common:
        await _find_common(tx, found, numbers, spans, common)
    return found


async def _find_common(
    tx: Transaction,
    found: Candidates,
    numbers: Collection[int],
    spans: Sequence[_Span],
    common: Sequence[str],
) -> None:
    """Where all words are common: chunks that have all of them, else some that have the rarest."""
    for together in (common, common[:1]):
        for span in spans:
            words = [*span.mine, *together]
            for (place,) in await tx.fetch(_WITH_ALL, words, span.first, span.end, ROWS):
                if place >> PLACE_BITS in numbers:
                    found.found[place] = 0.0
        if found.found:
            return


async def _span(tx: Transaction, user: UserId, first: int, last: int) -> _Span:
    # The word for whose they are costs as much as all the others, and is only needed where the
    # places in between aren't all the user's own.
    shared = await tx.fetchrow(_IS_SHARED, first, last, user)
    is_shared = shared is not None and bool(shared[0])
    mine = [owner(user)] if is_shared else []
    return _Span(first << PLACE_BITS, (last + 1) << PLACE_BITS, mine)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run, cut where the widest gaps are."""
    pairs = enumerate(itertools.pairwise(numbers), start=1)
    gaps = heapq.nlargest(_SPANS - 1, ((after - before, at) for at, (before, after) in pairs))
    cuts = sorted(at for width, at in gaps if width > 1)
    for start, end in zip([0, *cuts], [*cuts, len(numbers)], strict=True):
        yield numbers[start], numbers[end - 1]
