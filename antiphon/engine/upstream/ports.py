"""What the upstream engine needs from the rest of the server, said at its side: it may not know
actors, and a circuit breaker lives there."""

from contextlib import AbstractContextManager
from typing import Protocol


class Refusal(Protocol):
    """The call must not be made now."""

    @property
    def retry_after_s(self) -> float: ...


class BreakerFacts(Protocol):
    """A breaker at one moment."""

    @property
    def circuit(self) -> str: ...


class Images(Protocol):
    """Where the bytes of images are."""

    async def read(self, sha256: str) -> bytes | None:
        """None where they are no more. Raises StoreError."""


class CircuitBreaker(Protocol):
    """`actors.breaker.Breaker`, as far as it is used here."""

    def admit(self) -> "AbstractContextManager[None] | Refusal":
        """A permit that must be used, or the refusal."""

    def statistics(self) -> BreakerFacts: ...
