"""Who can be told from a person by the time between requests, and who can't."""

import random

import pytest

from antiphon.actors.abuse.rhythm import Rhythm
from antiphon.testing.abuse import days_of_a_person


def readings(gaps: list[float]) -> set[str | None]:
    rhythm, now = Rhythm(), 0.0
    found = {rhythm.beat(now)}
    for gap in gaps:
        now += gap
        found.add(rhythm.beat(now))
    return found


def test_a_loop_with_a_pause_is_regular():
    rng = random.Random(1)

    assert readings([30.0 + rng.gauss(0, 0.5) for _ in range(40)]) == {None, "regular"}


def test_what_nobody_could_read_is_fast():
    rng = random.Random(2)

    assert readings([rng.expovariate(1.0) for _ in range(60)]) == {None, "fast"}


def test_a_few_requests_say_nothing():
    assert readings([1.0] * 19) == {None}
    assert readings([1.0] * 20) == {None, "fast"}


def test_a_pause_ends_what_came_before_it():
    assert readings(([1.0] * 15 + [700.0]) * 10) == {None}


@pytest.mark.parametrize("seed", range(20))
def test_a_person_has_no_rhythm(seed: int):
    assert readings(list(days_of_a_person(random.Random(seed), 14))) == {None}


def test_who_becomes_a_person_again_is_one_after_a_while():
    rhythm, now, last = Rhythm(), 0.0, None
    rng = random.Random(3)
    for gap in [1.0] * 30 + [rng.lognormvariate(3.6, 1.0) for _ in range(60)]:
        now += gap
        last = rhythm.beat(now)

    assert last is None
