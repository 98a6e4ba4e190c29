"""How a pool's slots are shared, and how much may wait: what an operator may change meanwhile."""

import math
from dataclasses import dataclass

from antiphon.actors.scheduling.tickets import Ticket
from antiphon.scheduling_settings import SchedulingSettings
from antiphon.workload import WorkloadClass

AGED_EVERY = 4
"""Of so many grants in a row, one goes to what has aged."""
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBounds:
    """How much may wait in one lane: requests, their prompt plus longest answer in tokens, and
    seconds. Lanes have a queue each, so that a backlog of one closes no other."""

    max_requests: int
    max_tokens: int
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The bounds and the settings, and what follows from them."""

    bounds: QueueBounds
    scheduling: SchedulingSettings = SchedulingSettings()

    @property
    def fair(self) -> bool:
        """False is first come, first served."""
        return self.scheduling.policy == "fair"

    def weight(self, lane: WorkloadClass) -> float:
        settings = self.scheduling
        match lane:
            case WorkloadClass.INTERACTIVE:
                weight = settings.interactive_weight
            case WorkloadClass.TOOL:
                weight = settings.tool_weight
            case WorkloadClass.LONG:
                weight = settings.long_weight
            case WorkloadClass.BACKGROUND:
                weight = settings.background_weight
        return max(weight, _LEAST_WEIGHT)

    def deadline_s(self, lane: WorkloadClass) -> float:
        if self.fair and lane is WorkloadClass.BACKGROUND:
            return self.scheduling.background_deadline_s
        return self.bounds.deadline_s

    def reserve(self, slots: int) -> int:
        """Slots that only urgent lanes may use; never all."""
        return min(math.ceil(self.scheduling.interactive_reserve * slots), slots - 1)

    def is_long(self, ticket: Ticket) -> bool:
        """Whether its prefill would be felt by all others, whatever its lane."""
        return (
            ticket.workload.lane is WorkloadClass.LONG
            or ticket.prompt_tokens >= self.scheduling.long_prompt_tokens
        )


def is_urgent(lane: WorkloadClass) -> bool:
    """Whether somebody waits for its first token, and short work at that."""
    return lane is WorkloadClass.INTERACTIVE or lane is WorkloadClass.TOOL
