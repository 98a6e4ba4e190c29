"""What is counted, against whom, and what may follow: the words of the abuse detection. Values
only."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


class Kind(enum.StrEnum):
    """Whom something is counted against."""

    USER = "user"
    ADDRESS = "address"


class Signal(enum.StrEnum):
    """What is counted."""

    BLOCKED_PROMPT = "blocked_prompt"
    JAILBREAK = "jailbreak"
    """A blocked prompt that tries to trick the model."""
    FAILED_KEY = "failed_key"
    FLOOD = "flood"
    """Requests that the brakes refused."""
    RHYTHM = "rhythm"
    """Requests as a script sends them, on a plan that is for people."""
    MANY_ACCOUNTS = "many_accounts"
    MANY_ADDRESSES = "many_addresses"


PROMPTS = frozenset({Signal.BLOCKED_PROMPT, Signal.JAILBREAK})
"""Without these nobody is suspended."""
TOLERATED = PROMPTS | {Signal.FAILED_KEY}
"""Whoever sends much may have some of these."""

MOST: Mapping[Signal, float] = MappingProxyType(
    {
        Signal.FAILED_KEY: 8.0,
        Signal.FLOOD: 8.0,
        Signal.RHYTHM: 4.0,
        Signal.MANY_ACCOUNTS: 5.0,
        Signal.MANY_ADDRESSES: 5.0,
    }
)
"""So many points of one signal count, however often it comes. Each is less than the first threshold
by default: what honest programs do, too, is evidence beside other evidence only."""


class Action(enum.StrEnum):
    """What follows, from the mildest on."""

    NONE = "none"
    WARN = "warn"
    SLOW = "slow"
    SUSPEND = "suspend"

    @property
    def severity(self) -> int:
        return _ORDER.index(self)


_ORDER = tuple(Action)


@dataclass(frozen=True, slots=True)
class Subject:
    """A user by id, or an address as the brakes see it: of IPv6 the network of a subscriber."""

    kind: Kind
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One signal as it came. `detail` is a rule, a category, or a user's id: never a text."""

    signal: Signal
    points: float
    at_ms: int
    detail: str
