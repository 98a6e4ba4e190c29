"""What becomes of a request by its predicted time to first token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.actors.scheduling.admission import (
    MoveOn,
    Queue,
    Refuse,
    Take,
    Terms,
    share_of,
    verdict,
)
from antiphon.actors.scheduling.prediction import Prediction

TERMS = Terms(objective_s=2.0, deadline_s=60.0)


def predicted(seconds: float, *, confident: bool = True) -> Prediction:
    return Prediction(wait_s=seconds, prefill_s=0.0, confident=confident)


def test_within_its_objective_it_is_taken():
    assert verdict(predicted(2.0), TERMS, elsewhere=True) == Take()


def test_over_it_somebody_else_is_asked_first():
    assert verdict(predicted(2.1), TERMS, elsewhere=True) == MoveOn()
    assert verdict(predicted(50.0), TERMS, elsewhere=True) == MoveOn()


def test_where_nobody_is_sooner_it_waits_for_a_while():
    assert verdict(predicted(3.9), TERMS, elsewhere=False) == Queue(deadline_s=4.0)


def test_too_late_to_be_worth_it_is_refused_with_when_to_come_again():
    assert verdict(predicted(12.0), TERMS, elsewhere=False) == Refuse(retry_after_s=10.0)


def test_advice_is_what_the_drain_makes_of_it_and_what_clients_heed():
    slowly = verdict(predicted(12.0), TERMS, elsewhere=False, drain=0.5)
    never = verdict(predicted(12.0), TERMS, elsewhere=False, drain=-1.0)
    soon = verdict(predicted(4.1), Terms(objective_s=4.0, deadline_s=4.0), elsewhere=False)

    assert slowly == Refuse(retry_after_s=20.0)
    assert never == Refuse(retry_after_s=60.0)
    assert soon == Refuse(retry_after_s=1.0)


def test_without_an_objective_only_the_queue_bounds_it():
    terms = Terms(objective_s=0.0, deadline_s=60.0)

    assert verdict(predicted(59.0), terms, elsewhere=True) == Take()
    assert verdict(predicted(61.0), terms, elsewhere=False) == Refuse(retry_after_s=1.0)


def test_a_queue_is_never_longer_than_its_deadline():
    terms = Terms(objective_s=20.0, deadline_s=30.0)

    assert verdict(predicted(29.0), terms, elsewhere=False) == Queue(deadline_s=30.0)
    assert isinstance(verdict(predicted(31.0), terms, elsewhere=False), Refuse)


def test_free_is_shed_before_paid():
    paid, free = (
        Terms(objective_s=2.0, deadline_s=60.0, share=share_of(priority, 1)) for priority in (1, 0)
    )
    late = predicted(1.5)

    assert verdict(late, paid, elsewhere=True) == Take()
    assert verdict(late, free, elsewhere=True) == MoveOn()
    assert isinstance(verdict(predicted(2.5), free, elsewhere=False), Refuse)
    assert isinstance(verdict(predicted(2.5), paid, elsewhere=False), Queue)


def test_the_highest_priority_has_its_whole_terms_and_the_lowest_some_of_them():
    assert share_of(5, 5) == share_of(9, 5) == 1.0
    assert share_of(4, 5) == 0.5
    assert share_of(-100, 5) == 0.25


def test_nobody_is_refused_for_a_guess():
    assert verdict(predicted(500.0, confident=False), TERMS, elsewhere=False) == Take()


@given(
    st.floats(0, 1e5),
    st.floats(0, 100),
    st.floats(0.1, 600),
    st.sampled_from([1.0, 0.5, 0.25]),
    st.floats(0, 1e5),
)
def test_the_later_the_worse(first_s, objective_s, deadline_s, share, more_s):
    terms = Terms(objective_s=objective_s, deadline_s=deadline_s, share=share)
    order = [Take, Queue, Refuse]

    sooner = verdict(predicted(first_s), terms, elsewhere=False)
    later = verdict(predicted(first_s + more_s), terms, elsewhere=False)

    assert order.index(type(sooner)) <= order.index(type(later))


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_advice_is_bounded(seconds):
    match verdict(predicted(seconds), Terms(objective_s=1e-9, deadline_s=1e-9), elsewhere=False):
        case Refuse(retry_after_s=advice):
            assert 1.0 <= advice <= 60.0
        case other:
            assert other == Take()
