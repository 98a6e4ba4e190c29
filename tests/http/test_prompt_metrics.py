"""Prompts as a scraper sees them."""

from prometheus_client import CollectorRegistry

from antiphon.context_records import PromptActivation
from antiphon.http.ops.metrics import PrometheusTelemetry


def test_turns_are_counted_by_version_and_end():
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry)

    for prompt, reason in (("guide@1", "stop"), ("guide@1", "stop"), ("a.b-c@12", "error")):
        telemetry.prompt_used(prompt, reason)
    telemetry.prompt_used(None, "stop")

    def turns(prompt: str, version: str, reason: str) -> float | None:
        labels = {"prompt": prompt, "version": version, "finished_reason": reason}
        return registry.get_sample_value("antiphon_prompt_turns_total", labels)

    assert turns("guide", "1", "stop") == 2
    assert turns("a.b-c", "12", "error") == 1
    samples = [
        sample
        for family in registry.collect()
        if family.name == "antiphon_prompt_turns"
        for sample in family.samples
        if sample.name.endswith("_total")
    ]
    assert len(samples) == 2


def test_what_is_in_force_is_read_when_somebody_looks():
    registry = CollectorRegistry()
    now: list[PromptActivation] = []
    PrometheusTelemetry(registry).watch_prompts(lambda: now)

    def share(version: str) -> float | None:
        labels = {"prompt": "guide", "version": version}
        return registry.get_sample_value("antiphon_prompt_share", labels)

    assert share("1") is None
    now.append(PromptActivation(name="guide", number=1, arms={1: 0.9, 2: 0.1}, created_ms=1))
    assert (share("1"), share("2")) == (0.9, 0.1)
    now[0] = PromptActivation(name="guide", number=2, arms={2: 1.0}, created_ms=1)
    assert (share("1"), share("2")) == (None, 1.0)
