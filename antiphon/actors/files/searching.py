"""Searching in files: by words in the store and by meaning in the index, at the same time, and what
either finds put in one order.

Keeps the rule that a search is never for nothing: while nobody can search by meaning, words have to
do, and that is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import structlog
import trio

from antiphon.actors.files.tools import FileTools
from antiphon.actors.files.vectors import StoreVectors
from antiphon.document_records import FoundChunk, VectorStoreStatus
from antiphon.embedding import Neighbour, Scope
from antiphon.errors import (
    EmbeddingUnavailable,
    InvalidRequest,
    RecordNotFound,
    StoreError,
)
from antiphon.ids import FileId, UserId, VectorStoreId
from antiphon.ranking import HybridRanker, Ranked, averaged
from antiphon.sources import FileSearch, Found, Ranking, matches
from antiphon.storage import Store

log = structlog.get_logger(__name__)

_CANDIDATES = 50
"""Of each kind: what comes later in both isn't worth being looked at."""
_TOUCH_MS = 60_000
"""How exactly it is known when a vector store was last searched: they expire in days, and a search
need not be a write."""
_LONGEST_QUESTION = 4000
"""Characters: its beginning and its end. People ask before or after what they paste."""

Key = tuple[FileId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one search looks: in these vector stores, or in these files."""

    user: UserId
    stores: tuple[VectorStoreId, ...]
    scopes: tuple[Scope, ...]
    only: frozenset[FileId] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """What may answer a question; `texts` are those that words have found."""

    ranked: Sequence[Ranked]
    texts: Sequence[FoundChunk]
    is_by_text: bool


class Searcher:
    """Of one server."""

    def __init__(self, tools: FileTools, ranker: HybridRanker, vectors: StoreVectors) -> None:
        self._tools = tools
        self._ranker = ranker
        self._vectors = vectors

    async def search(
        self,
        user: UserId,
        search: FileSearch,
        queries: Sequence[str],
        param: str,
        *,
        is_one: bool = False,
    ) -> tuple[Found, ...]:
        """As the port says; `param` is where the request names the vector stores. With `is_one` all
        the queries are one question, see `find`."""
        place = await self._tools.store.run(lambda store: self._place(store, user, search, param))
        if place.only is not None and not place.only:
            return ()
        most = search.most or self._tools.settings().results
        return await self.find(place, queries, most, search.ranking, is_one=is_one)

    async def find(
        self,
        place: Place,
        queries: Sequence[str],
        most: int,
        ranking: Ranking,
        *,
        is_one: bool = False,
    ) -> tuple[Found, ...]:
        """Of several questions each piece counts by its best score; where they are one that is
        asked in several ways, by its mean. Raises StoreError."""
        asked: list[Sequence[str]] = [queries] if is_one else [[query] for query in queries]
        answers = [await self._find(place, each, most, ranking) for each in asked]
        best: dict[Key, Found] = {}
        for found in chain.from_iterable(answers):
            key = found.file, found.number
            if key not in best or found.score > best[key].score:
                best[key] = found
        ordered = sorted(best.values(), key=lambda each: -each.score)
        return tuple(each for each in ordered if each.score >= ranking.threshold)[:most]

    async def _place(self, store: Store, user: UserId, search: FileSearch, param: str) -> Place:
        scopes: list[Scope] = []
        used: dict[VectorStoreId, int] = {}
        now_ms = self._tools.now_ms()
        for id in search.stores:
            found = await store.vector_store(user, id)
            if found is None:
                raise RecordNotFound("vector store", id, param)
            if found.status(now_ms) is VectorStoreStatus.EXPIRED:
                raise InvalidRequest(
                    f"Vector store '{id}' has expired.", param, "vector_store_expired"
                )
            scopes.append(Scope(key=id, revision=found.revision))
            if now_ms - found.last_active_ms > _TOUCH_MS:
                used[id] = now_ms
        if used:
            await store.touch_vector_stores(used)
        only: frozenset[FileId] | None = None
        if search.filter is not None:
            files = await store.search_files(user, search.stores)
            only = frozenset(each.file for each in files if matches(search.filter, each.attributes))
        return Place(user=user, stores=search.stores, scopes=tuple(scopes), only=only)

    async def _find(
        self, place: Place, ways: Sequence[str], most: int, ranking: Ranking
    ) -> list[Found]:
        """What answers one question, which is asked in these ways."""
        began = trio.current_time()
        candidates = [await self._candidates(place, shortened(each), ranking) for each in ways]
        ranked = averaged([each.ranked for each in candidates])
        texts = [text for each in candidates for text in each.texts]
        found = await self._filled(place, ranked[:most], texts)
        is_by_text = any(each.is_by_text for each in candidates)
        outcome = "by_text" if is_by_text else ("found" if found else "nothing")
        self._tools.telemetry.files_searched(outcome, trio.current_time() - began)
        return found

    async def _candidates(self, place: Place, question: str, ranking: Ranking) -> _Candidates:
        texts: list[FoundChunk] = []
        neighbours: list[Neighbour] = []
        failures: list[StoreError] = []
        is_by_text = False

        async def by_words() -> None:
            try:
                texts.extend(await self._by_words(place, question))
            except StoreError as error:
                failures.append(error)  # not out of a nursery, which would wrap it

        async with trio.open_nursery() as nursery:
            nursery.start_soon(by_words)
            try:
                neighbours += await self._by_meaning(place, question)
            except (EmbeddingUnavailable, StoreError) as error:
                log.warning("search_by_text_alone", reason=str(error))
                is_by_text = True
        if failures:
            raise failures[0]
        ranked = self._ranker.ranked(texts, neighbours, text_share=ranking.text_share)
        return _Candidates(ranked=ranked, texts=texts, is_by_text=is_by_text)

    async def _by_words(self, place: Place, question: str) -> Sequence[FoundChunk]:
        terms = self._ranker.terms(question)
        if not terms:
            return ()
        return await self._tools.store.run(
            lambda store: store.search_text(
                place.user, place.stores, terms, _CANDIDATES, files=place.only
            )
        )

    async def _by_meaning(self, place: Place, question: str) -> Sequence[Neighbour]:
        """Raises EmbeddingUnavailable, also where it takes too long."""
        for scope in place.scopes:
            self._vectors.belongs(scope, place.user)
        seconds = self._tools.settings().search_s
        with trio.move_on_after(seconds):
            return await self._tools.embedding.nearest(
                question, place.scopes, _CANDIDATES, only=place.only
            )
        raise EmbeddingUnavailable(f"no answer within {seconds:g} s")

    async def _filled(
        self, place: Place, ranked: Sequence[Ranked], texts: Sequence[FoundChunk]
    ) -> list[Found]:
        """With their texts, which the index doesn't know. What is gone meanwhile is left out."""
        known = {(each.file, each.chunk.number): each for each in texts}
        missing = [key for each in ranked if (key := (each.file, each.number)) not in known]
        if missing:
            chunks = await self._tools.store.run(
                lambda store: store.chunks(place.user, place.stores, missing)
            )
            known |= {(each.file, each.chunk.number): each for each in chunks}
        return [
            replace(found_of(chunk), score=each.score)
            for each in ranked
            if (chunk := known.get((each.file, each.number))) is not None
        ]


def found_of(chunk: FoundChunk) -> Found:
    """A piece as everybody else sees it."""
    return Found(
        file=chunk.file,
        filename=chunk.filename,
        score=0.0,
        text=chunk.chunk.text,
        attributes=chunk.attributes,
        number=chunk.chunk.number,
        headings=chunk.chunk.headings,
        page=chunk.chunk.page,
    )


def shortened(question: str) -> str:
    """The ends of a long one."""
    if len(question) <= _LONGEST_QUESTION:
        return question
    half = _LONGEST_QUESTION // 2
    return f"{question[:half]}\n{question[-half:]}"
