"""A judge process without a process: in memory, deterministic, obeying the contract frame by frame.

It finds what a test says, and can be told to hang, die or be slow. Tests of the desk, the workers
and the whole tree stand on it.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from antiphon.errors import JudgeLost, JudgeStartFailed
from antiphon.judging import (
    Batch,
    Beat,
    Forget,
    HaltJudge,
    Job,
    JudgeCommand,
    Judged,
    JudgeFrame,
    JudgeReady,
    Load,
    Loaded,
    Unusable,
)
from antiphon.verdicts import Action, CategoryScores, Failure, Finding, Verdict

MODEL = "scripted-judge"
BEAT_S = 1.0

Find = Callable[[Job, str], tuple[Finding, ...]]


def nothing(job: Job, text: str) -> tuple[Finding, ...]:
    return ()


def blocks(word: str, rule: str) -> Find:
    """Finds one word, for one rule that blocks."""

    def find(job: Job, text: str) -> tuple[Finding, ...]:
        at = text.find(word)
        if at < 0:
            return ()
        end = at + len(word)
        found = Finding(rule=rule, stage=job.stage, action=Action.BLOCK, start=at, end=end)
        return (found,)

    return find


@dataclass(eq=False)
class ScriptedJudge:
    """A JudgeLink. It answers after `batch_s`; `sent` is every command it got, in order."""

    pid: int = 5252
    find: Find = nothing
    batch_s: float = 0.0
    load_s: float = 0.0
    unusable: str | None = None
    gives_up: Failure | None = None
    """Why it judges no text, in so many words."""
    loads: bool = False
    """Its classifier takes its time: it isn't ready until `has_loaded`."""
    sent: list[JudgeCommand] = field(default_factory=list)
    killed: bool = False
    closed: bool = False

    def __post_init__(self) -> None:
        self._frames: deque[tuple[float, JudgeFrame]] = deque()
        self._lost: str | None = None
        self._hung = False
        self._news = trio.Event()
        self._versions: set[str] = set()
        if not self.loads:
            self.has_loaded()

    # what the worker sees

    async def send(self, command: JudgeCommand) -> None:
        await trio.lowlevel.checkpoint()
        if self._lost is not None:
            raise JudgeLost(self._lost)
        self.sent.append(command)
        match command:
            case Load(version=version) if self.unusable is not None:
                self._queue(Unusable(version=version, problem=self.unusable))
            case Load(version=version):
                self._versions.add(version)
                self._queue(Loaded(version=version), after_s=self.load_s)
            case Forget(version=version):
                self._versions.discard(version)
            case Batch():
                self._queue(self._judged(command), after_s=self.batch_s)
            case HaltJudge():
                self.die("halted")

    async def receive(self) -> JudgeFrame:
        await trio.lowlevel.checkpoint()
        while True:
            if self._lost is not None:
                raise JudgeLost(self._lost)
            now = trio.current_time()
            if self._frames and not self._hung and self._frames[0][0] <= now:
                return self._frames.popleft()[1]
            due = self._frames[0][0] if self._frames else now + BEAT_S
            with trio.move_on_at(math.inf if self._hung else due) as patience:
                await self._news.wait()
            if patience.cancelled_caught and not self._frames:
                return Beat()

    async def aclose(self, *, grace_s: float) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self.closed = True
        self.die("closed")

    def kill(self) -> None:
        self.killed = True
        self.die("killed by signal 9")

    # what a test does

    def has_loaded(self) -> None:
        self._queue(JudgeReady(pid=self.pid, model=MODEL))

    def hang(self) -> None:
        """From now on it takes what it is sent, and says nothing."""
        self._hung = True
        self._wake()

    def die(self, reason: str = "killed by signal 9") -> None:
        self._lost = self._lost or reason
        self._wake()

    @property
    def batches(self) -> list[Batch]:
        return [command for command in self.sent if isinstance(command, Batch)]

    @property
    def loaded(self) -> frozenset[str]:
        """The versions that it judges by."""
        return frozenset(self._versions)

    def _judged(self, batch: Batch) -> Judged:
        return Judged(
            number=batch.number,
            verdicts=tuple(
                tuple(
                    Verdict(version=job.version, findings=self.find(job, text))
                    for text in job.texts
                )
                if job.version in self._versions and self.gives_up is None
                else self.gives_up or Failure.WORKER_LOST
                for job in batch.jobs
            ),
            scores=tuple(
                CategoryScores(model=MODEL, scores={"violence": len(text) / 100})
                for text in batch.scored
            ),
        )

    def _queue(self, frame: JudgeFrame, after_s: float = 0.0) -> None:
        self._frames.append((trio.current_time() + after_s, frame))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()


@dataclass(eq=False)
class ScriptedJudges:
    """A JudgeLauncher; `links` are all that it has started, the latest last. While `broken` nothing
    can be started."""

    make: Callable[[], ScriptedJudge] = ScriptedJudge
    links: list[ScriptedJudge] = field(default_factory=list)
    broken: str | None = None

    async def launch(self) -> ScriptedJudge:
        await trio.lowlevel.checkpoint()
        if self.broken is not None:
            raise JudgeStartFailed(self.broken)
        self.links.append(self.make())
        return self.links[-1]

    @property
    def link(self) -> ScriptedJudge:
        return self.links[-1]
