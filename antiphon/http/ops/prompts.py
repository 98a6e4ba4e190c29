"""System prompts as operators see them: which versions are in force, as a metric too, and how turns
have ended that began with each. The settings name the prompts, so there are few."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from antiphon.context_records import PromptActivation
from antiphon.http.ops.figures import samples

TURNS = "antiphon_prompt_turns"
"""The counter of how turns have ended that began with a version."""
_FAILED, _BLOCKED = "error", "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """One version, and the turns of this server since its start. `share` is its part of all
    conversations, 0 of one that is not in force; the rates are None where there were no turns."""

    version: int
    share: float
    turns: int
    failed: int
    blocked: int
    error_rate: float | None
    block_rate: float | None
    ends: Mapping[str, int]
    """Turns by how they ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """One prompt. None is known to be in force of one that only requests name."""

    name: str
    activation: int | None
    since_ms: int | None
    versions: tuple[VersionView, ...]


def prompt_views(
    registry: CollectorRegistry, in_force: Sequence[PromptActivation]
) -> tuple[PromptView, ...]:
    """Every prompt that is in force or was used, with every such version."""
    ends: dict[str, dict[int, dict[str, int]]] = {each.name: {} for each in in_force}
    for labels, count in samples(registry, TURNS):
        of_version = ends.setdefault(labels["prompt"], {}).setdefault(int(labels["version"]), {})
        of_version[labels["finished_reason"]] = count
    activations = {each.name: each for each in in_force}
    views = []
    for name in sorted(ends):
        activation = activations.get(name)
        arms = {} if activation is None else activation.arms
        views.append(
            PromptView(
                name=name,
                activation=None if activation is None else activation.number,
                since_ms=None if activation is None else activation.created_ms,
                versions=tuple(
                    _version(version, arms.get(version, 0.0), ends[name].get(version, {}))
                    for version in sorted(arms.keys() | ends[name].keys())
                ),
            )
        )
    return tuple(views)


def _version(version: int, share: float, ends: Mapping[str, int]) -> VersionView:
    turns, failed, blocked = sum(ends.values()), ends.get(_FAILED, 0), ends.get(_BLOCKED, 0)
    return VersionView(
        version=version,
        share=share,
        turns=turns,
        failed=failed,
        blocked=blocked,
        error_rate=failed / turns if turns else None,
        block_rate=blocked / turns if turns else None,
        ends=dict(sorted(ends.items())),
    )


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
