"""From a score to an action, and back from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.abuse_settings import AbuseSettings
from antiphon.actors.abuse.actions import decide, lasts_s, thresholds
from antiphon.actors.abuse.signals import Action, Kind

LIMITS = thresholds(AbuseSettings(), Kind.USER)
scores = st.floats(0.0, 200.0)


def test_each_threshold_begins_its_action():
    begun = [decide(Action.NONE, score, score, LIMITS) for score in (9.9, 10, 19.9, 20, 29.9, 30)]

    assert begun == [
        *(Action.NONE, Action.WARN, Action.WARN, Action.SLOW, Action.SLOW, Action.SUSPEND)
    ]


def test_an_action_ends_at_half_of_what_it_began_at():
    ended = [decide(Action.SLOW, score, score, LIMITS) for score in (12, 10, 9.9, 5, 4.9)]

    assert ended == [Action.SLOW, Action.SLOW, Action.WARN, Action.WARN, Action.NONE]


@given(scores, st.floats(0.0, 14.9), st.sampled_from(Action))
def test_nobody_is_suspended_unless_blocked_prompts_are_half_of_it(score, of_prompts, current):
    assert decide(current, score, of_prompts, LIMITS) is not Action.SUSPEND


@given(scores, scores, st.sampled_from([Action.NONE, Action.WARN, Action.SLOW]))
def test_more_points_never_bring_less(one, other, current):
    lower, higher = sorted((one, other))

    assert (
        decide(current, lower, lower, LIMITS).severity
        <= decide(current, higher, higher, LIMITS).severity
    )


def test_an_action_that_is_switched_off_never_follows():
    limits = thresholds(AbuseSettings(slow_at=0, suspend_at=0), Kind.USER)

    assert decide(Action.NONE, 1e9, 1e9, limits) is Action.WARN
    assert decide(Action.SLOW, 6.0, 6.0, limits) is Action.WARN
    assert decide(Action.NONE, 1e9, 1e9, {}) is Action.NONE


def test_an_address_is_suspended_only_where_the_settings_say_so():
    assert Action.SUSPEND not in thresholds(AbuseSettings(), Kind.ADDRESS)
    assert Action.SUSPEND in thresholds(AbuseSettings(suspend_addresses=True), Kind.ADDRESS)


def test_how_long_it_lasts_is_until_the_score_is_half_of_the_threshold():
    assert lasts_s(10.0, 10.0, 3600.0) == pytest.approx(3600.0)
    assert lasts_s(40.0, 10.0, 3600.0) == pytest.approx(3 * 3600.0)
    assert lasts_s(5.0, 10.0, 3600.0) == 0.0
