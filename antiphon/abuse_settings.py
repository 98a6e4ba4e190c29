"""The settings of the abuse detection: the section `abuse`, read and checked by `settings`.

Points, what they add up to, and what follows: docs/abuse.md has the reasons at length.
"""

import ipaddress
from itertools import pairwise
from typing import Literal

import msgspec

from antiphon.errors import SettingsError

Mode = Literal["off", "watch", "act"]


class AbuseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What counts how much against a user or an address, and what follows. Points of 0 don't
    count, a threshold of 0 is never reached."""

    mode: Mode = "act"
    """`watch` counts, logs and shows what it would do, and does nothing."""
    half_life_s: float = 3_600.0
    """After so long half of what was counted is forgotten."""
    warn_at: float = 10.0
    """From here on answers say so in a header, and the log too."""
    slow_at: float = 20.0
    """From here on requests are let through at `slow_per_minute`."""
    suspend_at: float = 30.0
    """Behind the brake of 30 blocked prompts an hour it takes that one prompt in three is blocked,
    for hours; or ten attempts to trick the model."""
    slow_per_minute: float = 6.0
    slow_burst: int = 3
    suspend_s: float = 3_600.0
    """A suspension ends by itself after so long."""
    suspend_addresses: bool = False
    """Whether an address may be suspended, and not only slowed down: behind it may be people who
    have done nothing."""
    blocked_points: float = 1.0
    """A prompt that the policy blocked."""
    jailbreak_points: float = 3.0
    """One that a rule of `jailbreak_rules` blocked: nobody writes those by mistake often."""
    minors_points: float = 5.0
    """One of the category `sexual/minors`."""
    failed_key_points: float = 0.2
    flood_points: float = 1.0
    """Requests over the brakes, once in ten seconds."""
    account_points: float = 0.5
    """Each user of an address beyond `free_accounts` within an hour."""
    address_points: float = 0.5
    """Each address of a key beyond `free_addresses` within an hour."""
    rhythm_points: float = 0.25
    """Each request at the rhythm of a script, of users on `people_plans`."""
    tolerance: float = 0.1
    """Points that each answered prompt takes away from those of blocked prompts and wrong keys:
    whoever sends much may have a few blocked. A tenth is what the classifier blocks of safe
    prompts that look unsafe."""
    free_accounts: int = 10
    free_addresses: int = 10
    people_plans: str | tuple[str, ...] = ()
    """Plans that are for people who read the answers. Others may send as programs do."""
    jailbreak_rules: str | tuple[str, ...] = ("*jailbreak*", "*injection*")
    """Rules and categories of the policy; `*` stands for anything."""
    exempt: str | tuple[str, ...] = ()
    """Ids of users, addresses and networks that nothing is done against."""
    subjects: int = 10_000
    """How many users, and how many addresses, are remembered; the ones seen last. About a kilobyte
    each, up to six where there is evidence."""

    @property
    def plans_for_people(self) -> tuple[str, ...]:
        return _parts(self.people_plans)

    @property
    def jailbreak_patterns(self) -> tuple[str, ...]:
        return _parts(self.jailbreak_rules)

    @property
    def exempted(self) -> tuple[str, ...]:
        return _parts(self.exempt)


def check_abuse(settings: AbuseSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    steps = [
        (name, at)
        for name in ("warn_at", "slow_at", "suspend_at")
        if (at := getattr(settings, name))
    ]
    for (before, lower), (name, higher) in pairwise(steps):
        if higher <= lower:
            raise SettingsError(f"abuse.{name}", f"must be more than {before}, or 0 for never")
    if settings.subjects < 1:
        raise SettingsError("abuse.subjects", "must be at least 1")
    for each in settings.exempted:
        if "/" in each or ":" in each or each.replace(".", "").isdigit():
            try:
                ipaddress.ip_network(each, strict=False)
            except ValueError as error:
                problem = f"must be ids of users, addresses and networks, not {each!r}"
                raise SettingsError("abuse.exempt", problem) from error


def _parts(given: str | tuple[str, ...]) -> tuple[str, ...]:
    each = given.split(",") if isinstance(given, str) else given
    return tuple(part.strip() for part in each if part.strip())
