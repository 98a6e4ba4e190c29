"""How long answers get, and how many slots come free meanwhile."""

import random

import pytest

from antiphon.actors.scheduling.lengths import AnswerLengths
from antiphon.actors.scheduling.mirror import EngineMirror
from antiphon.actors.scheduling.outlook import RELEASE_STEPS
from antiphon.actors.scheduling.releases import expected_releases, steps_until
from antiphon.ids import EngineRequest
from antiphon.workload import WorkloadClass

CHAT = WorkloadClass.INTERACTIVE


def lengths_of(mean: float, *, answers: int = 1000, longest: int = 10_000) -> AnswerLengths:
    dice = random.Random(3)
    lengths = AnswerLengths()
    for _ in range(answers):
        lengths.observe(CHAT, min(int(dice.expovariate(1 / mean)), longest), longest)
    return lengths


def mirror_of(gained: list[int], *, max_tokens: int) -> EngineMirror:
    mirror = EngineMirror(step_tokens=128)
    for number, tokens in enumerate(gained):
        request = EngineRequest(number)
        mirror.begun(request, CHAT, 1, max_tokens, tokens=tokens)
        mirror.stepped([request])
    return mirror


def test_answers_are_as_long_as_they_were():
    assert lengths_of(100).mean(CHAT, 10_000) == pytest.approx(100, rel=0.2)


def test_an_answer_is_no_longer_than_it_may_be():
    assert lengths_of(100).mean(CHAT, 20) <= 20


def test_what_was_cut_off_would_have_gone_on():
    cut = lengths_of(100, longest=64)

    assert cut.mean(CHAT, 64) == pytest.approx(64 * 0.74, rel=0.15)
    assert cut.mean(CHAT, 4096) > 80


def test_lanes_are_told_apart():
    lengths = lengths_of(20)

    assert lengths.mean(WorkloadClass.BACKGROUND, 4096) > 3 * lengths.mean(CHAT, 4096)


def test_an_answer_at_its_bound_is_over():
    lengths = lengths_of(100)

    assert lengths.ended_within(CHAT, 90, 100, (0, 10, 11)) == [pytest.approx(0), 1.0, 1.0]


def test_the_longer_one_waits_the_more_have_ended():
    likely = lengths_of(100).ended_within(CHAT, 50, 10_000, RELEASE_STEPS)

    assert likely == sorted(likely)
    assert likely[0] == pytest.approx(0)
    assert likely[-1] > 0.9


def test_extreme_lengths_do_no_harm():
    lengths = AnswerLengths()

    for tokens, longest in ((0, 0), (-5, 10), (10**9, 10**9), (10**9, 10**12), (1, 0)):
        lengths.observe(CHAT, tokens, longest)

    assert lengths.mean(CHAT, 10**9) > 0
    assert lengths.ended_within(CHAT, 10**9, 10**12, (0, 1, 100_000))[-1] <= 1


def test_the_first_slot_of_many_comes_free_long_before_an_answer_is_over():
    lengths = lengths_of(100)
    many = expected_releases(
        mirror_of([1] * 32, max_tokens=10_000), lengths, next_lane=CHAT, next_max_tokens=10_000
    )
    one = expected_releases(
        mirror_of([1], max_tokens=10_000), lengths, next_lane=CHAT, next_max_tokens=10_000
    )

    assert steps_until(many, 1) < 10
    assert steps_until(one, 1) > 50


def test_whoever_follows_into_a_slot_gives_it_back_again():
    releases = expected_releases(
        mirror_of([1] * 8, max_tokens=64),
        AnswerLengths(),
        next_lane=CHAT,
        next_max_tokens=64,
    )

    rounds = steps_until(releases, 8 * 5) / steps_until(releases, 8)

    assert rounds == pytest.approx(5, rel=0.4)


def test_a_queue_moves_at_the_rate_at_which_answers_end():
    lengths = lengths_of(50)
    releases = expected_releases(
        mirror_of([10] * 16, max_tokens=10_000), lengths, next_lane=CHAT, next_max_tokens=10_000
    )

    assert steps_until(releases, 500) == pytest.approx(500 * 50 / 16, rel=0.3)


def test_of_very_many_a_part_stands_for_all():
    lengths = lengths_of(100)
    few, many = (
        expected_releases(
            mirror_of([5] * count, max_tokens=10_000),
            lengths,
            next_lane=CHAT,
            next_max_tokens=10_000,
        )
        for count in (40, 400)
    )

    assert many[4] == pytest.approx(10 * few[4], rel=0.5)


def test_a_lane_that_may_not_follow_others_waits_for_its_own():
    mirror = EngineMirror(step_tokens=128)
    for number in range(20):
        lane = CHAT if number else WorkloadClass.BACKGROUND
        mirror.begun(EngineRequest(number), lane, 1, 20 if number else 400)
        mirror.stepped([EngineRequest(number)])

    own, all_of_them = (
        expected_releases(mirror, AnswerLengths(), of=of, next_lane=CHAT, next_max_tokens=100)
        for of in (frozenset({WorkloadClass.BACKGROUND}), frozenset(WorkloadClass))
    )

    assert steps_until(all_of_them, 5) < 10
    assert steps_until(own, 1) > 50


def test_those_joining_give_their_slots_back_as_well():
    few, more = (
        expected_releases(
            mirror_of([5] * 4, max_tokens=50),
            AnswerLengths(),
            joining=joining,
            next_lane=CHAT,
            next_max_tokens=50,
        )
        for joining in (0, 12)
    )

    assert steps_until(more, 40) < 0.5 * steps_until(few, 40)
