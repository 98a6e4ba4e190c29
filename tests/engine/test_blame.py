"""The policy against a model of the pipeline: a step throws whenever a culprit gives its next
token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engine.blame import Blame
from antiphon.engine.contract import EngineBroken
from antiphon.ids import EngineRequest


def simulate(old: set[int], new: set[int], culprits: set[int], needed: int = 3) -> tuple[set, set]:
    """Run until nobody is left; who finished, who failed. Each needs `needed` tokens."""
    blame = Blame()
    tokens = {request: int(request in old) for request in old | new}
    inside = set(tokens)
    finished: set[int] = set()
    failed: set[int] = set()
    for _ in range(1_000):
        if (trial := blame.next_trial()) is not None:
            inside.add(trial)
        if not inside:
            break
        if inside & culprits:
            live = [EngineRequest(request) for request in sorted(inside)]
            verdict = blame.step_threw(live, {request for request in live if tokens[request]})
            failed |= set(verdict.failed)
            inside -= {*verdict.failed, *verdict.parked}
            continue
        for request in sorted(inside):
            tokens[request] += 1
            if blame.alert:
                blame.gave_token(EngineRequest(request))
            if tokens[request] >= needed:
                blame.forget(EngineRequest(request))
                finished.add(request)
                inside.remove(request)
    return finished, failed


@given(old=st.sets(st.integers(0, 9), max_size=8), new=st.sets(st.integers(10, 14), max_size=4))
def test_a_new_culprit_fails_alone(old: set[int], new: set[int]):
    assert simulate(old, new | {99}, {99}) == (old | new, {99})


def test_two_new_culprits_fail_and_nobody_else():
    assert simulate({1, 2}, {3, 4, 5, 6}, {4, 6}) == ({1, 2, 3, 5}, {4, 6})


def test_a_culprit_that_is_alone_gets_a_second_chance():
    blame = Blame()
    only = EngineRequest(1)

    first = blame.step_threw([only], set())
    assert (first.failed, first.parked) == ([], [only])
    assert blame.next_trial() == only
    second = blame.step_threw([only], set())

    assert second.failed == [only]


def test_only_the_one_on_trial_is_blamed_for_a_throw():
    blame = Blame()
    old, one, two = EngineRequest(1), EngineRequest(2), EngineRequest(3)
    first = blame.step_threw([old, one, two], {old})
    assert first.parked == [one, two]
    assert blame.next_trial() == one

    second = blame.step_threw([old, one], {old})

    # It may have been chance.
    assert (second.failed, second.parked) == ([], [one])
    assert blame.next_trial() == two
    blame.gave_token(two)
    assert blame.next_trial() == one
    third = blame.step_threw([old, one], {old, two})
    assert (third.failed, third.parked) == ([one], [])
    blame.gave_token(two)
    assert not blame.alert


def test_a_throw_by_chance_costs_nobody_who_was_on_trial_then():
    blame = Blame()
    one, two = EngineRequest(1), EngineRequest(2)
    blame.step_threw([one, two], set())
    assert blame.next_trial() == one
    assert blame.step_threw([one], set()).failed == []
    assert blame.next_trial() == two
    blame.gave_token(two)
    assert blame.next_trial() == one
    blame.gave_token(one)

    assert not blame.alert


def test_an_old_request_that_begins_to_throw_ends_in_bounded_time():
    finished, failed = simulate({1, 2, 3}, set(), {2})

    assert 2 in failed
    assert finished | failed == {1, 2, 3}


def test_an_engine_that_always_throws_is_broken():
    blame = Blame()

    def throw_on() -> None:
        for request in range(100):
            blame.step_threw([EngineRequest(request), EngineRequest(request + 1_000)], set())

    with pytest.raises(EngineBroken):
        throw_on()


def test_a_request_that_ends_while_parked_is_not_tried_any_more():
    blame = Blame()
    blame.step_threw([EngineRequest(1), EngineRequest(2)], set())

    blame.forget(EngineRequest(1))

    assert blame.next_trial() == 2
    assert blame.next_trial() is None
    blame.forget(EngineRequest(2))
    assert blame.next_trial() is None


def test_an_innocent_on_trial_is_not_blamed_for_whoever_comes_meanwhile():
    blame = Blame()
    innocent, late = EngineRequest(1), EngineRequest(2)
    blame.step_threw([innocent], set())
    assert blame.next_trial() == innocent

    # Submitted before the first throw was known.
    verdict = blame.step_threw([innocent, late], set())

    assert (verdict.failed, verdict.parked) == ([], [innocent, late])
    assert blame.next_trial() == innocent
    blame.gave_token(innocent)
    assert blame.next_trial() == late
    assert blame.step_threw([innocent, late], {innocent}).failed == []
    assert blame.next_trial() == late
    assert blame.step_threw([innocent, late], {innocent}).failed == [late]


def test_whoever_comes_during_a_trial_waits_for_its_own():
    blame = Blame()
    first, second = EngineRequest(1), EngineRequest(2)
    assert not blame.holds(first)
    blame.step_threw([first], set())
    assert blame.next_trial() == first

    assert blame.holds(second)
    assert blame.next_trial() is None
    blame.forget(first)
    assert blame.next_trial() == second
    blame.gave_token(second)

    assert not blame.holds(EngineRequest(3))
