"""The ingestion's part of the tree: takes documents that are to be made out of the store, and has
some of them made at a time, while the server isn't about to end.

What there is to do is in the store, not here: a kill loses nothing. The work on each document is a
temporary child, so that one which crashes it costs no other, and none of the tree's restarts.
"""

import itertools

import structlog
import trio

from antiphon.actors.files.holding import Holding, lease_ms
from antiphon.actors.files.tools import FileTools
from antiphon.document_records import DocumentWork
from antiphon.errors import ActorError, StoreError, SupervisionError
from antiphon.events import CancelCause
from antiphon.ids import DocumentId
from antiphon.reading_files import EXTRACTOR
from antiphon.supervision.context import ChildContext
from antiphon.supervision.spec import (
    NO_BACKOFF,
    ChildSpec,
    Grace,
    Restart,
    Strategy,
    SupervisorSpec,
)
from antiphon.supervision.supervisor import Supervisor

log = structlog.get_logger(__name__)

_LOOK_S = 2.0
"""Between two looks for what other servers were told of, or have left."""
_STOP_S = 4.0
_MORE = 2
"""Documents at once, beyond those of the settings, that somebody waits for."""
_MOST = 18
"""More at once no setting allows."""


class Ingestion:
    """Also one of the kinds of work that a drain ends: at once, since nobody waits for it."""

    open_turns = 0

    def __init__(self, tools: FileTools) -> None:
        self._tools = tools
        self._draining = False
        self._held: dict[DocumentId, Holding] = {}
        self._crashed: list[Holding] = []
        self._urgent: dict[DocumentId, int] = {}
        self._numbers = itertools.count(1)
        self._is_paused = False
        self._wake = trio.Event()
        self._ended = trio.Event()
        self._jobs = Supervisor(SupervisorSpec(dynamic=True, max_children=_MOST, intensity=0))

    def child(self, id: str) -> ChildSpec:
        """What stands in the tree."""
        return Supervisor(
            # As for the background workers: what fails again and again leaves the tree alone.
            SupervisorSpec(strategy=Strategy.ONE_FOR_ALL, intensity=10, period_s=60.0),
            [self._jobs.child("jobs"), ChildSpec(id="finder", start=self._run)],
        ).child(id)

    @property
    def in_hand(self) -> int:
        """How many documents are being made here."""
        return len(self._held)

    def look(self) -> None:
        """There may be something to do."""
        self._wake.set()

    def next_end(self) -> trio.Event:
        """Set when the work on a document ends here the next time."""
        return self._ended

    def hurry(self, id: DocumentId) -> None:
        """Somebody waits for it."""
        self._urgent[id] = self._urgent.get(id, 0) + 1

    def hurry_no_more(self, id: DocumentId) -> None:
        """As often as `hurry`."""
        left = self._urgent.pop(id, 0) - 1
        if left > 0:
            self._urgent[id] = left

    def refuse_new_turns(self) -> None:
        """From now on the server drains: what is at hand is left to others."""
        self._draining = True
        for holding in tuple(self._held.values()):
            holding.let_go("the server drains")

    def cancel_all(self, cause: CancelCause) -> None:
        """Nothing is left by then."""

    async def wait_idle(self) -> None:
        await trio.lowlevel.checkpoint()

    async def _run(self, context: ChildContext) -> None:
        """A child's start function."""
        context.ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._find)
            await context.stopping.wait()
            nursery.cancel_scope.cancel("the ingestion stops")

    async def _find(self) -> None:
        remade = False
        while True:
            self._wake = trio.Event()
            try:
                await self._tell_crashes()
                remade = remade or await self._remake()
                await self._take()
            except StoreError as error:
                self._pause(error)
            else:
                self._resume()
            with trio.move_on_after(_LOOK_S):
                await self._wake.wait()

    async def _remake(self) -> bool:
        """Have made anew what another reader or model has made; True once there is no more."""
        tools = self._tools
        model = tools.embedding.model or None
        now_ms = tools.now_ms()
        number = await tools.store.run(
            lambda store: store.remake_documents(EXTRACTOR, model, now_ms)
        )
        if number:
            log.info("documents_outdated", documents=number)
        return not number

    async def _tell_crashes(self) -> None:
        """So that a document which crashes whoever makes it isn't tried for ever."""
        while self._crashed:
            await self._crashed[0].failed(self._crashed[0].crash or "it crashed")
            self._crashed.pop(0)

    async def _take(self) -> None:
        """As many as may be made at once, and a few more for those whom somebody waits for: the
        store gives these first."""
        waited_for = min(len(self._urgent.keys() - self._held.keys()), _MORE)
        at_once = self._tools.settings().at_once
        free = min(max(at_once - len(self._held), waited_for), at_once + _MORE - len(self._held))
        if self._draining or free <= 0:
            return
        tools, now_ms, until_ms = self._tools, self._tools.now_ms(), lease_ms(self._tools)
        taken = await tools.store.run(
            lambda store: store.take_documents(tools.node, now_ms, lease_ms=until_ms, limit=free)
        )
        for work in taken:
            await self._begin(work)

    async def _begin(self, work: DocumentWork) -> None:
        id = work.document.id
        holding = Holding(
            work=work,
            tools=self._tools,
            is_urgent=id in self._urgent,
            on_end=lambda: self._over(id),
        )
        self._held[id] = holding
        if self._draining:
            holding.let_go("the server drains")
        try:
            self._jobs.start_child_nowait(
                ChildSpec(
                    id=f"document-{next(self._numbers)}",
                    start=holding.run,
                    restart=Restart.TEMPORARY,
                    shutdown=Grace(_STOP_S),
                    backoff=NO_BACKOFF,
                    lifecycle=holding,
                )
            )
        except (SupervisionError, ActorError) as error:
            self._held.pop(id, None)
            await holding.failed(str(error))

    def _over(self, id: DocumentId) -> None:
        holding = self._held.pop(id, None)
        if holding is not None and holding.crash is not None:
            self._crashed.append(holding)
        if holding is not None and holding.away is not None:
            self._pause(holding.away)
        self._ended.set()
        self._ended = trio.Event()
        self._wake.set()

    def _pause(self, error: StoreError) -> None:
        if not self._is_paused:
            log.warning("ingestion_paused", reason=str(error))
        self._is_paused = True

    def _resume(self) -> None:
        if self._is_paused:
            log.info("ingestion_resumed")
        self._is_paused = False
