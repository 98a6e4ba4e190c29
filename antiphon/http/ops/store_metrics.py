"""Metrics of the database: its units of work, and its state when somebody looks."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from antiphon.actors.breaker import Circuit
from antiphon.actors.store.status import StoreStatistics

CIRCUITS = {Circuit.CLOSED.value: 0, Circuit.HALF_OPEN.value: 1, Circuit.OPEN.value: 2}
"""The states of a circuit breaker, as gauges show them."""
_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.03, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Fine where the promise lies: what storage adds to a first token."""


class StoreMetrics:
    """Of one database."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._seconds = Histogram(
            "antiphon_store_unit_seconds",
            "One unit of work with the database",
            ["kind"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._units = Counter(
            "antiphon_store_units",
            "Units of work with the database",
            ["kind", "outcome"],
            registry=registry,
        )
        self._refusals = Counter(
            "antiphon_store_refusals",
            "Units of work that were not begun",
            ["reason"],
            registry=registry,
        )

    def store_unit_finished(self, kind: str, outcome: str, seconds: float) -> None:
        self._units.labels(kind, outcome).inc()
        self._seconds.labels(kind).observe(seconds)

    def store_refused(self, reason: str) -> None:
        self._refusals.labels(reason).inc()

    def watch(self, read: Callable[[], StoreStatistics]) -> None:
        """Show the store's state as it is when somebody looks."""
        self._gauge("up", "Whether the database is open").set_function(lambda: float(read().ready))
        full = self._gauge("full", "Whether the last write failed for want of space")
        full.set_function(lambda: float(read().full))
        running = self._gauge("units_running", "Units of work under way")
        running.set_function(lambda: read().running)
        circuit = self._gauge("circuit_state", "Circuit breaker: 0 closed, 1 half open, 2 open")
        circuit.set_function(lambda: CIRCUITS[read().breaker.circuit])

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"antiphon_store_{name}", text, registry=self._registry)
