"""A library as the server has one, without the server: files that are read, embedded, stored and
searched in by its own parts, for the figures of `bench.retrieval`."""

import hashlib
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from antiphon.actors.embedding.service import EmbeddingService
from antiphon.actors.files.job import embedded_text
from antiphon.actors.files.searching import Searcher
from antiphon.actors.files.tools import FileTools
from antiphon.actors.files.vectors import StoreVectors
from antiphon.document_records import NewStoreFile, ReadyDocument, VectorStore
from antiphon.embedders import Embedders
from antiphon.embedding_frames import DIMENSIONS, MODEL
from antiphon.files_settings import FilesSettings
from antiphon.ids import LOCAL_USER, FileId, NodeId, VectorStoreId
from antiphon.ports import Contents
from antiphon.ranking import HybridRanker
from antiphon.readers import Readers
from antiphon.reading_files import EXTRACTOR, Chunking, ReadDocument, TextChunk
from antiphon.records import File
from antiphon.settings import Settings
from antiphon.sources import FileSearch, Found
from antiphon.storage import Store
from antiphon.testing.embedding import embedding
from antiphon.testing.open_store import DirectAccess, direct_store
from antiphon.testing.telemetry import NullTelemetry

_NODE = NodeId("node_bench")
_NOW_MS = 1_700_000_000_000
_LEASE_MS = _NOW_MS + 86_400_000
_AT_ONCE = 32

Read = Callable[[FileId], ReadDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Vector stores of one user."""

    store: DirectAccess
    embedding: EmbeddingService
    searcher: Searcher
    readers: Readers

    async def search(self, id: VectorStoreId, *ways: str, most: int) -> tuple[Found, ...]:
        """For one question that is asked in these ways, as the server does."""
        wanted = FileSearch(stores=(id,), most=most)
        return await self.searcher.search(LOCAL_USER, wanted, ways, "tools", is_one=True)

    async def add(
        self, id: VectorStoreId, paths: Sequence[Path], chunking: Chunking
    ) -> dict[FileId, ReadDocument]:
        """A vector store of these files, each read by a reader process."""
        documents: dict[FileId, ReadDocument] = {}
        for path in paths:
            file = FileId(f"file-{id}-{path.stem}")
            documents[file] = await self.readers.read(path, path.name, chunking=chunking)
        vectors = {file: await self._embedded(document) for file, document in documents.items()}
        await self.fill(id, documents, vectors, chunking)
        return documents

    async def fill(
        self,
        id: VectorStoreId,
        documents: Mapping[FileId, ReadDocument],
        vectors: Mapping[FileId, bytes],
        chunking: Chunking,
    ) -> None:
        """A vector store of documents that were read already."""

        async def begin(store: Store) -> None:
            for file, document in documents.items():
                await store.add_file(_file(file, document))
            made = VectorStore(
                id=id, user=LOCAL_USER, created_ms=_NOW_MS, last_active_ms=_NOW_MS, name=id
            )
            files = [NewStoreFile(file=file, chunking=chunking) for file in documents]
            await store.create_vector_store(made, files)

        async def go_on(store: Store) -> bool:
            taken = await store.take_documents(_NODE, _NOW_MS, lease_ms=_LEASE_MS, limit=_AT_ONCE)
            for work in taken:
                ready = ReadyDocument(
                    read=documents[work.file],
                    extractor=EXTRACTOR,
                    model=MODEL,
                    vectors=vectors[work.file],
                )
                await store.finish_document(work.document.id, _NODE, ready)
            return bool(taken)

        await self.store.run(begin)
        while await self.store.run(go_on):
            pass

    async def _embedded(self, document: ReadDocument) -> bytes:
        texts = [embedded_text(document.title or "", each) for each in document.chunks]
        return b"".join(await self.embedding.embed(texts))


@asynccontextmanager
async def library(folder: Path) -> AsyncIterator[Library]:
    """On an SQLite file, with an embedding process of its own."""
    settings = Settings(log_level="error")
    async with direct_store(folder) as store:
        vectors = StoreVectors(store, lambda: MODEL)
        async with embedding(Embedders(lambda: settings), vectors) as service:
            readers = Readers(lambda: settings)
            tools = FileTools(
                store=store,
                contents=cast("Contents", None),  # nothing is read by its hash here
                reader=readers,
                embedding=service,
                telemetry=NullTelemetry(),
                settings=FilesSettings,
                node=_NODE,
                now_ms=lambda: _NOW_MS,
            )
            searcher = Searcher(tools, HybridRanker(), vectors)
            yield Library(store=store, embedding=service, searcher=searcher, readers=readers)


def shuffled(
    documents: Sequence[ReadDocument], *, files: int, chunks: int, seed: int = 1
) -> Iterator[ReadDocument]:
    """Files whose chunks are put together from pieces of these documents' chunks: so their words
    are as common as the words of a few texts, which is far commoner than in a real library."""
    dice = random.Random(seed)
    pieces = [
        piece + ". "
        for document in documents
        for chunk in document.chunks
        for piece in chunk.text.split(". ")
        if len(piece) > 20
    ]
    length = sum(len(each.text) for document in documents for each in document.chunks) // sum(
        len(document.chunks) for document in documents
    )
    for _ in range(files):
        texts: list[str] = []
        for _ in range(chunks):
            text = ""
            while len(text) < length:
                text += dice.choice(pieces)
            texts.append(text)
        ends = np.cumsum([len(text) for text in texts]).tolist()
        yield ReadDocument(
            media_type="text/plain",
            text="".join(texts),
            chunks=tuple(
                TextChunk(number=number, text=text, start=end - len(text), end=end)
                for number, (text, end) in enumerate(zip(texts, ends, strict=True))
            ),
        )


def scattered(vectors: bytes, count: int, *, seed: int) -> bytes:
    """So many vectors near to some of these, each a little elsewhere."""
    dice = np.random.default_rng(seed)
    known = np.frombuffer(vectors, dtype=np.float16).reshape(-1, DIMENSIONS).astype(np.float32)
    near = known[dice.integers(len(known), size=count)]
    moved = near + dice.normal(scale=0.8 / DIMENSIONS**0.5, size=near.shape)
    halves = (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float16)
    return bytes(halves.tobytes())


def _file(id: FileId, document: ReadDocument) -> File:
    content = f"{id}{document.text}".encode()
    return File(
        id=id,
        user=LOCAL_USER,
        filename=f"{id}.txt",
        purpose="assistants",
        media_type=document.media_type,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        created_ms=_NOW_MS,
    )
