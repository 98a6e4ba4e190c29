"""Metrics of the background workers: what they have made, how, and how long it took to come."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


class WorkMetrics:
    """Kinds are title, summary and memory."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._finished = Counter(
            "antiphon_work",
            "Titles, summaries and memories: how they were made, or why there is none",
            ["kind", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "antiphon_work_delay_seconds",
            "From the end of a turn until all work on its conversation is done",
            buckets=_BUCKETS,
            registry=registry,
        )

    def work_finished(self, kind: str, outcome: str) -> None:
        self._finished.labels(kind, outcome).inc()

    def work_done(self, seconds: float) -> None:
        self._seconds.observe(seconds)

    def watch(self, age_s: Callable[[], float]) -> None:
        """Show the age of the oldest work when somebody looks."""
        age = Gauge(
            "antiphon_work_age_seconds",
            "How long ago a turn has ended in the conversation that has waited longest for work; "
            "0 while none waits",
            registry=self._registry,
        )
        age.set_function(age_s)
