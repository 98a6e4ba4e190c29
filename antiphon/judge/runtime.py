"""What a judge does from ready to its end: rules and texts in, verdicts out, a batch at a time.

One thread. Texts that are judged by the same rules are judged together, whoever sent them. It says
each second that it lives, when it has nothing else to say, also in the middle of a batch.
"""

import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, assert_never

import structlog

from antiphon import faults
from antiphon.errors import RulesError
from antiphon.fault_plan import Site
from antiphon.judge.pacing import OutOfTime, PacedScorer
from antiphon.judge.wire import encode_frame
from antiphon.judging import (
    SAMPLE,
    Batch,
    Beat,
    Forget,
    HaltJudge,
    Job,
    JudgeCommand,
    Judged,
    JudgeFrame,
    Load,
    Loaded,
    Unusable,
)
from antiphon.policy.compiled import ScopedRules
from antiphon.policy.rulebook import Rulebook, parse_rules
from antiphon.policy.scan import Scanner, Scorer
from antiphon.verdicts import CategoryScores, Failure, PolicyScope, Stage, Verdict

log = structlog.get_logger(__name__)

BEAT_S = 1.0
_LONG = 8_192
"""Characters of a job that is judged alone."""
_WARM_UP_S = 10.0
_FOR_EVER_S = 10.0**6


class Connection(Protocol):
    """Where commands come from and frames go to; `processes.channel.Channel` is the real one."""

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[JudgeCommand]: ...

    def send(self, frames: bytes | bytearray) -> None: ...


class JudgeRuntime:
    """The loop of one judge, and the rules that it has loaded."""

    def __init__(self, connection: Connection, scorer: Scorer) -> None:
        self._connection = connection
        self._scorer = PacedScorer(scorer, self._beat)
        self._scanner = Scanner(self._scorer)
        self._rulebooks: dict[str, Rulebook] = {}
        self._next_beat = time.monotonic() + BEAT_S

    def run(self) -> None:
        """Serve until told to halt. Raises ServerGone, JudgeLost."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """Commands that came, or the next beat; False after the halt."""
        for command in self._connection.receive(max(0.0, self._next_beat - time.monotonic())):
            match command:
                case Load():
                    self._say(self._load(command))
                case Forget():
                    self._rulebooks.pop(command.version, None)
                case Batch():
                    self._say(self._judge(command))
                case HaltJudge():
                    return False
                case _:
                    assert_never(command)
        self._beat()
        return True

    def _beat(self) -> None:
        if time.monotonic() >= self._next_beat:
            self._say(Beat())

    def _say(self, frame: JudgeFrame) -> None:
        self._connection.send(encode_frame(frame))
        self._next_beat = time.monotonic() + BEAT_S

    def _load(self, load: Load) -> Loaded | Unusable:
        if load.version not in self._rulebooks:
            try:
                rulebook = parse_rules(load.source, load.text, folder=None, lists=load.lists)
            except RulesError as error:
                return Unusable(version=load.version, problem=str(error))
            self._rulebooks[load.version] = rulebook
            self._warm_up(rulebook)
        return Loaded(version=load.version)

    def _warm_up(self, rulebook: Rulebook) -> None:
        """Have everything made that is made for a first text."""
        jobs = tuple(
            Job(version=rulebook.version, scope=PolicyScope(), stage=stage, texts=(SAMPLE,))
            for stage in Stage
        )
        self._answer(Batch(number=0, budget_s=_WARM_UP_S, jobs=jobs))

    def _judge(self, batch: Batch) -> Judged:
        faults.maybe(Site.JUDGE_BATCH)
        while faults.strikes(Site.JUDGE_HANG):
            time.sleep(_FOR_EVER_S)
        return self._answer(batch)

    def _answer(self, batch: Batch) -> Judged:
        self._scorer.begin(batch.budget_s)
        verdicts: list[tuple[Verdict, ...] | Failure] = [Failure.WORKER_LOST] * len(batch.jobs)
        for scoped, stage, places in self._alike(batch.jobs):
            jobs = [batch.jobs[place] for place in places]
            for place, judged in zip(places, self._together(scoped, stage, jobs), strict=True):
                verdicts[place] = judged
        return Judged(
            number=batch.number,
            verdicts=tuple(verdicts),
            scores=self._scores(batch.scored),
        )

    def _alike(self, jobs: Sequence[Job]) -> Iterable[tuple[ScopedRules, Stage, list[int]]]:
        """The places of those jobs that can be judged in one go. Long ones come alone and last: if
        the time runs out, it does so on them."""
        groups: dict[tuple[str, PolicyScope, Stage, int], list[int]] = {}
        sizes: dict[tuple[str, PolicyScope, Stage, int], int] = {}
        for place, job in enumerate(jobs):
            size = sum(map(len, job.texts))
            key = (job.version, job.scope, job.stage, place if size > _LONG else -1)
            groups.setdefault(key, []).append(place)
            sizes[key] = size if size > _LONG else 0
        for key in sorted(groups, key=sizes.__getitem__):
            version, scope, stage, _ = key
            rulebook = self._rulebooks.get(version)
            if rulebook is not None:
                yield rulebook.for_scope(scope), stage, groups[key]

    def _together(
        self, scoped: ScopedRules, stage: Stage, jobs: Sequence[Job]
    ) -> list[tuple[Verdict, ...] | Failure]:
        texts = [text for job in jobs for text in job.texts]
        try:
            verdicts = iter(self._scanner.judge(scoped, stage, texts))
        except OutOfTime:
            return [Failure.DEADLINE] * len(jobs)
        except Exception as error:
            # A defect in a matcher costs the request whose text hit it, and not everybody's: they
            # would be lost with this process, again and again if the text is sent again.
            if len(jobs) > 1:
                return [self._together(scoped, stage, [job])[0] for job in jobs]
            log.error("judging_failed", error=type(error).__name__, at=_place(error), stage=stage)
            return [Failure.WORKER_LOST]
        return [tuple(next(verdicts) for _ in job.texts) for job in jobs]

    def _scores(self, texts: Sequence[str]) -> tuple[CategoryScores, ...] | Failure:
        try:
            return self._scanner.score(texts) if texts else ()
        except OutOfTime:
            return Failure.DEADLINE
        except Exception as error:  # as above
            log.error("scoring_failed", error=type(error).__name__, at=_place(error))
            return Failure.WORKER_LOST


def _place(error: Exception) -> str:
    """Where it was raised. What it says, and what was in hand there, may be somebody's words."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"
