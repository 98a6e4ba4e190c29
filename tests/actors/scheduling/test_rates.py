"""How long a step takes: learned, forgotten, never absurd."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.scheduling import rates
from antiphon.actors.scheduling.equations import solve_positive
from antiphon.actors.scheduling.rates import StepTimes, Work

TRUE = (0.012, 0.0009, 0.0005, 4e-6, 3e-7, 0.02)


def truth(work: Work, slowed: float = 1.0) -> float:
    base, sequence, token, context, attended, reading = TRUE
    return slowed * (
        base
        + sequence * work.decoding
        + token * work.prefill
        + context * work.context
        + attended * work.attended
        + reading * (work.prefill > 0)
    )


def some_work(dice: random.Random) -> Work:
    decoding = dice.randrange(33)
    prefill = dice.choice((0, 0, 0, 40, 128 - decoding))
    return Work(
        decoding=decoding,
        prefill=prefill or (0 if decoding else 20),
        context=decoding * dice.randrange(50, 800),
        attended=prefill * dice.randrange(20, 1500),
    )


def taught(steps: int, *, noise: float = 0.0, slowed: float = 1.0, seed: int = 1) -> StepTimes:
    times = StepTimes()
    teach(times, steps, noise=noise, slowed=slowed, seed=seed)
    return times


def teach(
    times: StepTimes, steps: int, *, noise: float = 0.0, slowed: float = 1.0, seed: int = 1
) -> None:
    dice = random.Random(seed)
    for _ in range(steps):
        work = some_work(dice)
        seconds = truth(work, slowed) * dice.lognormvariate(0.0, noise)
        times.observe(seconds, work.decoding, work.prefill, work.context, work.attended)


def worst_error(times: StepTimes, slowed: float = 1.0) -> float:
    dice = random.Random(99)
    works = [some_work(dice) for _ in range(200)]
    return max(abs(times.step_s(work) / truth(work, slowed) - 1.0) for work in works)


def test_the_parts_of_a_step_are_told_apart():
    assert worst_error(taught(600)) < 0.05


def test_noise_averages_out():
    times = taught(2000, noise=0.2)
    dice = random.Random(99)
    works = [some_work(dice) for _ in range(200)]

    learned = sum(times.step_s(work) for work in works)

    assert learned == pytest.approx(sum(truth(work) for work in works), rel=0.25)


def test_a_machine_that_slows_down_is_followed_within_few_steps():
    times = taught(600)

    teach(times, 12, slowed=2.0, seed=2)

    assert worst_error(times, slowed=2.0) < 0.15


def test_what_slows_everything_down_now_lasts_less_the_further_one_looks():
    times = taught(600)
    teach(times, 3, slowed=2.0, seed=2)

    soon, later = times.weights(1)[0], times.weights(100)[0]

    assert soon > 1.1 * later


def test_a_stall_is_no_step():
    times = taught(600)
    before = times.step_s(Work(decoding=8))

    times.observe(20.0, 8, 0)

    assert times.step_s(Work(decoding=8)) < 3 * before


def test_a_few_steps_are_not_enough_to_be_sure():
    assert not taught(8).confident
    assert taught(100).confident


def test_a_new_host_is_a_new_guess_that_starts_from_the_old_one():
    times = taught(600)
    before = times.step_s(Work(decoding=8))

    times.doubt()

    assert not times.confident
    assert times.step_s(Work(decoding=8)) == pytest.approx(before, rel=0.2)


def test_what_recent_steps_say_nothing_about_stays():
    times = taught(600)
    before = times.weights()[2]

    for step in range(2000):
        decoding = 1 + step % 30
        times.observe(truth(Work(decoding=decoding)), decoding, 0)

    assert times.weights()[2] == pytest.approx(before, rel=0.3)


def test_more_steps_than_a_float_can_weigh_do_no_harm(monkeypatch):
    monkeypatch.setattr(rates, "_GROWTH", 1.2)

    times = taught(5_000)

    assert worst_error(times) < 0.2


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(), st.floats(1e-6, 100.0)),
            *(st.integers(-5, 100_000) for _ in range(4)),
        ),
        max_size=100,
    )
)
def test_nonsense_never_makes_a_step_end_before_it_begins(observed):
    times = StepTimes()

    for seconds, *work in observed:
        times.observe(seconds, *work)

    assert all(0.0 <= weight < 1e9 for weight in times.weights())


def test_a_part_that_would_be_negative_is_left_out():
    rows = [[2.0, 1.0], [1.0, 2.0]]

    assert solve_positive(rows, [3.0, 0.0]) == pytest.approx((1.5, 0.0))


def test_a_system_that_says_nothing_is_solved_all_the_same():
    assert solve_positive([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]) == (0.0, 0.0)
