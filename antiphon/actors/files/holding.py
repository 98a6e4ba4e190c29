"""A document that is held to be made: its lease is kept alive, its job is done, and the store is
told how that went. What can't be told passes with the lease, and is done again."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
import trio

from antiphon.actors.files.job import Job
from antiphon.actors.files.tools import FileTools
from antiphon.document_records import DocumentFailure, DocumentWork
from antiphon.errors import EmbeddingUnavailable, ReaderUnavailable, StoreError, StoreUnavailable
from antiphon.ids import ActorPath
from antiphon.supervision.context import ChildContext
from antiphon.supervision.exits import Exit, Killed, Normal, Stopped, describe

log = structlog.get_logger(__name__)

LEASE_S = 30.0
"""How long a killed server's work waits for another one, or for its own next start."""
_RENEW_S = 5.0
"""It is noticed as soon as that, too, that a file was deleted."""
_TELL_S = 0.5
"""How often it is written how far it has come, while it comes on."""
_AGAIN_S = (2.0, 10.0, 30.0, 60.0)
_LET_GO_S = 2.0
_FAILED = DocumentFailure(
    code="server_error", message="The server failed to read this file, several times."
)


@dataclass(slots=True, kw_only=True)
class Holding:
    """Its `run` is a temporary child's; it is the lifecycle of that child, too."""

    work: DocumentWork
    tools: FileTools
    is_urgent: bool
    """Somebody waits for it in a conversation."""
    on_end: Callable[[], None]
    exit: Exit | None = None
    over: trio.Event = field(default_factory=trio.Event)
    away: StoreError | None = None
    """Why the store couldn't be told anything."""
    _scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    def started(self, path: ActorPath, incarnation: int) -> None:
        """It runs once."""

    def exited(self, incarnation: int, exit: Exit) -> None:
        self.exit = exit

    def gone(self) -> None:
        self.over.set()
        self.on_end()

    def let_go(self, reason: str) -> None:
        """Leave it to somebody else."""
        self._scope.cancel(reason)

    @property
    def crash(self) -> str | None:
        """What has ended it, where it didn't end by itself."""
        if self.exit is None or isinstance(self.exit, Normal | Stopped | Killed):
            return None
        return describe(self.exit)

    async def run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        context.on_stop(lambda: self.let_go("the ingestion stops"))
        began, outcome = trio.current_time(), "let_go"
        try:
            with self._scope:
                outcome = await self._done()
            if outcome == "let_go":
                with trio.move_on_after(_LET_GO_S, shield=True):
                    await self._release(0.0, counted=False)
        except (ReaderUnavailable, EmbeddingUnavailable) as error:
            outcome = "again"
            await self._failed_safely(str(error))
        except StoreUnavailable as error:
            outcome, self.away = "again", error
        except StoreError as error:
            outcome = "again"
            await self._failed_safely(str(error))
        seconds = trio.current_time() - began
        self.tools.telemetry.document_made(outcome, seconds)
        log.info(
            "document_made",
            document_id=self.work.document.id,
            outcome=outcome,
            bytes=self.work.bytes,
            seconds=round(seconds, 3),
        )

    async def failed(self, reason: str) -> None:
        """To be tried again, unless that was often enough. Raises StoreError."""
        tools, id, attempts = self.tools, self.work.document.id, self.work.attempts + 1
        most = tools.settings().attempts
        if attempts >= most:
            log.error("document_given_up", document_id=id, attempts=attempts, reason=reason)
            await tools.store.run(lambda store: store.fail_document(id, tools.node, _FAILED))
            return
        again_s = _AGAIN_S[min(attempts, len(_AGAIN_S)) - 1]
        log.warning(
            "document_failed", document_id=id, attempts=attempts, reason=reason, again_s=again_s
        )
        await self._release(again_s)

    async def _failed_safely(self, reason: str) -> None:
        try:
            await self.failed(reason)
        except StoreError as error:
            self.away = error

    async def _done(self) -> str:
        is_last = self.work.attempts + 1 >= self.tools.settings().attempts
        job = Job(self.work, self.tools, without_vectors=is_last, is_urgent=self.is_urgent)
        outcome = "lost"
        failure: ReaderUnavailable | EmbeddingUnavailable | StoreError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep, job, nursery.cancel_scope.cancel)
            try:
                outcome = await job.do()
            except (ReaderUnavailable, EmbeddingUnavailable, StoreError) as error:
                failure = error  # not out of a nursery, which would wrap it
            nursery.cancel_scope.cancel("it is done")
        if failure is not None:
            raise failure
        return outcome

    async def _keep(self, job: Job, give_up: Callable[[str], None]) -> None:
        """Hold it, and say how far it has come."""
        told, told_at = 0.0, trio.current_time()
        while True:
            await trio.sleep(_TELL_S)
            now = trio.current_time()
            if now - told_at < _RENEW_S and job.progress - told < 0.02:
                continue
            told, told_at = job.progress, now
            try:
                is_held = await self._renew(told)
            except StoreUnavailable:
                continue  # the lease outlasts a short outage
            if not is_held:
                give_up("its file is gone, or it is somebody else's")
                return

    async def _renew(self, progress: float) -> bool:
        tools, id, until_ms = self.tools, self.work.document.id, lease_ms(self.tools)
        return await tools.store.run(
            lambda store: store.renew_document(id, tools.node, lease_ms=until_ms, progress=progress)
        )

    async def _release(self, again_s: float, *, counted: bool = True) -> None:
        tools, id = self.tools, self.work.document.id
        again_ms = tools.now_ms() + round(again_s * 1000)
        await tools.store.run(
            lambda store: store.release_document(id, tools.node, again_ms=again_ms, counted=counted)
        )


def lease_ms(tools: FileTools) -> int:
    """Until when what is taken now is held."""
    return tools.now_ms() + round(LEASE_S * 1000)
