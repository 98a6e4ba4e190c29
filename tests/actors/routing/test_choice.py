"""Which candidate takes a request: taken, moved, to a smaller model, queued, refused."""

from dataclasses import replace

import pytest

from antiphon.actors.routing.choice import Decision, choose
from antiphon.actors.routing.route import (
    Candidate,
    Moved,
    Passed,
    Reason,
    RouteRequest,
    Stay,
    route,
)
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.alias_settings import AliasSettings
from antiphon.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    Overloaded,
    QueueFull,
)
from antiphon.testing.routing import a_pool_view, an_offer, some_pools, some_rules

RULES = some_rules(
    aliases={
        "auto": AliasSettings(models=("big", "long")),
        "canaried": AliasSettings(models=("big",), canary="long", canary_share=1.0),
    }
)
SOON, LATE, NEVER = an_offer(0.5), an_offer(3.0), an_offer(50.0)
TOO_LONG = ContextLengthExceeded(window=512, prompt_tokens=600, max_tokens=1)
FULL = QueueFull(reason="too many requests wait", retry_after_s=3.0)
GONE = EngineUnavailable(retry_after_s=2.0)


def routed(asked, *, last=None, **problems):
    pools = some_pools(
        a_pool_view("big", smaller="small", cost=2.0), a_pool_view("small"), a_pool_view("long")
    )
    for name, problem in problems.items():
        pools[name] = replace(pools[name], problem=problem)
    return route(RouteRequest(asked=asked, last=last), RULES, pools)


def play(found, answers):
    """The decision when each pool that is asked answers so; and who was asked."""
    given, asked = {}, []
    while isinstance(next_one := choose(found, given), Candidate):
        asked.append(next_one.model)
        given[next_one.model] = answers[next_one.model]
    return next_one, asked


def test_the_first_choice_takes_it_and_nobody_else_is_asked():
    decision, asked = play(routed("auto"), {"big": SOON})

    assert asked == ["big"]
    assert decision == Decision(model="big", reasons=(Reason.ALIAS,), predicted_s=0.5)


def test_what_would_be_late_is_moved_to_the_next_pool_and_told_so():
    decision, _ = play(routed("auto"), {"big": LATE, "long": SOON})

    assert (decision.model, decision.moved) == ("long", Moved.OVERLOAD)
    assert decision.passed == (Passed(model="big", reason=Reason.OVERLOAD),)


def test_a_smaller_model_comes_after_every_other_pool():
    decision, asked = play(routed("auto"), {"big": LATE, "long": LATE, "small": SOON})

    assert asked == ["big", "long", "small"]
    assert (decision.model, decision.moved) == ("small", Moved.OVERLOAD)
    assert decision.reasons == (Reason.SMALLER,)


def test_late_everywhere_it_waits_where_it_is_least_late():
    decision, _ = play(routed("big"), {"big": an_offer(3.5), "small": an_offer(3.0)})

    assert (decision.model, decision.reasons) == ("small", (Reason.SMALLER, Reason.QUEUED))
    assert decision.deadline_s == 4.0


def test_of_equally_late_pools_the_cheaper_one_has_it():
    decision, _ = play(routed("big"), {"big": LATE, "small": LATE})

    assert decision.model == "small"


def test_too_late_everywhere_it_is_refused_with_the_soonest_time():
    with pytest.raises(Overloaded) as refusal:
        play(routed("auto"), {"big": NEVER, "long": an_offer(40.0), "small": NEVER})

    assert refusal.value.predicted_s == 40.0
    assert refusal.value.objective_s == 2.0
    assert refusal.value.retry_after_s >= 38.0


def test_a_prompt_too_long_for_one_pool_goes_to_the_next_that_it_fits():
    decision, _ = play(routed("auto"), {"big": TOO_LONG, "long": SOON})

    assert (decision.model, decision.moved) == ("long", Moved.FALLBACK)
    assert decision.passed == (Passed(model="big", reason=Reason.WINDOW),)


def test_a_prompt_too_long_is_not_cut_down_to_a_smaller_model():
    with pytest.raises(ContextLengthExceeded):
        play(routed("big"), {"big": TOO_LONG})


def test_too_long_for_all_is_told_by_the_widest_window():
    wide = replace_window(4096)
    with pytest.raises(ContextLengthExceeded) as refusal:
        play(routed("auto"), {"big": TOO_LONG, "long": wide})

    assert refusal.value is wide


def replace_window(window):
    return ContextLengthExceeded(window=window, prompt_tokens=window + 1, max_tokens=1)


def test_a_pool_that_is_out_is_passed_over_for_its_smaller_model():
    decision, asked = play(routed("big", big=Reason.STARTING), {"small": SOON})

    assert asked == ["small"]
    assert (decision.model, decision.moved) == ("small", Moved.FALLBACK)
    assert decision.passed == (Passed(model="big", reason=Reason.STARTING),)


def test_a_pool_that_is_out_is_asked_when_there_is_no_other():
    decision, asked = play(routed("small", small=Reason.STARTING), {"small": SOON})

    assert asked == ["small"]
    assert (decision.model, decision.moved) == ("small", None)


def test_nobody_waits_for_an_engine_who_can_wait_in_a_queue():
    decision, asked = play(routed("auto", long=Reason.STARTING), {"big": LATE, "small": LATE})

    assert "long" not in asked
    assert Reason.QUEUED in decision.reasons


def test_what_turns_out_full_goes_on_to_the_next():
    decision, _ = play(routed("auto"), {"big": FULL, "long": SOON})

    assert (decision.model, decision.moved) == ("long", Moved.OVERLOAD)
    assert decision.passed == (Passed(model="big", reason=Reason.FULL),)


def test_what_turns_out_gone_goes_on_to_the_next():
    decision, _ = play(routed("auto"), {"big": GONE, "long": SOON})

    assert (decision.model, decision.moved) == ("long", Moved.FALLBACK)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"big": FULL, "small": FULL}, FULL),
        ({"big": GONE, "small": GONE}, GONE),
        ({"big": FULL, "small": GONE}, FULL),
        ({"big": GONE, "small": TOO_LONG}, GONE),
    ],
)
def test_taken_by_nobody_it_fails_with_what_can_be_tried_again(answers, error):
    with pytest.raises(type(error)):
        play(routed("big"), answers)


def test_a_pool_that_refused_is_not_chosen_for_being_late_elsewhere():
    decision, _ = play(routed("auto"), {"big": FULL, "long": LATE, "small": TOO_LONG})

    assert decision.model == "long"


def test_a_request_that_no_engine_can_do_is_the_clients_fault():
    found = replace(routed("small"), candidates=())

    with pytest.raises(InvalidRequest):
        choose(found, {})


def test_a_canary_says_so_and_what_stays_says_why_it_came():
    canary, _ = play(routed("canaried"), {"long": SOON})
    stays, _ = play(routed("auto", last=Stay(model="long", moved=Moved.OVERLOAD)), {"long": SOON})

    assert (canary.model, canary.moved, canary.reasons) == (
        "long",
        Moved.CANARY,
        (Reason.CANARY,),
    )
    assert (stays.model, stays.moved, stays.reasons) == (
        "long",
        Moved.OVERLOAD,
        (Reason.AFFINITY,),
    )


def test_back_from_an_overloaded_canary_is_no_move():
    decision, _ = play(routed("canaried"), {"long": LATE, "big": SOON})

    assert (decision.model, decision.moved) == ("big", None)


def test_nobody_is_refused_over_a_guess():
    unsure = replace(NEVER, prediction=Prediction(wait_s=50.0, prefill_s=0.0, confident=False))
    decision, _ = play(routed("small"), {"small": unsure})

    assert decision.model == "small"


def test_without_a_prediction_it_is_taken():
    decision, _ = play(routed("small"), {"small": replace(SOON, prediction=None)})

    assert (decision.model, decision.predicted_s) == ("small", None)
