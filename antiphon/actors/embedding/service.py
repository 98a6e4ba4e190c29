"""The embedding as whoever composes the tree sees it: its child, its state, and the port that
others use (`embedding.Embedding`).

A set of files is put into the index when it is first searched, and what has changed in it when it
is searched in another revision: nobody has to tell the index anything.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import trio

from antiphon.actors.actor import actor_child
from antiphon.actors.address import Address
from antiphon.actors.embedding.messages import Answer, Embed, Fill, Find, WorkerMessage
from antiphon.actors.embedding.status import EmbedderStatus, EmbeddingView
from antiphon.actors.embedding.worker import Worker
from antiphon.actors.reply import Reply
from antiphon.embedding import (
    EmbedderLauncher,
    FileVectors,
    Neighbour,
    Scope,
    VectorSource,
)
from antiphon.embedding_frames import (
    BYTES_PER_VECTOR,
    MODEL,
    Drop,
    Found,
    Missing,
    Put,
    Settle,
)
from antiphon.errors import ActorError, EmbeddingUnavailable
from antiphon.ids import FileId
from antiphon.supervision.spec import ChildSpec, Grace, SupervisorSpec
from antiphon.supervision.supervisor import Supervisor

_MAILBOX = 1024
"""Questions that wait while a process starts; each waits for its own deadline at most."""
_RESTARTS = 10
"""In a minute. One that can't be kept running is restarted less and less often, eight times in the
first minute at most, and must not take the tree along."""
_STOP_S = 4.0
_QUESTION_S = 10.0
"""It takes milliseconds, and a second where the process must be started first."""
_PASSAGES_S = 180.0
"""Longer than the worker waits for its process: it knows better what is wrong."""
_FILL_S = 30.0
_PASSAGES = 4
"""At once: what is lost with a process, and how often its progress is known."""
_FILES = 32
"""Whose vectors are fetched at once."""
_PART = 512 * BYTES_PER_VECTOR
"""Of a file's vectors, in one frame: questions are answered between two."""
_TRIES = 4
"""A set may change while it is put into the index."""

R = TypeVar("R")


class EmbeddingService:
    """Wired and not yet running; `path` is where its child will stand. `source` is asked for what
    the index doesn't hold."""

    def __init__(self, path: str, launcher: EmbedderLauncher, source: VectorSource) -> None:
        self._launcher = launcher
        self._source = source
        self._status = EmbedderStatus()
        self._worker: Address[WorkerMessage] = Address(f"{path}/worker", capacity=_MAILBOX)
        self._locks: dict[str, trio.Lock] = {}
        """One for each set that is being put into the index."""

    # ── the port ─────────────────────────────────────────────────────────────────────────────────

    @property
    def model(self) -> str:
        return MODEL

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Raises EmbeddingUnavailable."""
        vectors: list[bytes] = []
        for start in range(0, len(texts), _PASSAGES):
            few = tuple(map(_without_surrogates, texts[start : start + _PASSAGES]))

            def make(reply: Reply[bytes], few: tuple[str, ...] = few) -> WorkerMessage:
                return Embed(texts=few, reply=reply)

            said: bytes = await self._ask(make, _PASSAGES_S)
            vectors += _cut(said, BYTES_PER_VECTOR)
        return tuple(vectors)

    async def nearest(
        self,
        question: str,
        scopes: Sequence[Scope],
        limit: int,
        *,
        only: Collection[FileId] | None = None,
    ) -> tuple[Neighbour, ...]:
        """Raises EmbeddingUnavailable, and what the source raises."""

        def make(reply: Reply[Answer]) -> WorkerMessage:
            return Find(
                question=_without_surrogates(question),
                scopes=tuple((scope.key, scope.revision) for scope in scopes),
                limit=limit,
                only=None if only is None else tuple(only),
                reply=reply,
            )

        for _ in range(_TRIES):
            answer = await self._ask(make, _QUESTION_S)
            match answer.said:
                case Found(neighbours=neighbours):
                    return tuple(
                        Neighbour(file=FileId(file), number=number, similarity=similarity)
                        for file, number, similarity in neighbours
                    )
                case Missing(known=known):
                    for scope in scopes:
                        if scope.key in known:
                            await self._fetch(scope, known[scope.key], answer.process)
        raise EmbeddingUnavailable("what is searched changes all the time, or is too large")

    # ── for operators ────────────────────────────────────────────────────────────────────────────

    def view(self) -> EmbeddingView:
        return self._status.view()

    def pids(self) -> Iterator[int]:
        """The process that runs now, if any."""
        if self._status.pid is not None:
            yield self._status.pid

    # ── the tree ─────────────────────────────────────────────────────────────────────────────────

    def child(self, id: str) -> ChildSpec:
        return Supervisor(
            SupervisorSpec(intensity=_RESTARTS, period_s=60.0),
            [
                actor_child(
                    "worker",
                    lambda: Worker(self._launcher, self._status),
                    self._worker,
                    shutdown=Grace(_STOP_S),
                    kill_grace_s=_STOP_S,
                )
            ],
        ).child(id)

    # ── the index ────────────────────────────────────────────────────────────────────────────────

    async def _fetch(self, scope: Scope, known: Mapping[str, str], process: int) -> None:
        """Have the set in the index; of many who need it, one fetches it."""
        lock = self._locks.setdefault(scope.key, trio.Lock())
        is_first = not lock.locked()
        try:
            async with lock:
                if is_first:
                    await self._fill_set(scope, known, process)
        finally:
            if not lock.locked():
                self._locks.pop(scope.key, None)

    async def _fill_set(self, scope: Scope, known: Mapping[str, str], process: int) -> None:
        files = await self._source.files(scope)
        gone = tuple(file for file in known if file not in files)
        if gone:
            await self._fill(process, Drop(key=scope.key, files=gone))
        wanted = [file for file, edition in files.items() if known.get(file) != edition]
        for start in range(0, len(wanted), _FILES):
            few = wanted[start : start + _FILES]
            for found in await self._source.vectors(scope, few):
                for put in _puts(scope, found, files[found.file]):
                    await self._fill(process, put)
        await self._fill(process, Settle(key=scope.key, revision=scope.revision))

    async def _fill(self, process: int, *commands: Put | Drop | Settle) -> None:
        await self._ask(
            lambda reply: Fill(commands=commands, process=process, reply=reply), _FILL_S
        )

    async def _ask(self, make: Callable[[Reply[R]], WorkerMessage], deadline_s: float) -> R:
        try:
            embedder = self._worker.ref
            return await embedder.ask(make, deadline_s=deadline_s)
        except ActorError as error:
            raise EmbeddingUnavailable(str(error)) from error


def _puts(scope: Scope, found: FileVectors, edition: str) -> Iterator[Put]:
    """In parts that a frame can carry."""
    for start in range(0, max(1, len(found.vectors)), _PART):
        yield Put(
            key=scope.key,
            file=found.file,
            edition=edition,
            first=start // BYTES_PER_VECTOR,
            vectors=found.vectors[start : start + _PART],
            last=start + _PART >= len(found.vectors),
        )


def _cut(joined: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(joined), size):
        yield joined[start : start + size]


def _without_surrogates(text: str) -> str:
    """Half a character, which JSON can carry and UTF-8 can't."""
    return text.encode("utf-8", "replace").decode("utf-8")
