"""One look at the store for all who want to know the same at the same time: a thousand requests
with one key, right after a start, are one query."""

from collections.abc import Awaitable, Callable

import trio

from antiphon.errors import StoreUnavailable


class _Flight:
    __slots__ = ("error", "landed")

    def __init__(self) -> None:
        self.landed = trio.Event()
        self.error: StoreUnavailable | None = None


class Flights:
    """`look` leaves what it finds where the callers look afterwards."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    async def share(self, key: str, look: Callable[[], Awaitable[None]]) -> None:
        """Run `look`, or wait for the end of the one that runs. That it was cancelled with its
        caller is no answer: look again. Raises StoreUnavailable, to all who wait."""
        flight = self._flights.get(key)
        if flight is not None:
            await flight.landed.wait()
            if flight.error is not None:
                raise StoreUnavailable(
                    flight.error.reason, flight.error.retry_after_s, flight.error.refused
                )
            return
        flight = self._flights[key] = _Flight()
        try:
            await look()
        except StoreUnavailable as error:
            flight.error = error
            raise
        finally:
            del self._flights[key]
            flight.landed.set()
