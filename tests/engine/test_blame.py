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

    assert second.failed == [one]
    assert second.parked == []
    assert blame.next_trial() == two
    blame.gave_token(two)
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
