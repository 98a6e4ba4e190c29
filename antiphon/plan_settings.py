"""The settings of one plan: a table under `plans`, read and checked by `settings`."""

from typing import Literal

import msgspec


class PlanSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What its users may ask for. 0 is no limit. Minutes and days are sliding windows; tokens are
    those of prompts and answers together."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    requests_per_day: int = 0
    tokens_per_day: int = 0
    concurrent: int = 0
    """Answers that run or wait at once."""
    max_output_tokens: int = 0
    models: tuple[str, ...] = ()
    """Names and aliases that may be asked for; none named is all."""
    tiers: tuple[Literal["default", "flex", "priority"], ...] = ("default", "flex")
    """What `service_tier` may be; another one is served as `default`."""
    priority: int = 0
    """Under overload higher ones go first and are shed last."""
    weight: float = 1.0
    """Its users' share of a lane, relative to others."""
    max_cost: float = 0.0
    """Of an alias's models, those whose pools cost more than this come last."""
    smaller_model: bool = True
    """Whether a request may be answered by a pool's `smaller` one when its own is overloaded."""
