from itertools import pairwise
from statistics import fmean

import pytest

from antiphon.errors import SettingsError
from antiphon.simulating.load_models import HUNDRED_MILLION, LOADS, TEN_MILLION, Surge, arrivals
from antiphon.simulating.load_models import load_named as named


def of_people(load, **fields):
    whole = {"rate": 20.0, "seconds": 300.0, "seed": 1}
    return [each for each in arrivals(load, **(whole | fields)) if not each.background]


def test_the_loads_are_those_of_the_estimates():
    assert HUNDRED_MILLION.mean_rate == pytest.approx(11_574, rel=1e-3)
    assert TEN_MILLION.mean_rate == pytest.approx(1_736, rel=1e-3)
    # 2.6 million tokens of answers a second at the peak
    assert TEN_MILLION.peak_rate * TEN_MILLION.answer_tokens == pytest.approx(2.6e6, rel=0.01)


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_requests_are_what_the_model_says(load):
    people = of_people(load)

    assert len(people) / 300 == pytest.approx(20, rel=0.1)
    assert fmean(each.output_tokens for each in people) == pytest.approx(
        load.answer_tokens, rel=0.05
    )
    assert max(each.output_tokens for each in people) <= load.longest_answer
    assert fmean(each.priority for each in people) == pytest.approx(load.paid_share, rel=0.35)
    assert fmean(each.leaves_after_s is not None for each in people) == pytest.approx(
        load.hang_up_share, rel=0.25
    )


def test_the_mean_prompt_of_ten_million_users_is_three_thousand_tokens():
    people = of_people(TEN_MILLION)

    assert fmean(each.prompt_tokens for each in people) == pytest.approx(3000, rel=0.1)


def test_a_prompt_is_the_last_one_its_answer_and_a_new_message():
    by_conversation = {}
    for each in of_people(HUNDRED_MILLION):
        by_conversation.setdefault(each.conversation, []).append(each)
    turns = [pair for each in by_conversation.values() for pair in pairwise(each)]

    kept = [(former, again) for former, again in turns if again.prompt_tokens < 6000]
    assert len(kept) > 1000
    assert all(
        again.shared_tokens == former.prompt_tokens + former.output_tokens
        for former, again in kept
        if again.shared_tokens > again.common_tokens
    )


def test_they_come_in_order_and_from_the_first_second_on():
    people = of_people(HUNDRED_MILLION)

    assert all(one.at <= other.at for one, other in pairwise(people))
    assert people[0].at < 1
    assert len([each for each in people if each.at < 30]) == pytest.approx(600, rel=0.2)


def test_a_surge_has_its_rate_and_its_flood():
    people = of_people(HUNDRED_MILLION, seconds=1000.0, surge=Surge(factor=5.0, flood=0.5))

    inside = [each for each in people if 400 <= each.at < 600]
    before = [each for each in people if each.at < 400]
    assert len(inside) / 200 > 2 * len(before) / 400
    assert {each.tenant for each in people if each.tenant == "flood"} == {"flood"}
    assert not any(each.tenant == "flood" for each in before)


def test_each_conversation_has_a_title_made_in_the_background():
    every = list(arrivals(HUNDRED_MILLION, rate=20.0, seconds=100.0, seed=1))

    jobs = [each for each in every if each.background]
    assert len(jobs) / (len(every) - len(jobs)) == pytest.approx(0.2, abs=0.06)
    assert all(each.tenant == "server" for each in jobs)


def test_the_same_seed_gives_the_same_requests():
    assert of_people(TEN_MILLION, seconds=20.0) == of_people(TEN_MILLION, seconds=20.0)
    assert of_people(TEN_MILLION, seconds=20.0) != of_people(TEN_MILLION, seconds=20.0, seed=2)


def test_assumptions_can_be_changed_one_by_one():
    changed = named("10m-users", {"peak": "2", "titles": "false", "turns": "3.5"})

    assert changed.peak_rate == pytest.approx(TEN_MILLION.mean_rate * 2)
    assert (changed.titles, changed.turns) == (False, 3.5)
    assert changed.answer_tokens == TEN_MILLION.answer_tokens


@pytest.mark.parametrize("changes", [{"colour": "1"}, {"peak": "high"}, {"daily_users": ""}])
def test_an_assumption_that_makes_no_sense_is_refused(changes):
    with pytest.raises(SettingsError):
        named("10m-users", changes)


def test_a_load_that_nobody_knows_is_refused():
    with pytest.raises(SettingsError, match="100m-users"):
        named("a-billion-users")
