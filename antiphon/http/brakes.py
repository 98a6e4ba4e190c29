"""Abuse brakes: what is refused before anything is read, parsed or looked up for it.

They count by address, key and user, in bounded memory, and never wait. They keep no secret: of a
key they know a number that means nothing in any other process.
"""

from collections import OrderedDict
from collections.abc import Callable

import structlog
import trio

from antiphon.brake_settings import BrakeSettings
from antiphon.errors import RateLimited
from antiphon.http.abuse import AbuseGate
from antiphon.http.addresses import client_address, is_loopback
from antiphon.http.buckets import Buckets, Rate
from antiphon.ids import UserId
from antiphon.telemetry import Telemetry

log = structlog.get_logger(__name__)

FAILED_KEYS = "failed_keys"
ADDRESS_FLOOD = "address_flood"
KEY_FLOOD = "key_flood"
BLOCKED_PROMPTS = "blocked_prompts"
_FLOODS = {ADDRESS_FLOOD, KEY_FLOOD}
_TELL_S = 60.0


class Brakes:
    """One for a listener, and what the other rooms tell of abuse (`ports.AbuseSignals`). Every
    method is quick. `abuse` counts over a longer time what these brakes see at once."""

    def __init__(
        self,
        settings: Callable[[], BrakeSettings],
        telemetry: Telemetry,
        clock: Callable[[], float] = trio.current_time,
        abuse: AbuseGate | None = None,
    ) -> None:
        self.abuse = abuse
        self._settings = settings
        self._telemetry = telemetry
        self._clock = clock
        self._by_address: Buckets[str] = Buckets()
        self._by_key: Buckets[int] = Buckets()
        self._failures: Buckets[str] = Buckets()
        self._prompts: Buckets[UserId] = Buckets()
        self._told: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def arrive(self, peer: str | None, forwarded: str, secret: str | None) -> str:
        """A request has come, and nothing of its body is read; its client's address. Raises
        RateLimited, AddressSuspended. Whoever is on this machine floods nobody but itself."""
        settings, now = self._settings(), self._clock()
        address = client_address(peer, forwarded, settings.proxies)
        if not is_loopback(address):
            rate = Rate(settings.address_per_s, settings.address_burst)
            wait = self._by_address.take(address, rate, now, size=settings.addresses)
            self._check(wait, ADDRESS_FLOOD, address, "requests per second", rate.per_s)
        if secret is not None:
            rate = Rate(settings.key_per_s, settings.key_burst)
            wait = self._by_key.take(hash(secret), rate, now, size=settings.addresses)
            self._check(wait, KEY_FLOOD, address, "requests per second", rate.per_s)
        if self.abuse is not None:
            self.abuse.arrive(address)
        return address

    def before_key(self, address: str) -> None:
        """A key that nobody remembers is about to be looked up. Raises RateLimited where too many
        from there were wrong."""
        rate = self._failed_keys()
        wait = self._failures.wait(address, rate, self._clock())
        limit = self._settings().failed_keys_per_minute
        self._check(wait, FAILED_KEYS, address, "wrong keys per minute", limit)

    def key_failed(self, address: str) -> None:
        """It was wrong."""
        size = self._settings().addresses
        self._failures.take(address, self._failed_keys(), self._clock(), size=size)
        if self.abuse is not None:
            self.abuse.key_failed(address)

    def prompt_blocked(
        self,
        user: UserId,
        *,
        address: str | None = None,
        rule: str = "",
        category: str | None = None,
    ) -> None:
        """The policy has blocked a prompt of this user's."""
        size = self._settings().addresses
        self._prompts.take(user, self._blocked_prompts(), self._clock(), size=size)
        if self.abuse is not None:
            self.abuse.prompt_blocked(user, address, rule, category)

    def admit(self, user: UserId, address: str) -> None:
        """Raises RateLimited where the policy has blocked too many of this user's prompts."""
        wait = self._prompts.wait(user, self._blocked_prompts(), self._clock())
        limit = self._settings().blocked_prompts_per_hour
        self._check(wait, BLOCKED_PROMPTS, address, "blocked prompts per hour", limit)

    def _failed_keys(self) -> Rate:
        settings = self._settings()
        return Rate(settings.failed_keys_per_minute / 60, settings.failed_keys_burst)

    def _blocked_prompts(self) -> Rate:
        settings = self._settings()
        return Rate(settings.blocked_prompts_per_hour / 3600, settings.blocked_prompts_burst)

    def _check(
        self, wait: float | None, reason: str, address: str, unit: str, limit: float
    ) -> None:
        if wait is None:
            return
        self._telemetry.braked(reason)
        self._tell(reason, address)
        if self.abuse is not None and reason in _FLOODS:
            self.abuse.flooded(address, reason)
        raise RateLimited(unit=unit, limit=limit, retry_after_s=wait)

    def _tell(self, reason: str, address: str) -> None:
        """One line a minute for an address, with how many there were since the last one."""
        now = self._clock()
        told_at, untold = self._told.get(address, (-_TELL_S, 0))
        if now - told_at >= _TELL_S:
            log.warning("braked", reason=reason, address=address, requests=untold + 1)
            told_at, untold = now, -1
        self._told[address] = (told_at, untold + 1)
        self._told.move_to_end(address)
        while len(self._told) > self._settings().addresses:
            self._told.popitem(last=False)
