"""The numbers among the settings: which may be 0, and that none is without sense."""

import math
from collections.abc import Iterator

import msgspec

from antiphon.errors import SettingsError

_LARGEST = 10**12
"""Far above any sense, and far below where a time or a size overflows."""
MAY_BE_ZERO = frozenset(
    {
        "engine.threads",
        "files.chunk_overlap_tokens",
        "files.embedding_nice",
        "files.wait_s",
        "brakes.failed_keys_per_minute",
        "brakes.address_per_s",
        "brakes.key_per_s",
        "brakes.blocked_prompts_per_hour",
        "abuse.warn_at",
        "abuse.slow_at",
        "abuse.suspend_at",
        "abuse.blocked_points",
        "abuse.jailbreak_points",
        "abuse.minors_points",
        "abuse.failed_key_points",
        "abuse.flood_points",
        "abuse.account_points",
        "abuse.address_points",
        "abuse.rhythm_points",
        "abuse.tolerance",
        "abuse.free_accounts",
        "abuse.free_addresses",
        "scheduling.interactive_reserve",
        "scheduling.interactive_objective_s",
        "scheduling.tool_objective_s",
        "scheduling.long_objective_s",
        "scheduling.background_objective_s",
        "openvino.activation_group",
        "openvino.kv_group",
        "upstream.window",
        "upstream.image_tokens",
        "retention.claims_days",
        "retention.events_days",
        "retention.responses_days",
        "retention.traces_days",
    }
)


def check_number(key: str, value: float, *, zero: bool = False) -> None:
    """Raises SettingsError."""
    if not math.isfinite(value) or value > _LARGEST:
        raise SettingsError(key, f"must be a number up to {_LARGEST}")
    if zero or key in MAY_BE_ZERO:
        if value < 0:
            raise SettingsError(key, "must be 0 or more")
    elif value <= 0:
        raise SettingsError(key, "must be greater than 0")


def check_numbers(key: str, value: msgspec.Struct, *, zero: bool) -> None:
    """Every number of a table. Raises SettingsError."""
    for field, number in numbers(value):
        # A share of nothing would never be served.
        check_number(f"{key}.{field}", number, zero=zero and field != "weight")


def numbers(value: msgspec.Struct) -> Iterator[tuple[str, float]]:
    """Each by the name of its field."""
    for field in value.__struct_fields__:
        number = getattr(value, field)
        if isinstance(number, int | float) and not isinstance(number, bool):
            yield field, number
