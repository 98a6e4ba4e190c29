"""What the store knows of plans' limits and of bills, as values: reservations, standings, sums.

Windows slide. They are kept in buckets, and a bucket counts until all of it has left the window: a
limit is never exceeded in any minute or day, and what was used comes back up to one bucket later
than it might (a second of a minute, a quarter of an hour of a day).
"""

from dataclasses import dataclass

from antiphon.ids import ModelName, NodeId, ResponseId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLimits:
    """What a plan bounds and the database enforces; 0 is no limit."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    requests_per_day: int = 0
    tokens_per_day: int = 0
    concurrent: int = 0

    @property
    def any(self) -> bool:
        return any(
            (
                self.requests_per_minute,
                self.tokens_per_minute,
                self.requests_per_day,
                self.tokens_per_day,
                self.concurrent,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What is held before any work is done: one request, one answer that runs, and `tokens`.

    With `lease_ms` it is a bill of its own, which its `owner` settles, and which lapses once the
    lease has passed. Without one it belongs to a response that is stored, and ends with it.
    """

    id: ResponseId
    user: UserId
    model: ModelName
    tokens: int
    now_ms: int
    owner: NodeId
    lease_ms: int | None = None
    limits: QuotaLimits = QuotaLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a user stands with one limit. `reset_ms` is how long until all of it is there again."""

    unit: str
    """`requests per minute`, `tokens per day`, ..."""
    limit: int
    remaining: int
    reset_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """It is held. The standings count it."""

    standings: tuple[Standing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedUp:
    """Nothing is held, since this limit has no room for it."""

    unit: str
    limit: int
    wait_ms: int | None
    """Until there is room, as far as is known: what runs may give some back before. None is never,
    since it is more than the limit by itself."""
    standings: tuple[Standing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """What one user used of one model on one day, in UTC, by when the turns began. What runs counts
    as a request without tokens."""

    day: int
    """Since 1970-01-01."""
    model: ModelName
    requests: int
    input: int
    cached: int
    output: int
    reasoning: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A settled entry of the ledger, for an export. `user` is None once they were erased."""

    response: ResponseId
    user: UserId | None
    model: ModelName
    created_ms: int
    settled_ms: int
    input: int
    cached: int
    output: int
    reasoning: int
