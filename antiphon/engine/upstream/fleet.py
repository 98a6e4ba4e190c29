"""The replicas of an upstream: how each one is, and which one a conversation goes to.

Keeps the rule of bounded loads: a conversation stays with its replica, so that its prefix is warm
there, until that replica has clearly more than its share of the work. Knows no HTTP.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import structlog
import trio

from antiphon.engine.upstream.dialect import Flavour
from antiphon.engine.upstream.ports import CircuitBreaker
from antiphon.engine.upstream.ring import Ring
from antiphon.engine.upstream.trouble import Trouble
from antiphon.ports import ReplicaStatistics

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a replica has said of itself. `health` is the path of the page that its probes read."""

    flavour: Flavour
    engine: str | None
    window: int | None
    health: str
    vision: bool | None = None
    """Whether it sees images, where it says so."""


class Replica:
    """One server of the cluster. Its owner is the fleet; the probes say how it is."""

    def __init__(self, url: str, name: str, breaker: CircuitBreaker) -> None:
        self.url = url
        self.name = name
        self.breaker = breaker
        self.facts: Facts | None = None
        self.is_up = False
        self.has_answered = False
        self.in_flight = 0
        self.started = self.failed = self.moved = 0
        self.last_error: str | None = None
        self.last_error_at = -math.inf
        self.look_now = trio.Event()
        """Set when its probe should not wait for its time."""

    @property
    def state(self) -> str:
        if not self.is_up:
            return "down" if self.has_answered or self.last_error is not None else "starting"
        return "up" if self.breaker.statistics().circuit == "closed" else "ejected"

    def statistics(self, now: float) -> ReplicaStatistics:
        return ReplicaStatistics(
            name=self.name,
            state=self.state,
            in_flight=self.in_flight,
            started=self.started,
            failed=self.failed,
            moved=self.moved,
            circuit=self.breaker.statistics().circuit,
            last_error=self.last_error,
            last_error_age_s=None if self.last_error is None else now - self.last_error_at,
            engine=None if self.facts is None else self.facts.engine,
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """A replica, and its breaker's leave to ask it, which must be used."""

    replica: Replica
    permit: AbstractContextManager[None]


class Fleet:
    """All replicas. `slots` and `balance` bound what one of them gets."""

    def __init__(
        self, replicas: Iterable[Replica], *, slots: int, balance: float, clock: Callable[[], float]
    ) -> None:
        self.replicas = {replica.name: replica for replica in replicas}
        self._slots = slots
        self._balance = balance
        self._now = clock
        self._ring = Ring(self.replicas)
        self._news = trio.Event()

    @property
    def up(self) -> list[Replica]:
        return [replica for replica in self.replicas.values() if replica.is_up]

    def choose(self, key: str, tried: frozenset[str] | set[str] = frozenset()) -> Choice | None:
        """The replica for a conversation, none of `tried`; None when nobody may be asked now."""
        nearest = [self.replicas[name] for name in self._ring.walk(key)]
        candidates = [replica for replica in nearest if replica.is_up and replica.name not in tried]
        bound = self._bound()
        roomy = [replica for replica in candidates if replica.in_flight < bound]
        crowded = [replica for replica in candidates if replica.in_flight >= bound]
        for replica in [*roomy, *sorted(crowded, key=lambda replica: replica.in_flight)]:
            permit = replica.breaker.admit()
            if isinstance(permit, AbstractContextManager):
                replica.started += 1
                replica.moved += replica is not nearest[0]
                return Choice(replica, permit)
        return None

    async def news(self) -> None:
        """Return when a replica has come up."""
        await self._news.wait()

    def began(self, replica: Replica) -> None:
        replica.in_flight += 1

    def ended(self, replica: Replica) -> None:
        replica.in_flight -= 1

    def came_up(self, replica: Replica, facts: Facts) -> None:
        """A probe was answered well."""
        replica.facts = facts
        replica.has_answered = True
        if not replica.is_up:
            replica.is_up = True
            log.info("replica_up", replica=replica.name, engine=facts.engine, window=facts.window)
            self._news.set()
            self._news = trio.Event()

    def went_down(self, replica: Replica, reason: str) -> None:
        """It is out of reach, or not well: nothing more goes there until a probe is answered."""
        is_news = replica.is_up or replica.last_error != reason
        replica.is_up = False
        self.note(replica, reason)
        if is_news:
            log.warning(
                "replica_down", replica=replica.name, reason=reason, in_flight=replica.in_flight
            )

    def failed(self, replica: Replica, trouble: Trouble) -> None:
        """An attempt there failed."""
        replica.failed += 1
        if trouble.kind.says_gone:
            self.went_down(replica, trouble.fact)
            replica.look_now.set()
        elif not trouble.kind.says_alive:
            self.note(replica, str(trouble))

    def note(self, replica: Replica, reason: str) -> None:
        replica.last_error = reason
        replica.last_error_at = self._now()

    def problem(self) -> str | None:
        """Why no generation should come now; None while a replica may be asked."""
        states = {replica.name: replica for replica in self.replicas.values()}
        if any(replica.state in ("up", "ejected") for replica in states.values()):
            return None
        errors = (f"{name}: {replica.last_error or 'starting'}" for name, replica in states.items())
        return f"no replica is up ({'; '.join(errors)})"

    def statistics(self) -> tuple[ReplicaStatistics, ...]:
        now = self._now()
        return tuple(replica.statistics(now) for replica in self.replicas.values())

    def _bound(self) -> int:
        """What a replica may have before conversations leave it: its share and what chance adds to
        that. Below its part of all slots no replica is crowded."""
        up = self.up
        if not up:
            return 0
        mean = (sum(replica.in_flight for replica in up) + 1) / len(up)
        # Twice the deviation of a count that is random: fewer than one in twenty gets there.
        share = self._balance * mean + 2 * math.sqrt(mean)
        return math.ceil(max(share, self._slots / len(up)))
