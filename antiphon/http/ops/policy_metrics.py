"""Metrics of the policy: what was judged, with which outcome, how long it took, and what could not
be judged. Rules are named by their ids, of which a file has a bounded number."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from antiphon.actors.moderation.status import PolicyView

_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5),
)
"""Fine where the promise lies: what judging may add to a first token."""


class PolicyMetrics:
    """What is counted as it happens."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._judged = Counter(
            "antiphon_policy_verdicts",
            "Requests and outputs that were judged",
            ["stage", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "antiphon_policy_judging_seconds",
            "Time that somebody waited for a verdict",
            ["stage"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._matched = Counter(
            "antiphon_policy_findings",
            "Matches of a rule; those of a shadow did nothing",
            ["rule", "action", "shadow"],
            registry=registry,
        )
        self._not_run = Counter(
            "antiphon_policy_not_run",
            "Times a rule could not be run on a request, and what followed",
            ["failure", "on_failure"],
            registry=registry,
        )
        self._restarts = Counter(
            "antiphon_judge_restarts", "Judge processes started again", registry=registry
        )
        self._dropped = Counter(
            "antiphon_policy_events_dropped",
            "Policy events for which there was no room while the store was away",
            registry=registry,
        )

    def texts_judged(self, stage: str, outcome: str) -> None:
        self._judged.labels(stage, outcome).inc()

    def judging_took(self, stage: str, seconds: float) -> None:
        self._seconds.labels(stage).observe(seconds)

    def rule_matched(self, rule: str, action: str, *, shadow: bool) -> None:
        self._matched.labels(rule, action, str(shadow).lower()).inc()

    def rule_not_run(self, failure: str, on_failure: str) -> None:
        self._not_run.labels(failure, on_failure).inc()

    def judge_restarted(self) -> None:
        self._restarts.inc()

    def policy_events_dropped(self, events: int) -> None:
        self._dropped.inc(events)


class PolicyCollector(Collector):
    """What is so when somebody looks."""

    def __init__(self, read: Callable[[], PolicyView]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        view = self._read()
        yield InfoMetricFamily(
            "antiphon_policy_rules", "The rules in force", {"version": view.version}
        )
        yield GaugeMetricFamily(
            "antiphon_policy_texts_waiting", "Texts that wait for a judge", view.waiting
        )
        yield GaugeMetricFamily(
            "antiphon_policy_events_waiting",
            "Policy events that wait for the database",
            view.events_waiting,
        )
        yield GaugeMetricFamily(
            "antiphon_policy_rules_refused",
            "Whether a rules' file was refused and older ones stay in force",
            float(view.refused is not None),
        )
        up = GaugeMetricFamily("antiphon_judge_up", "Whether a judge works", labels=("judge",))
        texts = CounterMetricFamily("antiphon_judge_texts", "Texts it was given", labels=("judge",))
        for judge in view.judges:
            up.add_metric((judge.name,), float(judge.state in {"idle", "busy"}))
            texts.add_metric((judge.name,), judge.texts)
        yield from (up, texts)
