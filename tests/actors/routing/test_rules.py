"""What the settings say of one caller."""

import pytest

from antiphon.actors.routing.rules import terms_of, tier_of, workload_of
from antiphon.plan_settings import PlanSettings
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.testing.rig import a_turn
from antiphon.testing.routing import some_rules
from antiphon.workload import Workload, WorkloadClass

PAID = PlanSettings(priority=2, weight=3.0, tiers=("default", "flex", "priority"))
FREE = PlanSettings()
RULES = some_rules(plans={"paid": PAID, "free": FREE})


@pytest.mark.parametrize(
    ("asked", "plan", "tier"),
    [
        (None, FREE, "default"),
        ("auto", PAID, "default"),
        ("scale", PAID, "default"),
        ("flex", FREE, "flex"),
        ("flex", PlanSettings(tiers=("default",)), "default"),
        ("priority", FREE, "default"),
        ("priority", PAID, "priority"),
        ("priority", None, "default"),
        ("flex", None, "flex"),
    ],
)
def test_a_tier_is_what_was_asked_for_where_the_plan_has_it(asked, plan, tier):
    assert tier_of(asked, plan) == tier


@pytest.mark.parametrize(
    ("fields", "tokens", "lane"),
    [
        ({}, 10, WorkloadClass.INTERACTIVE),
        ({"continues_tool": True}, 10, WorkloadClass.TOOL),
        ({}, 1024, WorkloadClass.LONG),
        ({"continues_tool": True}, 1024, WorkloadClass.LONG),
        ({"background": True}, 1024, WorkloadClass.BACKGROUND),
        ({"tier": "flex"}, 10, WorkloadClass.BACKGROUND),
    ],
)
def test_a_lane_goes_by_what_is_known_of_the_turn(fields, tokens, lane):
    assert workload_of(a_turn("a", **fields), FREE, RULES, prompt_tokens=tokens).lane is lane


def test_the_server_s_own_work_is_known_as_such():
    turn = a_turn("a", background=True, upkeep=True)

    assert workload_of(turn, None, RULES, prompt_tokens=1).upkeep
    assert not workload_of(a_turn("a", background=True), None, RULES, prompt_tokens=1).upkeep


def test_a_plan_gives_priority_and_weight():
    turn = a_turn("a", user="u1", tenant="t1", tier="priority")

    assert workload_of(turn, PAID, RULES, prompt_tokens=1) == Workload(
        tenant="u1", priority=3, weight=3.0
    )


def test_who_has_no_plan_is_shed_last():
    turn = a_turn("a", tenant="t1")

    assert workload_of(turn, None, RULES, prompt_tokens=1) == Workload(tenant="t1", priority=2)


def test_free_is_shed_before_paid():
    free = terms_of(workload_of(a_turn("a"), FREE, RULES, prompt_tokens=1), RULES)
    paid = terms_of(workload_of(a_turn("a"), PAID, RULES, prompt_tokens=1), RULES)

    assert free.bound_s < paid.bound_s == 2.0


def test_first_come_first_served_promises_nothing():
    rules = some_rules(scheduling=SchedulingSettings(policy="fcfs"))

    assert terms_of(Workload(), rules).objective_s == 0.0
    assert terms_of(Workload(), RULES).objective_s == 2.0
