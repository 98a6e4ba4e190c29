"""Scores decay, add up whatever the order, and are bounded where a signal proves little."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.abuse.scores import Score, decayed
from antiphon.actors.abuse.signals import MOST, Mark, Signal

HALF_LIFE_S = 3_600.0
UNBOUNDED = (Signal.BLOCKED_PROMPT, Signal.JAILBREAK)


def mark(signal: Signal, points: float = 1.0) -> Mark:
    return Mark(signal=signal, points=points, at_ms=0, detail="")


def total(score: Score, now: float, tolerance: float = 0.0) -> float:
    return score.total(now, HALF_LIFE_S, tolerance)


signals = st.sampled_from(Signal)
points = st.floats(0.0, 10.0)
times = st.lists(st.floats(0.0, 20_000.0), min_size=1, max_size=30).map(sorted)


def test_points_are_halved_in_each_half_life():
    score = Score()
    score.add(mark(Signal.JAILBREAK, 8.0), 0.0, HALF_LIFE_S)

    left = [total(score, hours * HALF_LIFE_S) for hours in range(4)]

    assert left == pytest.approx([8.0, 4.0, 2.0, 1.0])


@given(times, st.sampled_from(UNBOUNDED), points, st.floats(0.0, 5_000.0))
def test_the_score_is_the_sum_of_what_is_left_of_each(when, signal, each, later):
    score = Score()
    for now in when:
        score.add(mark(signal, each), now, HALF_LIFE_S)
    end = when[-1] + later

    expected = sum(decayed(each, end - at, HALF_LIFE_S) for at in when)
    assert total(score, end) == pytest.approx(expected)


@given(st.lists(st.tuples(signals, points), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_signals_of_one_moment_is_nothing(marks, rng):
    shuffled = rng.sample(marks, len(marks))
    scores = Score(), Score()
    for score, order in zip(scores, (marks, shuffled), strict=True):
        for signal, each in order:
            score.add(mark(signal, each), 5.0, HALF_LIFE_S)

    assert total(scores[0], 5.0) == pytest.approx(total(scores[1], 5.0))


@given(times, signals)
def test_looking_changes_nothing(when, signal):
    seen, unseen = Score(), Score()
    for now in when:
        seen.add(mark(signal), now, HALF_LIFE_S)
        unseen.add(mark(signal), now, HALF_LIFE_S)
        total(seen, now + 1.0)

    assert total(seen, when[-1] + 7.0) == total(unseen, when[-1] + 7.0)


@given(st.lists(st.tuples(signals, points), max_size=200))
def test_what_proves_little_counts_up_to_its_most(marks):
    score = Score()
    for signal, each in marks:
        score.add(mark(signal, each), 0.0, HALF_LIFE_S)

    for signal, most in MOST.items():
        assert score.points(signal, 0.0, HALF_LIFE_S) <= most


def test_answered_prompts_take_away_from_blocked_ones_and_wrong_keys_alone():
    score = Score()
    for signal in (Signal.BLOCKED_PROMPT, Signal.FAILED_KEY, Signal.FLOOD):
        score.add(mark(signal, 2.0), 0.0, HALF_LIFE_S)
    before = total(score, 0.0, tolerance=0.1)
    for _ in range(30):
        score.answer(0.0, HALF_LIFE_S)
    after = total(score, 0.0, tolerance=0.1)
    for _ in range(1_000):
        score.answer(0.0, HALF_LIFE_S)

    assert (before, after, total(score, 0.0, tolerance=0.1)) == pytest.approx((6.0, 3.0, 2.0))


def test_one_user_alone_brings_no_more_than_a_share_to_an_address():
    score = Score()
    for user in ("a", "b"):
        for _ in range(50):
            score.add_from(user, mark(Signal.JAILBREAK, 3.0), 0.0, HALF_LIFE_S, most=10.0)

    assert total(score, 0.0) == pytest.approx(20.0)
    assert dict(score.brought(HALF_LIFE_S, HALF_LIFE_S)) == pytest.approx({"a": 5.0, "b": 5.0})


def test_what_a_score_remembers_is_bounded():
    score = Score()
    for number in range(10_000):
        score.add_from(str(number), mark(Signal.JAILBREAK), 0.0, HALF_LIFE_S, most=10.0)

    assert len(score.contributors) == 16
    assert len(score.marks) == 8
    assert list(score.contributors) == [str(number) for number in range(9_984, 10_000)]
    assert list(itertools.chain(score.tallies)) == [Signal.JAILBREAK]
