"""Units of work that find chunks. The database says which chunks have a word; what they are worth
is counted here, with the numbers of what is searched alone: so no score depends on what others have
stored, and both databases find the same in the same order.
"""

import heapq
from collections.abc import Collection, Mapping, Sequence

from antiphon.document_records import FoundChunk, SearchFile
from antiphon.ids import DocumentId, FileId, UserId, VectorStoreId
from antiphon.persistence import codec, document_codec
from antiphon.persistence.candidates import candidates
from antiphon.persistence.document_schema import PLACE_BITS
from antiphon.persistence.port import Row, Transaction, statement
from antiphon.persistence.words import repetitions, terms

_TERMS = 64
"""Of a query that count: a person's has few, and a whole page of text must not cost a second."""
_WEIGHED = 300
"""How many chunks, those with the rarest words first, are weighed by how often they have them."""
_K1, _B = 1.2, 0.75
"""BM25's own numbers, as everybody has them (Robertson and Zaragoza, 2009)."""

_FIELDS = "f.filename, v.attributes, d.id, d.number, d.chunks, d.words, d.model"
_IN_STORES = statement(
    "search.files_of_stores",
    f"""SELECT v.file_id, v.store_id, {_FIELDS}
        FROM vector_stores s JOIN vector_store_files v ON v.store_id = s.id
        JOIN documents d ON d.id = v.document_id JOIN files f ON f.id = v.file_id
        WHERE s.id = ANY($1) AND s.user_id = $2 AND s.expired = 0 AND d.status = 'ready'""",
)
_ALONE = statement(
    "search.files",
    f"""SELECT v.file_id, NULL, {_FIELDS.replace("v.attributes", "'{}'")}
        FROM file_documents v
        JOIN documents d ON d.id = v.document_id JOIN files f ON f.id = v.file_id
        WHERE v.file_id = ANY($1) AND f.user_id = $2 AND d.status = 'ready'""",
)
_WORDS = statement(
    "search.words", "SELECT place, length, repeated, words FROM chunk_words WHERE place = ANY($1)"
)
_CHUNKS = statement(
    "search.chunks", f"SELECT {document_codec.CHUNK} FROM chunks c WHERE c.place = ANY($1)"
)
_ALL_CHUNKS = statement(
    "search.all_chunks",
    f"""SELECT {document_codec.CHUNK} FROM chunks c WHERE c.place >= $1 AND c.place < $2
        ORDER BY c.place""",
)
_VECTORS = statement(
    "search.vectors",
    "SELECT document_id, vectors FROM document_vectors WHERE document_id = ANY($1)",
)


class _Place:
    """A file that is searched in, read as far as it is needed: of thousands a few are shown."""

    __slots__ = ("_row", "chunks", "document", "id", "model", "number", "words")

    def __init__(self, row: Row) -> None:
        self._row = row
        self.id, self.document, self.number, self.chunks, self.words, self.model = (
            row[0],
            *row[4:],
        )

    @property
    def file(self) -> SearchFile:
        _, _, filename, attributes, *_ = self._row
        return SearchFile(
            file=FileId(self.id),
            filename=filename,
            attributes={} if attributes == "{}" else codec.from_json(attributes),
            document=DocumentId(self.document),
            chunks=self.chunks,
            model=self.model,
        )

    @property
    def store(self) -> VectorStoreId | None:
        store = self._row[1]
        return None if store is None else VectorStoreId(store)


async def files(
    tx: Transaction,
    user: UserId,
    stores: Sequence[VectorStoreId],
    only: Collection[FileId] | None,
) -> tuple[SearchFile, ...]:
    return tuple(place.file for place in await _searched(tx, user, stores, only))


async def text(
    tx: Transaction,
    user: UserId,
    stores: Sequence[VectorStoreId],
    asked: Sequence[str],
    limit: int,
    only: Collection[FileId] | None,
) -> tuple[FoundChunk, ...]:
    # The same content in two files is found in the first of them.
    searched = {each.number: each for each in reversed(await _searched(tx, user, stores, only))}
    wanted = terms(asked, _TERMS)
    if not searched or not wanted or limit < 1:
        return ()
    size = sum(each.chunks for each in searched.values())
    looked_at = await candidates(tx, user, searched.keys(), size, wanted)
    length = sum(each.words for each in searched.values()) / max(size, 1) or 1.0
    places = looked_at.best(max(_WEIGHED, limit))
    weighed = await _weighed(tx, looked_at.worth, places, length)
    best = heapq.nsmallest(limit, weighed, key=lambda place: (-weighed[place], place))
    return await _found(tx, searched, best, weighed)


async def chunks(
    tx: Transaction,
    user: UserId,
    stores: Sequence[VectorStoreId],
    wanted: Sequence[tuple[FileId, int]],
) -> tuple[FoundChunk, ...]:
    only = {file for file, _ in wanted}
    searched = await _searched(tx, user, stores, only)
    by_file = {each.id: each for each in searched}
    places = [
        (by_file[file].number << PLACE_BITS) + number
        for file, number in wanted
        if file in by_file and 0 <= number < by_file[file].chunks
    ]
    # Not by number alone: two files may have the same document.
    rows = await _rows(tx, places)
    found = []
    for file, number in wanted:
        place = by_file.get(file)
        if place is None:
            continue
        row = rows.get((place.number << PLACE_BITS) + number)
        if row is not None:
            found.append(_found_chunk(place, row, 0.0))
    return tuple(found)


async def file_chunks(
    tx: Transaction, user: UserId, store: VectorStoreId, file: FileId
) -> tuple[FoundChunk, ...] | None:
    for place in await _searched(tx, user, [store], [file]):
        first, end = place.number << PLACE_BITS, (place.number + 1) << PLACE_BITS
        rows = await tx.fetch(_ALL_CHUNKS, first, end)
        return tuple(_found_chunk(place, row, 0.0) for row in rows)
    return None


async def vectors(
    tx: Transaction,
    user: UserId,
    stores: Sequence[VectorStoreId],
    only: Collection[FileId] | None,
    model: str,
) -> dict[FileId, bytes]:
    searched = [each for each in await _searched(tx, user, stores, only) if each.model == model]
    wanted = sorted({each.document for each in searched})
    by_document: Mapping[str, bytes] = {
        row[0]: bytes(row[1]) for row in (await tx.fetch(_VECTORS, wanted) if wanted else ())
    }
    return {
        FileId(each.id): by_document[each.document]
        for each in searched
        if each.document in by_document
    }


async def _searched(
    tx: Transaction,
    user: UserId,
    stores: Sequence[VectorStoreId],
    only: Collection[FileId] | None,
) -> list[_Place]:
    """Each file once: from the first of the stores that has it."""
    if stores:
        rank = {id: number for number, id in enumerate(stores)}
        rows = sorted(
            await tx.fetch(_IN_STORES, list(dict.fromkeys(stores)), user),
            key=lambda row: (rank[row[1]], row[5], row[0]),
        )
        if only is not None:
            rows = [row for row in rows if row[0] in only]
    else:
        rows = sorted(
            await tx.fetch(_ALONE, list(only or ()), user), key=lambda row: (row[5], row[0])
        )
    by_file: dict[str, _Place] = {}
    for row in rows:
        by_file.setdefault(row[0], _Place(row))
    return list(by_file.values())


async def _weighed(
    tx: Transaction, worth: Mapping[str, float], places: Sequence[int], average: float
) -> dict[int, float]:
    """As a share of what a chunk of average length is worth that has each word once."""
    possible = sum(worth.values())
    scores = {}
    for place, length, repeated, words in await tx.fetch(_WORDS, list(places)) if places else ():
        times = {} if repeated == "{}" else repetitions(repeated)
        damped = _K1 * (1 - _B + _B * length / average)
        around = f" {words} "
        scores[place] = (
            sum(
                worth[term] * count * (_K1 + 1) / (count + damped)
                for term in worth
                if f" {term} " in around
                for count in (times.get(term, 1),)
            )
            / possible
        )
    return scores


async def _found(
    tx: Transaction,
    searched: Mapping[int, _Place],
    places: Sequence[int],
    scores: Mapping[int, float],
) -> tuple[FoundChunk, ...]:
    rows = await _rows(tx, places)
    return tuple(
        _found_chunk(searched[place >> PLACE_BITS], rows[place], scores[place])
        for place in places
        if place in rows
    )


async def _rows(tx: Transaction, places: Sequence[int]) -> dict[int, Row]:
    return {row[0]: row for row in await tx.fetch(_CHUNKS, list(places))} if places else {}


def _found_chunk(place: _Place, row: Row, score: float) -> FoundChunk:
    file = place.file
    return FoundChunk(
        file=file.file,
        filename=file.filename,
        chunk=document_codec.chunk(row, row[0] - (place.number << PLACE_BITS)),
        attributes=file.attributes,
        store=place.store,
        score=score,
    )
