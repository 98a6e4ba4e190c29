"""Metrics of the replicas of an upstream engine, read when somebody looks: replicas come and go
with the settings, and one that is gone leaves no series behind."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from antiphon.ids import ModelName
from antiphon.ports import ReplicaStatistics

_LABELS = ("model_name", "replica")


class ReplicaCollector(Collector):
    """One for each upstream."""

    def __init__(self, model: ModelName, read: Callable[[], Sequence[ReplicaStatistics]]) -> None:
        self._model = model
        self._read = read

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "antiphon_replica_up", "Whether conversations may go there", labels=_LABELS
        )
        in_flight = GaugeMetricFamily(
            "antiphon_replica_requests_running", "Requests sent there and not ended", labels=_LABELS
        )
        started = CounterMetricFamily(
            "antiphon_replica_requests", "Requests sent there", labels=_LABELS
        )
        failed = CounterMetricFamily(
            "antiphon_replica_failures", "Requests that failed there", labels=_LABELS
        )
        moved = CounterMetricFamily(
            "antiphon_replica_moves",
            "Requests sent there because their own replica was out or crowded",
            labels=_LABELS,
        )
        for replica in self._read():
            labels = (self._model, replica.name)
            up.add_metric(labels, float(replica.state == "up"))
            in_flight.add_metric(labels, replica.in_flight)
            started.add_metric(labels, replica.started)
            failed.add_metric(labels, replica.failed)
            moved.add_metric(labels, replica.moved)
        yield from (up, in_flight, started, failed, moved)
