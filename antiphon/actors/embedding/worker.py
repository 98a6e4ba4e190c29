"""The embedding worker: owns one process, started when it is first needed, and answers who asked.

Keeps the rule that silence is a failure: a process that says nothing for a while, dies, or breaks
the protocol is killed, whoever waits for it hears that, and the worker crashes so that its
supervisor starts it anew. Knows frames, not vectors.
"""

import itertools
from typing import assert_never

import structlog
import trio

from antiphon.actors.actor import ActorContext
from antiphon.actors.embedding.messages import Answer, Embed, Fill, Find, WorkerMessage
from antiphon.actors.embedding.status import EmbedderStatus
from antiphon.actors.reply import Reply
from antiphon.embedding import EmbedderLauncher, EmbedderLink
from antiphon.embedding_frames import (
    BYTES_PER_VECTOR,
    Embedded,
    EmbedderBeat,
    EmbedderCommand,
    EmbedderReady,
    Found,
    Missing,
    Nearest,
    Passages,
    Refused,
)
from antiphon.errors import EmbedderLost, EmbedderStartFailed, EmbeddingUnavailable

log = structlog.get_logger(__name__)

START_S = 60.0
"""It takes a second; a machine under load may take far longer."""
SILENCE_S = 10.0
"""It says each second that it lives."""
BATCH_S = 120.0
"""A few passages take a tenth of a second, and far longer behind an engine that is busy."""
_GRACE_S = 1.0
_REAP_S = 5.0
_MOMENT_S = 0.001


class Worker:
    """One incarnation has at most one process; `status` outlives both."""

    def __init__(self, launcher: EmbedderLauncher, status: EmbedderStatus) -> None:
        self._launcher = launcher
        self._status = status
        self._numbers = itertools.count(1)
        self._embedding: dict[int, tuple[int, Reply[bytes]]] = {}
        """How many passages, and who waits for them."""
        self._finding: dict[int, Reply[Answer]] = {}
        self._link: EmbedderLink | None = None
        self._me: ActorContext[WorkerMessage] | None = None
        self._ready = trio.Event()
        self._lost: EmbedderLost | None = None
        self._closing = False

    def start(self, me: ActorContext[WorkerMessage]) -> None:
        self._me = me

    async def handle(self, message: WorkerMessage) -> None:
        """Raises EmbedderLost, EmbedderStartFailed."""
        status = self._status
        match message:
            case Embed(texts=texts, reply=reply):
                link = await self._running()
                number = next(self._numbers)
                if not self._embedding:
                    status.embedded_at = trio.current_time()
                self._embedding[number] = len(texts), reply
                status.passages += len(texts)
                status.waiting += len(texts)
                await self._send(link, Passages(number=number, texts=texts))
            case Find():
                link = await self._running()
                number = next(self._numbers)
                self._finding[number] = message.reply
                status.questions += 1
                await self._send(
                    link,
                    Nearest(
                        number=number,
                        question=message.question,
                        scopes=message.scopes,
                        limit=message.limit,
                        only=message.only,
                    ),
                )
            case Fill(commands=commands, process=process, reply=filled):
                if self._link is None or process != status.starts:
                    filled.fail(EmbeddingUnavailable("its process was lost"))
                    return
                for command in commands:
                    await self._send(self._link, command)
                filled.send(None)
            case _:
                assert_never(message)

    async def terminate(self) -> None:
        """End the process; whoever waits for it hears that nothing is coming."""
        self._closing = True
        self._fail_all("it stops")
        if self._link is not None:
            self._gone()
            await self._link.aclose(grace_s=0 if self._lost else _GRACE_S)

    async def _running(self) -> EmbedderLink:
        """The process, once it is ready. Raises EmbedderStartFailed."""
        if self._link is None:
            assert self._me is not None
            self._status.starts += 1
            try:
                self._link = await self._launcher.launch()
            except EmbedderStartFailed as error:
                self._status.gone(error.reason)
                raise
            self._status.pid = self._link.pid
            self._status.heard_at = trio.current_time()
            self._me.start_soon(self._read, self._link)
            self._me.start_soon(self._watch)
        await self._ready.wait()
        return self._link

    async def _read(self, link: EmbedderLink) -> None:
        status = self._status
        try:
            while True:
                frame = await link.receive()
                status.heard_at = trio.current_time()
                match frame:
                    case EmbedderReady():
                        status.ready = True
                        self._ready.set()
                        log.info("embedder_ready", embedder_pid=link.pid)
                    case Embedded(number=number, vectors=vectors):
                        self._on_embedded(number, vectors)
                    case Found() | Missing():
                        reply = self._finding.pop(frame.number, None)
                        if reply is None:
                            raise EmbedderLost(f"an answer to {frame.number}, which nobody asked")
                        reply.send(Answer(said=frame, process=status.starts))
                    case Refused(number=number, problem=problem):
                        self._on_refused(number, problem)
                    case EmbedderBeat():
                        pass
                    case _:
                        assert_never(frame)
        except EmbedderLost as error:
            if self._closing:
                return
            self._lose(error)
            raise
        finally:
            # A worker that is cancelled for good never gets to terminate.
            self._gone()
            link.kill()
            if not self._closing:
                with trio.move_on_after(_REAP_S, shield=True):
                    await link.aclose(grace_s=0)

    async def _watch(self) -> None:
        """Kill a process that has gone silent."""
        while not self._closing:
            was_ready, now = self._status.ready, trio.current_time()
            left_s, silent = self._left_s(now)
            if left_s <= 0:
                error = EmbedderLost(silent)
                self._lose(error)
                raise error if was_ready else EmbedderStartFailed(silent)
            with trio.move_on_after(max(left_s, _MOMENT_S)):
                if was_ready:
                    await trio.sleep_forever()
                # One that has become ready is expected to say more than one that loads.
                await self._ready.wait()

    def _left_s(self, now: float) -> tuple[float, str]:
        """How much longer is waited for a word of it, and what is said when that is over."""
        status = self._status
        patience_s = SILENCE_S if status.ready else START_S
        left_s = patience_s - (now - status.heard_at)
        silent = f"silent for {patience_s:g} s"
        if self._embedding:
            batch_s = BATCH_S - (now - status.embedded_at)
            if batch_s < left_s:
                return batch_s, f"no passage embedded for {BATCH_S:g} s"
        return left_s, silent

    def _on_embedded(self, number: int, vectors: bytes) -> None:
        count, reply = self._embedding.pop(number, (0, None))
        if reply is None or len(vectors) != count * BYTES_PER_VECTOR:
            raise EmbedderLost(f"no answer to {number}: {len(vectors)} bytes for {count} passages")
        self._note_embedded(count)
        reply.send(vectors)

    def _on_refused(self, number: int, problem: str) -> None:
        error = EmbeddingUnavailable(problem)
        if number in self._finding:
            self._finding.pop(number).fail(error)
        elif number in self._embedding:
            count, reply = self._embedding.pop(number)
            self._note_embedded(count)
            reply.fail(error)
        else:
            raise EmbedderLost(f"an answer to {number}, which nobody asked")

    def _note_embedded(self, count: int) -> None:
        self._status.embedded_at = trio.current_time()
        self._status.waiting -= count

    async def _send(self, link: EmbedderLink, command: EmbedderCommand) -> None:
        try:
            await link.send(command)
        except EmbedderLost as error:
            self._lose(error)
            raise

    def _gone(self) -> None:
        self._status.gone("stopped" if self._lost is None else self._lost.reason)

    def _lose(self, error: EmbedderLost) -> None:
        """At once, before anything can wait: a hung process is dead, and nobody waits for it."""
        assert self._link is not None
        if self._lost is not None:
            return
        self._lost = error
        log.error("embedder_lost", embedder_pid=self._status.pid, reason=error.reason)
        self._status.gone(error.reason)
        self._link.kill()
        self._fail_all(error.reason)

    def _fail_all(self, reason: str) -> None:
        for _, reply in self._embedding.values():
            reply.fail(EmbeddingUnavailable(reason))
        for waiting in self._finding.values():
            waiting.fail(EmbeddingUnavailable(reason))
        self._embedding.clear()
        self._finding.clear()
