"""From what the store says of limits to what a caller is told. Pure."""

from collections.abc import Iterable

from antiphon.errors import RateLimited
from antiphon.quotas import Standing, UsedUp
from antiphon.turn_events import RateLimit

_KINDS = ("requests", "tokens")


def rate_limits(standings: Iterable[Standing]) -> tuple[RateLimit, ...]:
    """One of each kind, as the headers have it: of a minute and a day the one that has less left,
    or takes longer."""
    found = tuple(standings)
    told = []
    for kind in _KINDS:
        of_kind = [each for each in found if each.unit.startswith(f"{kind} per ")]
        if of_kind:
            tightest = min(of_kind, key=lambda each: (each.remaining, -each.reset_ms))
            told.append(
                RateLimit(
                    name=kind,
                    limit=tightest.limit,
                    remaining=tightest.remaining,
                    reset_s=tightest.reset_ms / 1000,
                )
            )
    return tuple(told)


def rate_limited(used_up: UsedUp) -> RateLimited:
    """The refusal; one that no waiting helps says so."""
    wait_ms = used_up.wait_ms
    return RateLimited(
        unit=used_up.unit,
        limit=used_up.limit,
        retry_after_s=None if wait_ms is None else wait_ms / 1000,
        limits=rate_limits(used_up.standings),
    )
