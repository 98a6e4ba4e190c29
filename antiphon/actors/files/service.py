"""The files' room as whoever composes the tree sees it: its child, and the port that others use
(`retrieval.FileSearching`)."""

from collections.abc import Sequence

from antiphon.actors.files.gathering import Gathering
from antiphon.actors.files.ingestion import Ingestion
from antiphon.actors.files.searching import Searcher
from antiphon.actors.files.tools import FileTools
from antiphon.actors.files.vectors import StoreVectors
from antiphon.ids import UserId
from antiphon.ranking import HybridRanker
from antiphon.retrieval import FilesAsked, Gathered
from antiphon.sources import FileSearch, Found


class FileService:
    """`ingestion` stands in the tree."""

    def __init__(self, tools: FileTools, ranker: HybridRanker, vectors: StoreVectors) -> None:
        self.ingestion = Ingestion(tools)
        self._searcher = Searcher(tools, ranker, vectors)
        self._gathering = Gathering(tools, self._searcher, self.ingestion)

    async def search(
        self, user: UserId, search: FileSearch, queries: Sequence[str]
    ) -> tuple[Found, ...]:
        return await self._searcher.search(user, search, queries, "vector_store_id")

    async def gather(self, asked: FilesAsked) -> Gathered:
        return await self._gathering.gather(asked)

    def files_added(self) -> None:
        self.ingestion.look()
