"""What is remembered of turns, and how it is told."""

import pytest

from antiphon.events import CancelCause, EndReason
from antiphon.http.ops.pulse import Pulse
from antiphon.http.ops.summary import phrase, quantile, summarised, told
from antiphon.http.ops.timelines import Timelines
from antiphon.ids import EngineRequest, ModelName, RequestId, SlotIndex
from antiphon.moments import (
    Arrived,
    CancelAsked,
    Ended,
    EngineLost,
    FirstShown,
    FirstToken,
    Freed,
    Granted,
    InputJudged,
    Moment,
    OutputBlocked,
    Paused,
    Placed,
    Queued,
    Unplaced,
)
from antiphon.views import Fate, Manifest, ManifestRun, PieceKind
from antiphon.workload import WorkloadClass

MODEL = ModelName("m")
ONE = EngineRequest(1)
MANIFEST = Manifest(
    window=2048,
    reserved_for_answer=512,
    prompt_tokens=40,
    template_tokens=4,
    truncation="auto",
    runs=(
        ManifestRun(kind=PieceKind.HISTORY, fate=Fate.DROPPED, items=3, tokens=90, shown_tokens=0),
        ManifestRun(kind=PieceKind.INPUT, fate=Fate.SHOWN, items=1, tokens=36, shown_tokens=36),
    ),
)


def arrived(**fields) -> Arrived:
    base = {"asked": MODEL, "response": None, "user": None, "messages": 1, "choices": 1}
    return Arrived(**(base | fields))


PLACED = Placed(
    model=MODEL,
    moved=None,
    reasons=("only_one",),
    passed=(),
    predicted_s=0.2,
    prompt_tokens=40,
    max_tokens=512,
    manifest=MANIFEST,
)
QUEUED = Queued(lane=WorkloadClass.INTERACTIVE, generations=1, slots=8, running=8, waiting=2)
GRANTED = Granted(generation=ONE, slot=SlotIndex(3), waited_s=1.5)
FREED = Freed(generation=ONE, slot=SlotIndex(3), reason=EndReason.STOP, tokens=11)
A_TURN: tuple[tuple[float, Moment], ...] = (
    (0.0, arrived(response="resp_1")),
    (0.01, PLACED),
    (0.02, QUEUED),
    (1.5, GRANTED),
    (2.0, FirstToken(generation=ONE)),
    (2.25, FirstShown()),
    (4.0, Ended(reason="stop", prompt_tokens=40, cached_tokens=16, completion_tokens=11)),
    (4.01, FREED),
)


def noted(*moments: tuple[float, Moment], request: str = "req_1", began: float = 100.0):
    lines = Timelines()
    for at_s, moment in moments:
        lines.note(RequestId(request), moment, began + at_s, 1_900_000_000.0 + at_s)
    return lines


def test_a_turn_is_told_by_where_its_time_went():
    [line] = noted(*A_TURN)

    summary = summarised(line, 200.0)

    assert (summary.state, summary.model, summary.lane) == ("stop", MODEL, "interactive")
    assert summary.queued_s == 1.5
    assert summary.prefill_s == 0.5
    assert summary.first_token_s == 2.0
    assert summary.held_back_s == 0.25
    assert summary.writing_s == 2.0
    assert summary.total_s == 4.0
    assert summary.tokens_per_second == 5.0
    assert (summary.prompt_tokens, summary.cached_tokens) == (40, 16)


def test_every_moment_is_told_with_its_time_also_what_comes_after_the_end():
    [line] = noted(*A_TURN)

    story = told(line, 200.0)

    assert [entry.at_s for entry in story.moments] == [at_s for at_s, _ in A_TURN]
    assert story.moments[-1].moment == FREED
    assert story.manifest == MANIFEST


@pytest.mark.parametrize(
    ("reached", "state"),
    [(1, "placing"), (2, "placing"), (3, "queued"), (4, "prefill"), (5, "writing")],
)
def test_a_turn_that_runs_says_what_it_is_at(reached: int, state: str):
    [line] = noted(*A_TURN[:reached])

    assert summarised(line, 103.0).state == state
    assert summarised(line, 103.0).total_s == 3.0


def test_a_paused_turn_is_paused_until_it_goes_on():
    moments = (*A_TURN[:5], (2.5, Paused(generation=ONE, tokens=3)))
    [paused] = noted(*moments)
    again = Granted(generation=ONE, slot=SlotIndex(0), waited_s=1.0, resumed=True)
    [resumed] = noted(*moments, (3.0, again))

    assert (summarised(paused, 103.0).state, summarised(paused, 103.0).pauses) == ("paused", 1)
    assert summarised(resumed, 103.0).state == "writing"


def test_what_has_not_happened_has_no_time():
    [line] = noted((0.0, arrived()), (5.0, Ended(reason="error", error="QueueFull")))

    summary = summarised(line, 200.0)

    assert (summary.queued_s, summary.prefill_s, summary.first_token_s) == (None, None, None)
    assert (summary.tokens_per_second, summary.error) == (None, "QueueFull")


def test_ends_are_counted_by_cause_by_error_and_by_reason():
    lines = Timelines()
    for name, *moments in (
        ("a", Ended(reason="stop")),
        ("b", Ended(reason="error", error="HostLost")),
        ("c", CancelAsked(cause=CancelCause.DISCONNECT), Ended(reason="abort", error="X")),
        ("d", Ended(reason="stop")),
    ):
        for moment in (arrived(), *moments):
            lines.note(RequestId(name), moment, 1.0, 2.0)

    assert lines.ends == {"stop": 2, "HostLost": 1, "cancelled: disconnect": 1}


def test_a_turn_ends_once():
    lines = noted(*A_TURN, (5.0, Ended(reason="error", error="ActorCrashed")))

    [line] = lines
    assert summarised(line, 200.0).state == "stop"
    assert lines.ends == {"stop": 1}


def test_the_oldest_ended_turns_go_and_those_that_run_stay():
    lines = Timelines(ended=3)
    lines.note(RequestId("long"), arrived(), 0.0, 0.0)
    for number in range(10):
        lines.note(RequestId(f"req_{number}"), arrived(), 1.0 + number, 0.0)
        lines.note(RequestId(f"req_{number}"), Ended(reason="stop"), 1.5 + number, 0.0)

    assert [line.request_id for line in lines] == ["long", "req_9", "req_8", "req_7"]
    assert lines.find("req_6") is None
    assert lines.ends == {"stop": 10}


def test_memory_is_bounded_also_if_no_end_is_ever_noted():
    lines = Timelines(running=4)
    for number in range(10):
        lines.note(RequestId(f"req_{number}"), arrived(), float(number), 0.0)

    assert lines.running == 4


def test_moments_of_one_turn_are_bounded_and_its_end_is_kept():
    many = [(0.1 * number, Paused(generation=ONE, tokens=1)) for number in range(1, 300)]

    [line] = noted((0.0, arrived()), *many, (60.0, Ended(reason="stop")))

    assert len(line.noted) == 97
    assert line.missed == 299 - 96
    assert isinstance(line.noted[-1].moment, Ended)


def test_a_turn_is_found_by_its_request_and_by_its_response():
    lines = noted(*A_TURN)

    assert lines.find("req_1") is lines.find("resp_1") is not None
    assert lines.find("req_2") is None


def test_of_two_turns_with_the_same_request_id_the_last_counts():
    lines = noted(*A_TURN)
    lines.note(RequestId("req_1"), arrived(), 110.0, 0.0)

    [line] = lines
    assert summarised(line, 111.0).state == "placing"


def test_news_of_a_turn_that_nobody_remembers_are_dropped():
    lines = noted((0.0, FREED), (1.0, Ended(reason="stop")))

    assert list(lines) == []
    assert not lines.ends


@pytest.mark.parametrize(
    ("moment", "what", "particulars"),
    [
        (arrived(), "arrived", "1 message"),
        (arrived(upkeep=True, messages=2, choices=3), "arrived", "own work, 2 messages, 3 choices"),
        (InputJudged(seconds=0.012), "input judged", "passed after 12 ms"),
        (InputJudged(seconds=0.5, rule="secrets"), "input blocked", "by secrets after 500 ms"),
        (PLACED, "placed", "m, 40 prompt tokens, only one, first token predicted after 200 ms"),
        (Unplaced(passed=((MODEL, "too_long"),)), "not placed", "m (too long)"),
        (Unplaced(passed=()), "not placed", "no pool takes it"),
        (QUEUED, "queued", "lane interactive, 8 of 8 slots in use, 2 waiting"),
        (GRANTED, "prefill", "slot 3, after waiting 1.50 s"),
        (FirstToken(generation=ONE), "first token", ""),
        (FirstShown(), "first text leaves", ""),
        (Paused(generation=ONE, tokens=1), "paused", "after 1 token, for somebody urgent"),
        (OutputBlocked(choices=1), "output blocked", "1 choice"),
        (EngineLost(error="HostLost"), "engine lost", "HostLost; placed once more"),
        (CancelAsked(cause=CancelCause.SLOW_READER), "cancelled", "slow reader"),
        (FREED, "slot free", "slot 3, 11 tokens, stop"),
        (Ended(reason="error", error="HostLost"), "ended", "error: HostLost"),
        (
            Ended(
                reason="stop",
                prompt_tokens=9,
                cached_tokens=4,
                completion_tokens=2,
                longest_gap_s=12.34,
            ),
            "ended",
            "stop, 2 tokens, longest gap 12.34 s, 4 of 9 prompt tokens cached",
        ),
    ],
)
def test_each_moment_has_its_words(moment: Moment, what: str, particulars: str):
    said = phrase(moment)

    assert said[0] == what
    assert said[1].endswith(particulars)
    assert bool(said[1]) == bool(particulars)


def test_what_a_choice_was_moved_for_is_told():
    moved = Placed(
        model=ModelName("small"),
        moved="overload",
        reasons=("smaller",),
        passed=((MODEL, "too_late"),),
        predicted_s=None,
        prompt_tokens=1,
        max_tokens=2,
    )

    assert phrase(moved)[1] == (
        "small, 1 prompt token, instead of what was asked for: overload, smaller, "
        "passed over m (too late)"
    )


def test_a_quantile_is_one_of_the_values():
    assert quantile([], 0.5) is None
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0, 2.0], 0.95) == 2.0
    assert quantile([5.0], 1.0) == 5.0


def test_the_pulse_counts_whole_seconds_of_the_last_minute():
    pulse = Pulse()
    pulse.add(MODEL, 5, 100.1)
    pulse.add(MODEL, 3, 100.9)
    pulse.add(MODEL, 8, 102.0)
    pulse.add(MODEL, 1000, 103.2)

    assert pulse.last_minute(MODEL, 103.5)[-4:] == (0, 8, 0, 8)
    assert len(pulse.last_minute(MODEL, 103.5)) == 60
    assert pulse.per_second(MODEL, 103.5) == 1.6


def test_the_pulse_of_a_model_that_rests_fades():
    pulse = Pulse()
    pulse.add(MODEL, 5, 100.0)

    assert pulse.per_second(MODEL, 105.0) == 0.5
    assert sum(pulse.last_minute(MODEL, 200.0)) == 0
    assert pulse.per_second(ModelName("other"), 100.0) == 0.0
