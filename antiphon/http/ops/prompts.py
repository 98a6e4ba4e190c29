"""The metric of which versions of a system prompt are in force: the settings name the prompts, so
there are few."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from antiphon.context_records import PromptActivation


class PromptCollector(Collector):
    """What is so when somebody looks."""

    def __init__(self, read: Callable[[], Sequence[PromptActivation]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        share = GaugeMetricFamily(
            "antiphon_prompt_share",
            "Part of all conversations that a version in force is for, 0 to 1",
            labels=("prompt", "version"),
        )
        for activation in self._read():
            for version, part in sorted(activation.arms.items()):
                share.add_metric((activation.name, str(version)), part)
        yield share
