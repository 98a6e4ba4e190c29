"""Values for tests of routing: pools as it sees them, rules, and predictions."""

from typing import Any

from antiphon.actors.routing.choice import Offer
from antiphon.actors.routing.route import PoolView
from antiphon.actors.routing.rules import Rules
from antiphon.actors.scheduling.admission import Terms
from antiphon.actors.scheduling.prediction import Prediction
from antiphon.ids import ModelName
from antiphon.scheduling_settings import SchedulingSettings


def a_pool_view(model: str, **fields: Any) -> PoolView:
    """A pool that works; `fields` overlay it."""
    return PoolView(**{"model": ModelName(model), "window": 512, **fields})


def some_pools(*views: PoolView) -> dict[ModelName, PoolView]:
    return {view.model: view for view in views}


def some_rules(**fields: Any) -> Rules:
    """Without aliases and plans; `fields` overlay them."""
    return Rules(
        **{
            "aliases": {},
            "plans": {},
            "default_plan": None,
            "scheduling": SchedulingSettings(),
            "deadline_s": 60.0,
            **fields,
        }
    )


def an_offer(ttft_s: float, *, objective_s: float = 2.0, deadline_s: float = 60.0) -> Offer:
    """That the first token would come so soon."""
    return Offer(
        prediction=Prediction(wait_s=ttft_s, prefill_s=0.0),
        terms=Terms(objective_s=objective_s, deadline_s=deadline_s),
    )
