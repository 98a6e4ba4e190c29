"""An embedding that runs, around a scripted process or a real one, and sources of vectors: for
tests of all that stands behind its port."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import trio

from antiphon.actors.embedding.service import EmbeddingService
from antiphon.documents.index import VectorIndex
from antiphon.documents.rows import Floats
from antiphon.embedding import EmbedderLauncher, FileVectors, Scope, VectorSource
from antiphon.embedding_frames import (
    DIMENSIONS,
    Drop,
    Embedded,
    EmbedderBeat,
    EmbedderCommand,
    EmbedderFrame,
    EmbedderReady,
    Found,
    HaltEmbedder,
    Missing,
    Nearest,
    Passages,
    Put,
    Refused,
    Settle,
)
from antiphon.errors import EmbedderLost, EmbedderStartFailed
from antiphon.ids import FileId
from antiphon.supervision.root import run_tree
from antiphon.supervision.spec import SupervisorSpec
from antiphon.supervision.supervisor import Supervisor

BEAT_S = 1.0


def vector(text: str) -> Floats:
    """Of a text: the same letters, the same direction."""
    counts = np.zeros(DIMENSIONS, dtype=np.float32)
    for letter in text:
        counts[ord(letter) % DIMENSIONS] += 1
    found: Floats = counts / max(float(np.linalg.norm(counts)), 1e-12)
    return found


def stored(*texts: str) -> bytes:
    """Of chunks, as a store keeps them."""
    return b"".join(vector(text).astype(np.float16).tobytes() for text in texts)


@dataclass(eq=False)
class ScriptedSource:
    """A VectorSource; `asked` are the files whose vectors were fetched. Each file is a few
    texts."""

    sets: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    pause_s: float = 0.0

    async def files(self, scope: Scope) -> Mapping[FileId, str]:
        await trio.sleep(self.pause_s)
        return {FileId(file): repr(texts) for file, texts in self.sets[scope.key].items()}

    async def vectors(self, scope: Scope, files: Sequence[FileId]) -> Sequence[FileVectors]:
        await trio.sleep(self.pause_s)
        self.asked += files
        known = self.sets[scope.key]
        return [
            FileVectors(file=file, vectors=stored(*known[file])) for file in files if file in known
        ]


class ScriptedEmbedder:
    """An EmbedderLink without a process: its index is the real one, its vectors count letters.
    `sent` is every command that it got."""

    def __init__(self, pid: int, index_bytes: int) -> None:
        self.pid = pid
        self.sent: list[EmbedderCommand] = []
        self.killed = False
        self._index = VectorIndex(index_bytes)
        self._frames: list[EmbedderFrame] = [EmbedderReady(pid=pid)]
        self._lost: str | None = None
        self._hung = False
        self._holds = False
        self._news = trio.Event()

    # what the worker sees

    async def send(self, command: EmbedderCommand) -> None:
        await trio.lowlevel.checkpoint()
        if self._lost is not None:
            raise EmbedderLost(self._lost)
        self.sent.append(command)
        match command:
            case Passages(number=number, texts=texts) if "poison" in texts:
                self._say(Refused(number=number, problem="ValueError"))
            case Passages(number=number, texts=texts):
                if not self._holds:
                    self._say(Embedded(number=number, vectors=stored(*texts)))
            case Nearest():
                self._say(self._nearest(command))
            case Put(key=key, file=file, edition=edition, first=first, vectors=vectors):
                self._index.put(key, file, edition, first, vectors, last=command.last)
            case Drop(key=key, files=files):
                self._index.drop(key, files)
            case Settle(key=key, revision=revision):
                self._index.settle(key, revision)
            case HaltEmbedder():
                self.die("halted")

    async def receive(self) -> EmbedderFrame:
        await trio.lowlevel.checkpoint()
        while True:
            if self._lost is not None:
                raise EmbedderLost(self._lost)
            if self._hung:
                await self._news.wait()
                continue
            if self._frames:
                return self._frames.pop(0)
            with trio.move_on_after(BEAT_S) as patience:
                await self._news.wait()
            if patience.cancelled_caught and not self._hung:
                return EmbedderBeat()

    async def aclose(self, *, grace_s: float) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self.die("closed")

    def kill(self) -> None:
        self.killed = True
        self.die("killed by signal 9")

    # what a test does

    def hang(self) -> None:
        """From now on it takes what it is sent, and says nothing."""
        self._hung = True
        self._wake()

    def hold(self) -> None:
        """From now on it embeds nothing, and lives."""
        self._holds = True

    def die(self, reason: str = "killed by signal 9") -> None:
        self._lost = self._lost or reason
        self._wake()

    def _nearest(self, asked: Nearest) -> Found | Missing:
        if missing := self._index.missing(asked.scopes):
            return Missing(number=asked.number, known=missing)
        found = self._index.nearest(asked.scopes, vector(asked.question), asked.limit, asked.only)
        return Found(number=asked.number, neighbours=tuple(found))

    def _say(self, frame: EmbedderFrame) -> None:
        self._frames.append(frame)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()


@dataclass(eq=False)
class ScriptedEmbedders:
    """An EmbedderLauncher; `links` are all that it has started, the latest last. While `broken`
    nothing can be started."""

    index_bytes: int = 2**26
    links: list[ScriptedEmbedder] = field(default_factory=list)
    broken: str | None = None

    async def launch(self) -> ScriptedEmbedder:
        await trio.lowlevel.checkpoint()
        if self.broken is not None:
            raise EmbedderStartFailed(self.broken)
        self.links.append(ScriptedEmbedder(6262 + len(self.links), self.index_bytes))
        return self.links[-1]

    @property
    def link(self) -> ScriptedEmbedder:
        return self.links[-1]


@asynccontextmanager
async def embedding(
    launcher: EmbedderLauncher, source: VectorSource
) -> AsyncIterator[EmbeddingService]:
    """The service, and the tree that it runs in."""
    service = EmbeddingService("root/embedding", launcher, source)
    root = Supervisor(SupervisorSpec(intensity=0), [service.child("embedding")])
    stop, ready = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_tree(root, stop=stop, budget_s=20.0, on_ready=ready.set)

        nursery.start_soon(run)
        await ready.wait()
        try:
            yield service
        finally:
            stop.set()
