"""Where requests meet the abuse detection: what is counted of them, and which are slowed down or
refused.

Slowing down is a small token bucket and an honest Retry-After: a request that is made to sleep
would keep its connection, and whoever sends many would take all there are.
"""

from collections.abc import Callable

import trio

from antiphon.actors.abuse.abuse import Abuse
from antiphon.actors.abuse.signals import Action, Kind, Subject
from antiphon.actors.abuse.telling import WARNING, reason_of
from antiphon.errors import AddressSuspended, KeySuspended, RateLimited
from antiphon.http.addresses import is_loopback, is_somebodys
from antiphon.http.buckets import Buckets, Rate
from antiphon.ids import LOCAL_USER, UserId
from antiphon.records import Principal
from antiphon.telemetry import Telemetry

SLOWED = "abuse_slow"
SUSPENDED = "abuse_suspended"


class AbuseGate:
    """One for a listener. `proxies` are those whose own addresses are nobody's. Every method is
    quick."""

    def __init__(
        self,
        abuse: Abuse,
        proxies: Callable[[], tuple[str, ...]],
        telemetry: Telemetry,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self._abuse = abuse
        self._proxies = proxies
        self._telemetry = telemetry
        self._clock = clock
        self._slowed: Buckets[Subject] = Buckets()

    def arrive(self, address: str) -> None:
        """A request has come, from whomever. Raises RateLimited, AddressSuspended."""
        if (counted := self._counted(address)) is None:
            return
        standing = self._abuse.address(counted)
        match standing.action:
            case Action.SUSPEND:
                self._telemetry.braked(SUSPENDED)
                raise AddressSuspended(reason_of(standing))
            case Action.SLOW:
                self._slow(Subject(Kind.ADDRESS, counted))
            case Action.NONE | Action.WARN:
                pass

    def admit(self, principal: Principal, address: str) -> str | None:
        """It is this caller's; what to warn them of. Raises RateLimited, KeySuspended."""
        if _is_local(principal, address):
            return None
        standing = self._abuse.user(principal.user)
        match standing.action:
            case Action.NONE:
                return None
            case Action.WARN:
                return WARNING
            case Action.SLOW:
                self._slow(Subject(Kind.USER, principal.user))
                return WARNING
            case Action.SUSPEND:
                self._telemetry.braked(SUSPENDED)
                raise KeySuspended(reason_of(standing))

    def came(self, principal: Principal, address: str) -> None:
        """It brings a prompt."""
        if principal.key is not None and not _is_local(principal, address):
            self._abuse.came(principal.user, principal.key, principal.plan, self._counted(address))

    def answered(self, principal: Principal, address: str) -> None:
        """Its prompt was answered."""
        if not _is_local(principal, address):
            self._abuse.answered(principal.user, self._counted(address))

    def prompt_blocked(
        self, user: UserId, address: str | None, rule: str, category: str | None
    ) -> None:
        if user == LOCAL_USER and (address is None or is_loopback(address)):
            return
        counted = None if address is None else self._counted(address)
        self._abuse.prompt_blocked(user, counted, rule, category)

    def key_failed(self, address: str) -> None:
        self._abuse.key_failed(self._counted(address))

    def flooded(self, address: str, reason: str) -> None:
        self._abuse.flooded(self._counted(address), reason)

    def _counted(self, address: str) -> str | None:
        """None for an address behind which there may be anybody."""
        return address if is_somebodys(address, self._proxies()) else None

    def _slow(self, subject: Subject) -> None:
        settings = self._abuse.settings
        rate = Rate(settings.slow_per_minute / 60, settings.slow_burst)
        wait = self._slowed.take(subject, rate, self._clock(), size=2 * settings.subjects)
        if wait is not None:
            self._telemetry.braked(SLOWED)
            raise RateLimited(
                unit="requests per minute", limit=settings.slow_per_minute, retry_after_s=wait
            )


def _is_local(principal: Principal, address: str) -> bool:
    """Whoever sits at this machine: nothing is held against them."""
    return principal.key is None or (principal.user == LOCAL_USER and is_loopback(address))
