"""Metrics of the abuse detection, read when somebody looks. Nobody is named in them."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from antiphon.actors.abuse.abuse import AbuseStatistics

_BY = ("kind", "action")


class AbuseCollector(Collector):
    """Of the one detection that a server has."""

    def __init__(self, read: Callable[[], AbuseStatistics]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        now = self._read()
        signals = CounterMetricFamily(
            "antiphon_abuse_signals", "What was counted against somebody", labels=("signal",)
        )
        for signal, count in now.signals.items():
            signals.add_metric((signal,), count)
        actions = CounterMetricFamily(
            "antiphon_abuse_actions",
            "Actions that began, or would have begun, against users and addresses",
            labels=_BY,
        )
        for labels, count in now.actions.items():
            actions.add_metric(labels, count)
        subjects = GaugeMetricFamily(
            "antiphon_abuse_subjects", "Users and addresses over a threshold now", labels=_BY
        )
        for labels, count in now.subjects.items():
            subjects.add_metric(labels, count)
        yield from (signals, actions, subjects)
        yield GaugeMetricFamily(
            "antiphon_abuse_remembered", "Users and addresses that are remembered", now.remembered
        )
        yield GaugeMetricFamily(
            "antiphon_abuse_unwritten",
            "Suspensions, and ends of them, that wait for the database",
            now.owed,
        )
