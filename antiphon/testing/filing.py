"""The files' room in a tree of its own, over the real store, with a reader and an embedding that a
test scripts."""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import trio

from antiphon.actors.files.ingestion import Ingestion
from antiphon.actors.files.service import FileService
from antiphon.actors.files.tools import FileTools
from antiphon.actors.files.vectors import StoreVectors
from antiphon.embedding import Neighbour, Scope
from antiphon.errors import EmbeddingUnavailable, UnreadableFile
from antiphon.files_settings import FilesSettings
from antiphon.ids import LOCAL_USER, FileId, NodeId, UserId
from antiphon.ranking import HybridRanker
from antiphon.reading_files import Chunking, Progress, ReadDocument, TextChunk
from antiphon.supervision.root import Outcome, run_tree
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor
from antiphon.testing.contents import NoContents
from antiphon.testing.open_store import DirectAccess, direct_store
from antiphon.testing.specimens import a_file
from antiphon.testing.telemetry import RecordingTelemetry

MODEL = "scripted"
HERE = NodeId("node_here")


def a_document(*texts: str) -> ReadDocument:
    """Of one piece for each text."""
    whole, chunks = "", []
    for number, text in enumerate(texts):
        start = len(whole)
        whole += f"{text}\n"
        chunks.append(TextChunk(number=number, text=text, start=start, end=len(whole) - 1))
    return ReadDocument(media_type="text/plain", text=whole, chunks=tuple(chunks))


@dataclass(slots=True)
class ScriptedReader:
    """Says of a file what `texts` has under its name. `before` runs ahead of each reading, and may
    wait or raise."""

    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    before: Callable[[str], Awaitable[None]] | None = None
    read_names: list[str] = field(default_factory=list)
    hurried: list[str] = field(default_factory=list)

    async def read(
        self,
        path: Path,
        filename: str,
        media_type: str | None = None,
        *,
        chunking: Chunking = Chunking(),
        waited_for: bool = False,
        progress: Progress | None = None,
    ) -> ReadDocument:
        self.read_names.append(filename)
        if waited_for:
            self.hurried.append(filename)
        if progress is not None:
            progress(0.5)
        await trio.lowlevel.checkpoint()
        if self.before is not None:
            await self.before(filename)
        if filename in self.unreadable:
            raise UnreadableFile("damaged_file", self.unreadable[filename])
        return a_document(*self.texts.get(filename, (f"What {filename} says.",)))


@dataclass(slots=True)
class ScriptedEmbedding:
    """Vectors that mean nothing. `near` is what is nearest to every question."""

    near: list[Neighbour] = field(default_factory=list)
    is_away: bool = False
    embedded: list[str] = field(default_factory=list)
    asked: list[tuple[str, tuple[str, ...], frozenset[FileId] | None]] = field(default_factory=list)
    wait: trio.Event | None = None
    model: str = MODEL

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise EmbeddingUnavailable("it is away")
        self.embedded += texts
        return tuple(struct.pack("<2e", 1.0, 0.0) for _ in texts)

    async def nearest(
        self,
        question: str,
        scopes: Sequence[Scope],
        limit: int,
        *,
        only: Collection[FileId] | None = None,
    ) -> tuple[Neighbour, ...]:
        await trio.lowlevel.checkpoint()
        self.asked.append(
            (
                question,
                tuple(scope.key for scope in scopes),
                None if only is None else frozenset(only),
            )
        )
        if self.wait is not None:
            await self.wait.wait()
        if self.is_away:
            raise EmbeddingUnavailable("it is away")
        return tuple(self.near[:limit])


@dataclass(slots=True, kw_only=True)
class FileRig:
    """What a test may reach into."""

    store: DirectAccess
    service: FileService
    reader: ScriptedReader
    embedding: ScriptedEmbedding
    telemetry: RecordingTelemetry
    stop: trio.Event
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def ingestion(self) -> Ingestion:
        return self.service.ingestion

    async def upload(self, filename: str, user: UserId = LOCAL_USER) -> FileId:
        """A file with a content of its own."""
        sha256 = filename.encode().hex().ljust(64, "0")[:64]
        file = a_file(user, sha256=sha256, filename=filename)
        await self.store.run(lambda store: store.add_file(file))
        return file.id

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Look again whenever the work on a document has ended."""
        with trio.fail_after(10):
            while not await holds():
                ended = self.ingestion.next_end()
                self.ingestion.look()
                with trio.move_on_after(0.05):
                    await ended.wait()


@asynccontextmanager
async def running_files(
    folder: Path,
    *,
    node: NodeId = HERE,
    reader: ScriptedReader | None = None,
    embedding: ScriptedEmbedding | None = None,
    now_ms: Callable[[], int] = lambda: round(trio.current_time() * 1000),
    **settings: Any,
) -> AsyncIterator[FileRig]:
    """Start the ingestion, and stop it in order afterwards."""
    async with direct_store(folder) as store:
        made = file_rig(
            store, node=node, reader=reader, embedding=embedding, now_ms=now_ms, **settings
        )
        tree = Supervisor(
            SupervisorSpec(intensity=2, period_s=60.0), [made.ingestion.child("ingestion")]
        )
        ready = trio.Event()
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                made.outcomes.append(
                    await run_tree(tree, stop=made.stop, budget_s=20.0, on_ready=ready.set)
                )

            nursery.start_soon(run)
            await ready.wait()
            try:
                yield made
            finally:
                made.stop.set()


def file_rig(
    store: DirectAccess,
    *,
    node: NodeId = HERE,
    reader: ScriptedReader | None = None,
    embedding: ScriptedEmbedding | None = None,
    now_ms: Callable[[], int] = lambda: round(trio.current_time() * 1000),
    **settings: Any,
) -> FileRig:
    """Nothing of it runs."""
    reader, embedding = reader or ScriptedReader(), embedding or ScriptedEmbedding()
    telemetry = RecordingTelemetry()
    live = msgspec.structs.replace(FilesSettings(), **settings)
    vectors = StoreVectors(store, lambda: embedding.model)
    tools = FileTools(
        store=store,
        contents=NoContents(),
        reader=reader,
        embedding=embedding,
        telemetry=telemetry,
        settings=lambda: live,
        node=node,
        now_ms=now_ms,
    )
    return FileRig(
        store=store,
        service=FileService(tools, HybridRanker(), vectors),
        reader=reader,
        embedding=embedding,
        telemetry=telemetry,
        stop=trio.Event(),
    )
