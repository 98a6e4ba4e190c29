"""Which plan counts for whom."""

import pytest
import structlog

from antiphon.actors.metering.plans import Plans, quota_limits
from antiphon.errors import KeySuspended
from antiphon.plan_settings import PlanSettings
from antiphon.quotas import QuotaLimits
from antiphon.settings import Settings

FREE = PlanSettings(requests_per_minute=3, concurrent=1)
PAID = PlanSettings(tokens_per_day=1000)
SETTINGS = Settings(plans={"free": FREE, "paid": PAID}, default_plan="free")


def plans(settings: Settings = SETTINGS) -> Plans:
    return Plans(lambda: settings)


@pytest.mark.parametrize(("given", "counts"), [("paid", "paid"), ("free", "free"), (None, "free")])
def test_ones_own_plan_counts_and_else_the_default_one(given, counts):
    assert plans().name_for(given) == counts


def test_without_plans_nothing_is_limited():
    assert plans(Settings()).name_for(None) is None
    assert plans(Settings()).limits_of(None) == QuotaLimits()


def test_a_plan_that_is_not_defined_any_more_is_the_default_one_and_told_once():
    some = plans()

    with structlog.testing.capture_logs() as logs:
        assert [some.name_for("gold") for _ in range(3)] == ["free"] * 3
        assert some.limits_of("gold") == quota_limits(FREE)

    assert [line["plan"] for line in logs if line["event"] == "plan_undefined"] == ["gold"]


def test_a_plan_that_is_not_defined_is_never_no_limit():
    with pytest.raises(KeySuspended) as caught:
        plans(Settings(plans={"free": FREE})).limits_of("gold")

    assert "gold" in str(caught.value)


def test_a_plans_limits_are_read_when_they_are_asked_for():
    settings = [SETTINGS]
    some = Plans(lambda: settings[0])
    assert some.limits_of("paid") == QuotaLimits(tokens_per_day=1000)

    settings[0] = Settings(plans={"paid": PlanSettings(tokens_per_day=5)})

    assert some.limits_of("paid") == QuotaLimits(tokens_per_day=5)


def test_every_number_of_a_plan_that_bounds_use_reaches_the_database():
    names = QuotaLimits.__dataclass_fields__
    plan = PlanSettings(**{name: number for number, name in enumerate(names, 1)})

    limits = quota_limits(plan)

    assert [getattr(limits, name) for name in names] == list(range(1, len(names) + 1))
    assert limits.any
    assert not QuotaLimits().any
    assert all(QuotaLimits(**{name: 1}).any for name in names)
