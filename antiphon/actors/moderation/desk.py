"""The desk of the moderation: every text to be judged comes here, waits in bounds, and is given to
a worker that has nothing to do, together with all others that have come by then.

It knows no rule and no process.
"""

from typing import assert_never

import trio

from antiphon.actors.actor import ActorContext
from antiphon.actors.moderation.backlog import Backlog
from antiphon.actors.moderation.messages import (
    DeskMessage,
    HandOut,
    JudgeTexts,
    Run,
    ScoreTexts,
    Unjudged,
    WorkerDown,
    WorkerFree,
    WorkerMessage,
)
from antiphon.actors.monitor import Monitor
from antiphon.actors.ref import Ref
from antiphon.errors import MailboxFull
from antiphon.ids import ActorPath
from antiphon.verdicts import Failure


class Desk:
    """One incarnation. After its crash all workers are restarted, which tell the next one when they
    are free."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._free: dict[ActorPath, Ref[WorkerMessage]] = {}
        self._watched: dict[ActorPath, Monitor] = {}
        self._due = False
        """Whether a HandOut is on its way."""
        self._me: Ref[DeskMessage] | None = None

    def start(self, me: ActorContext[DeskMessage]) -> None:
        self._me = me.ref

    def handle(self, message: DeskMessage) -> None:
        match message:
            case JudgeTexts() | ScoreTexts():
                if not self._backlog.add(message):
                    message.reply.fail(Unjudged(Failure.QUEUE_FULL))
                elif self._free and not self._due:
                    self._hand_out_soon()
            case HandOut():
                self._due = False
                self._hand_out()
            case WorkerFree(worker=worker):
                self._watch(worker)
                self._free[worker.path] = worker
                self._hand_out()
            case WorkerDown(worker=worker):
                self._free.pop(worker.path, None)
                self._watched.pop(worker.path, None)
            case _:
                assert_never(message)

    def terminate(self) -> None:
        """Nothing is held that others would miss: who waits here is told by the address."""
        for monitor in self._watched.values():
            monitor.cancel()

    def _hand_out_soon(self) -> None:
        """At the end of the queue: so whatever has come by now is handed out with it."""
        assert self._me is not None
        try:
            self._me.tell(HandOut())
            self._due = True
        except MailboxFull:
            self._hand_out()

    def _hand_out(self) -> None:
        while self._free:
            wanted = self._backlog.take(trio.current_time())
            if not wanted:
                return
            _, worker = self._free.popitem()
            worker.tell(Run(wanted=wanted))

    def _watch(self, worker: Ref[WorkerMessage]) -> None:
        if worker.path in self._watched:
            return
        assert self._me is not None
        me = self._me
        self._watched[worker.path] = worker.monitor(
            lambda _: me.tell_system(WorkerDown(worker=worker))
        )
