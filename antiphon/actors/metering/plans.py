"""Which plan counts for whom: the user's own, or the default one. Pure; warns of a name once."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from antiphon.errors import KeySuspended
from antiphon.plan_settings import PlanSettings
from antiphon.quotas import QuotaLimits
from antiphon.settings import Settings

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Plans:
    """As the settings are at each question."""

    settings: Callable[[], Settings]
    _missed: set[str] = field(default_factory=set)

    def name_for(self, given: str | None) -> str | None:
        """The plan that counts for a user who was given this one; None is no limit at all.

        A plan that the settings don't define any more is the default one. Where there is none
        either, nobody said that this user has no limits: raises KeySuspended.
        """
        settings = self.settings()
        if given is None or given in settings.plans:
            return settings.default_plan if given is None else given
        if given not in self._missed:
            self._missed.add(given)
            log.warning("plan_undefined", plan=given, counts=settings.default_plan)
        if settings.default_plan is None:
            raise KeySuspended(f"its plan {given!r} is not defined")
        return settings.default_plan

    def limits_of(self, given: str | None) -> QuotaLimits:
        """Raises KeySuspended."""
        name = self.name_for(given)
        plan = None if name is None else self.settings().plans.get(name)
        return QuotaLimits() if plan is None else quota_limits(plan)


def quota_limits(plan: PlanSettings) -> QuotaLimits:
    """What of a plan the database enforces."""
    return QuotaLimits(
        requests_per_minute=plan.requests_per_minute,
        tokens_per_minute=plan.tokens_per_minute,
        requests_per_day=plan.requests_per_day,
        tokens_per_day=plan.tokens_per_day,
        concurrent=plan.concurrent,
    )
