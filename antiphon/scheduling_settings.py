"""The settings of scheduling: the section `scheduling`, read and checked by `settings`."""

from typing import Literal

import msgspec

from antiphon.errors import SettingsError


class SchedulingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the lanes of a pool share its slots. An objective is the time to first token that a class
    is to have, in seconds; 0 is none."""

    policy: Literal["fair", "fcfs"] = "fair"
    """`fcfs` is first come, first served, for comparison: no lanes, no fairness, no pre-emption."""
    long_prompt_tokens: int = 1024
    """A prompt of this many tokens is in the lane `long`."""
    long_prefills: int = 1
    """Long prompts in prefill at once."""
    interactive_reserve: float = 0.5
    """The part of all slots that only `interactive` and `tool` may use."""
    interactive_weight: float = 8.0
    tool_weight: float = 4.0
    long_weight: float = 2.0
    background_weight: float = 1.0
    aging_s: float = 30.0
    """Whatever has waited this long has every fourth grant, the oldest first, over all lanes,
    shares and priorities: nothing starves, and yet a deep backlog can't shut out what is new."""
    background_deadline_s: float = 3600.0
    """A background request that waited this long is refused; others after `queue.deadline_s`."""
    preempt: bool = True
    """Whether background work gives its slot to somebody who waits, and goes on later."""
    interactive_objective_s: float = 2.0
    tool_objective_s: float = 4.0
    long_objective_s: float = 20.0
    background_objective_s: float = 0.0


def check_scheduling(settings: SchedulingSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    if settings.interactive_reserve >= 1:
        raise SettingsError("scheduling.interactive_reserve", "must be less than 1")
