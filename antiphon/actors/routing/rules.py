"""The settings that routing and admission go by, and what they say of one caller. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from antiphon.actors.scheduling.admission import Terms, share_of
from antiphon.alias_settings import AliasSettings
from antiphon.events import Turn
from antiphon.ids import ModelName
from antiphon.plan_settings import PlanSettings
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.settings import Settings
from antiphon.workload import Workload, WorkloadClass, lane_of

FLEX = "flex"
PRIORITY = "priority"
DEFAULT = "default"
_NO_PLAN = PlanSettings()
"""Who has no plan may have what a plan without limits gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """As the settings are now. `deadline_s` is the longest that anything waits for a slot."""

    aliases: Mapping[str, AliasSettings]
    plans: Mapping[str, PlanSettings]
    default_plan: str | None
    scheduling: SchedulingSettings
    deadline_s: float

    def plan(self, name: str | None) -> PlanSettings | None:
        """The plan of a caller; None for who has none. A name that is no plan any more stands for
        the default one."""
        if name is None or name in self.plans or self.default_plan is None:
            return None if name is None else self.plans.get(name)
        return self.plans.get(self.default_plan)


def rules_of(settings: Settings) -> Rules:
    return Rules(
        aliases=settings.aliases,
        plans=settings.plans,
        default_plan=settings.default_plan,
        scheduling=settings.scheduling,
        deadline_s=settings.queue.deadline_s,
    )


def is_entitled(name: str, plan: PlanSettings | None) -> bool:
    """Whether a caller of this plan may ask for that name."""
    return plan is None or not plan.models or name in plan.models


def names(rules: Rules, models: Sequence[ModelName], plan: PlanSettings | None) -> Iterator[str]:
    """All that may be asked for: models first."""
    return (name for name in (*models, *rules.aliases) if is_entitled(name, plan))


def tier_of(asked: str | None, plan: PlanSettings | None) -> str:
    """The service tier that a request is served in: what was asked for where the plan has it."""
    allowed = (plan or _NO_PLAN).tiers
    return asked if asked in (FLEX, PRIORITY) and asked in allowed else DEFAULT


def workload_of(
    turn: Turn, plan: PlanSettings | None, rules: Rules, *, prompt_tokens: int
) -> Workload:
    """What kind of work a turn is, once its prompt has been counted."""
    tier = tier_of(turn.tier, plan)
    priority = _highest(rules) if plan is None else plan.priority
    return Workload(
        lane=lane_of(
            prompt_tokens=prompt_tokens,
            long_prompt_tokens=rules.scheduling.long_prompt_tokens,
            background=turn.background or tier == FLEX,
            continues_tool=turn.continues_tool,
        ),
        tenant=turn.user or turn.tenant or "",
        priority=priority + (tier == PRIORITY),
        weight=(plan or _NO_PLAN).weight,
        upkeep=turn.upkeep,
    )


def terms_of(workload: Workload, rules: Rules) -> Terms:
    """What a piece of work is promised. First come, first served promises nothing to anybody."""
    settings = rules.scheduling
    objective_s = {
        WorkloadClass.INTERACTIVE: settings.interactive_objective_s,
        WorkloadClass.TOOL: settings.tool_objective_s,
        WorkloadClass.LONG: settings.long_objective_s,
        WorkloadClass.BACKGROUND: settings.background_objective_s,
    }[workload.lane]
    is_fair = settings.policy == "fair"
    waits_long = is_fair and workload.lane is WorkloadClass.BACKGROUND
    return Terms(
        objective_s=objective_s if is_fair else 0.0,
        deadline_s=settings.background_deadline_s if waits_long else rules.deadline_s,
        share=share_of(workload.priority, _highest(rules)),
    )


def _highest(rules: Rules) -> int:
    return max((plan.priority for plan in rules.plans.values()), default=0)
