"""A worker: owns one judge process, gives it what the desk hands out, and answers who asked.

Keeps the rule that silence is a failure: a process that says nothing for `silence_s`, dies, or
breaks the protocol is killed, what it had in hand is not judged, and the worker crashes so that its
supervisor starts both anew. Knows frames, not rules.
"""

import itertools
from collections.abc import Callable
from typing import assert_never

import structlog
import trio

from antiphon.actors.actor import ActorContext
from antiphon.actors.moderation.edition import Edition
from antiphon.actors.moderation.messages import (
    DeskMessage,
    Drop,
    JudgeTexts,
    Prepare,
    Run,
    ScoreTexts,
    Unjudged,
    Wanted,
    WorkerFree,
    WorkerMessage,
)
from antiphon.actors.moderation.shelf import Shelf
from antiphon.actors.moderation.status import WorkerStatus
from antiphon.actors.ref import Ref
from antiphon.actors.reply import Reply
from antiphon.errors import JudgeLost, JudgeStartFailed
from antiphon.judging import Batch, Beat, Forget, JudgeCommand, Judged, JudgeReady, Loaded, Unusable
from antiphon.moderating import JudgeLauncher, JudgeLink
from antiphon.telemetry import Telemetry
from antiphon.verdicts import Failure

log = structlog.get_logger(__name__)

_START_S = 60.0
"""It takes a second; a machine under load may take far longer."""
_GRACE_S = 1.0
_REAP_S = 5.0
"""A killed process is reaped in milliseconds, unless the kernel is stuck in it."""
_MOMENT_S = 0.001


class Worker:
    """One incarnation has one judge process; `status` outlives both. It isn't ready when it has
    started, only when its process is: nobody waits for that. `budget_s` is what one batch may take
    of everybody's time."""

    def __init__(
        self,
        launcher: JudgeLauncher,
        status: WorkerStatus,
        shelf: Shelf,
        desk: Ref[DeskMessage],
        telemetry: Telemetry,
        budget_s: Callable[[], float],
    ) -> None:
        self._launcher = launcher
        self._status = status
        self._shelf = shelf
        self._desk = desk
        self._telemetry = telemetry
        self._budget_s = budget_s
        self._numbers = itertools.count(1)
        self._batches: dict[int, tuple[Wanted, ...]] = {}
        self._asked: set[str] = set()
        """Versions that the process was told to load."""
        self._preparing: dict[str, list[Reply[str | None]]] = {}
        self._link: JudgeLink | None = None
        self._me: Ref[WorkerMessage] | None = None
        self._loading = 0
        """Loads that were not answered yet."""
        self._ready = trio.Event()
        self._lost: JudgeLost | None = None
        self._closing = False

    async def start(self, me: ActorContext[WorkerMessage]) -> None:
        """Launch a process. Raises JudgeStartFailed."""
        self._me = me.ref
        status = self._status
        if status.starts:
            self._telemetry.judge_restarted()
        status.starts += 1
        try:
            self._link = await self._launcher.launch()
        except JudgeStartFailed as error:
            status.gone(error.reason)
            raise
        status.pid = self._link.pid
        status.heard_at = trio.current_time()
        me.start_soon(self._read, self._link)
        me.start_soon(self._watch)

    async def handle(self, message: WorkerMessage) -> None:
        """Raises JudgeLost."""
        match message:
            case Run():
                await self._run(message.wanted)
            case Prepare(edition=edition, reply=reply):
                self._preparing.setdefault(edition.version, []).append(reply)
                await self._load(edition)
            case Drop(version=version):
                if version in self._asked:
                    self._asked.discard(version)
                    await self._send(Forget(version=version))
            case _:
                assert_never(message)

    async def terminate(self) -> None:
        """End the process; whoever waits for it hears that nothing is coming."""
        self._closing = True
        self._gone()
        for wanted in self._batches.values():
            _fail(wanted)
        self._batches.clear()
        assert self._link is not None
        await self._link.aclose(grace_s=0 if self._lost else _GRACE_S)

    async def _run(self, wanted: tuple[Wanted, ...]) -> None:
        status = self._status
        number = next(self._numbers)
        jobs = tuple(each.job for each in wanted if isinstance(each, JudgeTexts))
        scored = tuple(
            text for each in wanted if isinstance(each, ScoreTexts) for text in each.texts
        )
        if not self._batches:
            status.heard_at = trio.current_time()
        self._batches[number] = wanted
        status.busy = True
        status.batches += 1
        status.texts += sum(len(each.texts) for each in wanted)
        for version in {job.version for job in jobs} - self._asked:
            # It comes before the batch in the same stream, so its answer need not be waited for.
            if (edition := self._shelf.edition(version)) is not None:
                await self._load(edition)
        budget_s = self._budget_s()
        await self._send(Batch(number=number, budget_s=budget_s, jobs=jobs, scored=scored))

    async def _read(self, link: JudgeLink) -> None:
        try:
            while True:
                frame = await link.receive()
                self._status.heard_at = trio.current_time()
                match frame:
                    case JudgeReady():
                        await self._on_ready(frame)
                    case Loaded():
                        self._on_loaded(frame.version, None)
                    case Unusable():
                        self._on_loaded(frame.version, frame.problem)
                    case Judged():
                        self._on_judged(frame)
                    case Beat():
                        pass
                    case _:
                        assert_never(frame)
        except JudgeLost as error:
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
        """Kill a process that has gone silent: with work it answers, without it says each second
        that it lives."""
        status = self._status
        while not self._closing:
            patience_s = status.patience_s() if status.ready else _START_S
            left_s = patience_s - status.stalled_s(trio.current_time())
            if left_s <= 0:
                was_ready, stalled = status.ready, f"silent for {patience_s:g} s"
                error = JudgeLost(stalled)
                self._lose(error)
                raise error if was_ready else JudgeStartFailed(stalled)
            # Never for less than a moment: what is left of a float subtraction may be too little to
            # move the clock on.
            with trio.move_on_after(max(left_s, _MOMENT_S)):
                if status.ready:
                    await trio.sleep_forever()
                # One that has become ready is expected to say more than one that loads.
                await self._ready.wait()

    async def _on_ready(self, ready: JudgeReady) -> None:
        self._shelf.model = ready.model
        await self._load(self._shelf.current)

    async def _load(self, edition: Edition) -> None:
        self._asked.add(edition.version)
        self._loading += 1
        self._status.loading = True
        await self._send(edition.load)

    def _on_loaded(self, version: str, problem: str | None) -> None:
        self._loading -= 1
        self._status.loading = self._loading > 0
        if problem is not None:
            self._asked.discard(version)
        for reply in self._preparing.pop(version, ()):
            reply.send(problem)
        status = self._status
        if not status.ready:
            if problem is not None:
                log.error("rules_not_loaded", judge_pid=status.pid, version=version, why=problem)
            status.ready = True
            self._ready.set()
            log.info("judge_ready", judge_pid=status.pid, model=self._shelf.model, version=version)
            self._free()

    def _on_judged(self, frame: Judged) -> None:
        wanted = self._batches.pop(frame.number, None)
        if wanted is None:
            raise JudgeLost(f"an answer to batch {frame.number}, which it was not given")
        verdicts = iter(frame.verdicts)
        scores = frame.scores if isinstance(frame.scores, Failure) else iter(frame.scores)
        try:
            for each in wanted:
                match each:
                    case JudgeTexts(reply=reply):
                        judged = next(verdicts)
                        if isinstance(judged, Failure):
                            reply.fail(Unjudged(judged, own=True))
                        else:
                            reply.send(judged)
                    case ScoreTexts(reply=scored):
                        if isinstance(scores, Failure):
                            scored.fail(Unjudged(scores, own=True))
                        else:
                            scored.send(tuple(next(scores) for _ in each.texts))
                    case _:
                        assert_never(each)
        except (StopIteration, RuntimeError) as error:
            _fail(wanted)
            raise JudgeLost(f"half an answer to batch {frame.number}") from error
        if not self._batches:
            self._free()

    def _free(self) -> None:
        assert self._me is not None
        self._status.busy = False
        self._desk.tell_system(WorkerFree(worker=self._me))

    async def _send(self, command: JudgeCommand) -> None:
        assert self._link is not None
        try:
            await self._link.send(command)
        except JudgeLost as error:
            self._lose(error)
            raise

    def _gone(self) -> None:
        self._status.gone("stopped" if self._lost is None else self._lost.reason)

    def _lose(self, error: JudgeLost) -> None:
        """At once, before anything can wait: a hung process is dead, and nobody waits for it."""
        assert self._link is not None
        if self._lost is not None:
            return
        self._lost = error
        status = self._status
        texts = sum(len(each.texts) for batch in self._batches.values() for each in batch)
        log.error("judge_lost", judge_pid=status.pid, reason=error.reason, texts=texts)
        status.gone(error.reason)
        self._link.kill()
        for wanted in self._batches.values():
            _fail(wanted)


def _fail(wanted: tuple[Wanted, ...]) -> None:
    for each in wanted:
        each.reply.fail(Unjudged(Failure.WORKER_LOST))
