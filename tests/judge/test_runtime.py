"""What a judge does between its frames, without a process around it."""

import time
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from antiphon.judge import runtime as room
from antiphon.judge.runtime import JudgeRuntime
from antiphon.judge.wire import encode_command, encode_frame, frame_decoder
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
    JudgeReady,
    Load,
    Loaded,
    Unusable,
)
from antiphon.testing.judge_process import BAD, CRASHES, ToyScorer
from antiphon.verdicts import Failure, PolicyScope, Stage, Verdict

RULES = """
format = 1
version = "one"

[[rules]]
id = "no-apples"
stages = ["input"]
match = { kind = "phrases", phrases = ["apple pie"] }

[[rules]]
id = "no-harm"
stages = ["input"]
match = { kind = "classifier" }

[[rules]]
id = "not-for-pros"
stages = ["input"]
match = { kind = "phrases", phrases = ["pear"] }
plans = ["free"]
"""
LOAD = Load(version="one", source="rules.toml", text=RULES)
EVERYBODY = PolicyScope()


class Wire:
    """Commands that a test has queued, a list at a time; frames as they were sent."""

    def __init__(self, *commands: JudgeCommand) -> None:
        self.waiting = list(commands)
        self.frames: list[JudgeFrame] = []
        self._decoder = frame_decoder()

    def receive(self, timeout_s: float, also: Sequence[int] = ()) -> list[JudgeCommand]:
        commands, self.waiting = self.waiting, []
        return commands

    def send(self, frames: bytes | bytearray) -> None:
        self.frames += self._decoder.feed(bytes(frames))


class CountingScorer(ToyScorer):
    def __init__(self) -> None:
        self.calls: list[int] = []

    def scores(self, texts, *, light=False):
        self.calls.append(len(texts))
        return super().scores(texts, light=light)


def told(*commands: JudgeCommand, scorer: ToyScorer | None = None) -> list[JudgeFrame]:
    wire = Wire(*commands)
    JudgeRuntime(wire, scorer or ToyScorer()).turn()
    return wire.frames


def job(*texts: str, version: str = "one", scope: PolicyScope = EVERYBODY) -> Job:
    return Job(version=version, scope=scope, stage=Stage.INPUT, texts=texts)


def rules_of(verdicts: tuple[Verdict, ...] | Failure) -> list[list[str]]:
    assert not isinstance(verdicts, Failure)
    return [[finding.rule for finding in verdict.findings] for verdict in verdicts]


def judged(frames: list[JudgeFrame]) -> Judged:
    [answer] = [frame for frame in frames if isinstance(frame, Judged)]
    return answer


def test_texts_are_judged_by_the_rules_that_were_loaded():
    frames = told(
        LOAD, Batch(budget_s=60.0, number=7, jobs=(job("an apple pie", BAD), job("a pear")))
    )

    assert frames[0] == Loaded(version="one")
    answer = judged(frames)
    assert answer.number == 7
    assert [rules_of(each) for each in answer.verdicts] == [[["no-apples"], ["no-harm"]], [[]]]
    assert not isinstance(answer.verdicts[0], Failure)
    scores = answer.verdicts[0][1].scores
    assert scores is not None
    assert (scores.model, scores.flagged) == ("toy", frozenset({"violence"}))


def test_texts_of_many_requests_are_scored_together():
    scorer = CountingScorer()
    free = PolicyScope(plan="free")
    jobs = (job("a", "b"), job("a pear", scope=free), job("c"), job("d", scope=free))

    answer = judged(told(LOAD, Batch(budget_s=60.0, number=1, jobs=jobs), scorer=scorer))

    assert scorer.calls[1:] == [3, 2], "the first one was the sample's"
    assert [rules_of(each) for each in answer.verdicts] == [
        [[], []],
        [["not-for-pros"]],
        [[]],
        [[]],
    ]


def test_what_it_has_no_rules_for_is_said_not_to_be_judged():
    answer = judged(
        told(LOAD, Batch(budget_s=60.0, number=1, jobs=(job("a", version="two"), job("b"))))
    )

    assert answer.verdicts[0] is Failure.WORKER_LOST
    assert rules_of(answer.verdicts[1]) == [[]]


def test_forgotten_rules_are_gone():
    answer = judged(
        told(LOAD, Forget(version="one"), Batch(budget_s=60.0, number=1, jobs=(job("a"),)))
    )

    assert answer.verdicts == (Failure.WORKER_LOST,)


def test_rules_that_it_can_not_use_are_refused_with_what_is_wrong():
    [frame] = told(Load(version="x", source="rules.toml", text=RULES.replace("phrases", "frases")))

    assert isinstance(frame, Unusable)
    assert frame.problem.startswith("rules.toml:")


def test_a_defect_costs_the_request_that_hit_it_and_nobody_else():
    jobs = (job("an apple pie"), job("fine", f"it {CRASHES}"), job(BAD))

    with capture_logs() as logs:
        answer = judged(told(LOAD, Batch(budget_s=60.0, number=1, jobs=jobs)))

    assert [isinstance(each, Failure) for each in answer.verdicts] == [False, True, False]
    assert rules_of(answer.verdicts[0]) == [["no-apples"]]
    assert rules_of(answer.verdicts[2]) == [["no-harm"]]
    assert [(each["event"], each["error"]) for each in logs] == [("judging_failed", "ValueError")]


class SlowScorer(ToyScorer):
    """A second for each text, on a clock that it moves; it stops where one has run out."""

    def __init__(self, now: list[float]) -> None:
        self.now = now
        self.seen: list[str] = []

    def scores(self, texts, *, light=False):
        self.now[0] += len(texts)
        self.seen += texts
        return super().scores(texts, light=light)


@pytest.fixture(name="now")
def _now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_what_takes_too_long_is_given_up_and_said(now: list[float]):
    scorer = SlowScorer(now)
    many = job(*(f"text {number}" for number in range(100)))

    answer = judged(told(LOAD, Batch(number=1, budget_s=20.0, jobs=(many,)), scorer=scorer))

    assert answer.verdicts == (Failure.DEADLINE,)
    assert scorer.seen[0] == SAMPLE
    assert len(scorer.seen[1:]) == 24, "a few at a time, until the time has run out"


def test_the_time_runs_out_on_the_longest(now: list[float]):
    long, short = job(*["x" * 1_000] * 30), job("short")

    answer = judged(
        told(LOAD, Batch(number=1, budget_s=10.0, jobs=(long, short)), scorer=SlowScorer(now))
    )

    assert answer.verdicts[0] is Failure.DEADLINE
    assert rules_of(answer.verdicts[1]) == [[]]


def test_scoring_has_the_same_bound(now: list[float]):
    texts = tuple(f"text {number}" for number in range(100))

    answer = judged(told(Batch(number=1, budget_s=20.0, scored=texts), scorer=SlowScorer(now)))

    assert answer.scores is Failure.DEADLINE


def test_it_says_that_it_lives_in_the_middle_of_its_work(now: list[float]):
    many = job(*(f"text {number}" for number in range(40)))

    frames = told(LOAD, Batch(number=1, budget_s=1000.0, jobs=(many,)), scorer=SlowScorer(now))

    frames = frames[frames.index(Loaded(version="one")) :]
    assert [type(frame) for frame in frames] == [Loaded, *[Beat] * 5, Judged]


def test_scores_need_no_rules():
    answer = judged(told(Batch(budget_s=60.0, number=1, scored=(BAD, "fine"))))

    assert not isinstance(answer.scores, Failure)
    assert [(each.model, sorted(each.flagged)) for each in answer.scores] == [
        ("toy", ["violence"]),
        ("toy", []),
    ]


def test_a_defect_while_scoring_is_said():
    with capture_logs():
        answer = judged(told(Batch(budget_s=60.0, number=1, scored=(CRASHES,))))

    assert answer.scores is Failure.WORKER_LOST


def test_a_halt_ends_it():
    assert not JudgeRuntime(Wire(HaltJudge()), ToyScorer()).turn()


def test_it_says_that_it_lives_when_it_has_nothing_else_to_say(now: list[float]):
    wire = Wire()
    judge = JudgeRuntime(wire, ToyScorer())
    judge.turn()
    now[0] += room.BEAT_S
    judge.turn()
    judge.turn()
    assert wire.frames == [Beat()]

    wire.waiting = [Batch(number=1, budget_s=1.0)]
    now[0] += room.BEAT_S
    judge.turn()

    assert wire.frames == [Beat(), Judged(number=1)]


@pytest.mark.parametrize(
    "frame",
    [
        JudgeReady(pid=1, model="toy"),
        Loaded(version="one"),
        Unusable(version="one", problem="no"),
        Judged(
            number=1,
            verdicts=(Failure.DEADLINE, (Verdict(version="one"),)),
            scores=Failure.WORKER_LOST,
        ),
        Beat(),
    ],
)
def test_frames_survive_the_wire(frame: JudgeFrame):
    assert frame_decoder().feed(encode_frame(frame)) == [frame]


@pytest.mark.parametrize(
    "command",
    [
        LOAD,
        Forget(version="one"),
        Batch(budget_s=60.0, number=1, jobs=(job("a"),), scored=("b",)),
        HaltJudge(),
    ],
)
def test_commands_survive_the_wire(command: JudgeCommand):
    from antiphon.judge.wire import command_decoder

    assert command_decoder().feed(encode_command(command)) == [command]
