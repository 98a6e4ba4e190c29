"""Predictions as a scraper sees them."""

from prometheus_client import CollectorRegistry

from antiphon.actors.scheduling.prediction import Rates
from antiphon.actors.scheduling.tickets import Room
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.ids import ModelName
from antiphon.workload import WorkloadClass

MODEL = ModelName("model")


def test_rates_and_predicted_first_tokens_are_read_when_somebody_looks():
    registry = CollectorRegistry()
    shown = dict.fromkeys(WorkloadClass, 0.0)
    rates = Rates(prefill_tokens_s=2000.0, decode_tokens_s=600.0, step_s=0.04)
    PrometheusTelemetry(registry).watch_forecast(MODEL, lambda: rates, shown.__getitem__)

    shown[WorkloadClass.LONG] = 7.5

    labels = {"model_name": "model"}
    assert registry.get_sample_value("antiphon_prefill_tokens_per_second", labels) == 2000.0
    assert registry.get_sample_value("antiphon_decode_tokens_per_second", labels) == 600.0
    name = "antiphon_predicted_first_token_seconds"
    assert registry.get_sample_value(name, labels | {"lane": "long"}) == 7.5
    assert registry.get_sample_value(name, labels | {"lane": "tool"}) == 0.0


def test_slots_and_promised_kv_are_read_when_somebody_looks():
    registry, rooms = CollectorRegistry(), [Room()]
    PrometheusTelemetry(registry).watch_room(MODEL, lambda: rooms[-1])

    def shown(name: str) -> float | None:
        return registry.get_sample_value(f"antiphon_{name}", {"model_name": "model"})

    names = ("slots", "free_slots", "kv_cache_reserved_perc")
    assert [shown(name) for name in names] == [0, 0, 0]
    rooms.append(Room(slots=32, free_slots=5, reserved=0.75))
    assert [shown(name) for name in names] == [32, 5, 0.75]


def test_how_wrong_predictions_were_is_counted_relative_to_what_happened():
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry)

    telemetry.first_token_predicted(MODEL, 0.9, 1.0)
    telemetry.first_token_predicted(MODEL, 3.0, 1.0)
    telemetry.first_token_predicted(MODEL, 1.0, 0.0)

    name = "antiphon_first_token_prediction_error_ratio"
    labels = {"model_name": "model"}
    assert registry.get_sample_value(f"{name}_count", labels) == 2
    assert registry.get_sample_value(f"{name}_bucket", labels | {"le": "0.1"}) == 1
    assert registry.get_sample_value(f"{name}_bucket", labels | {"le": "2.0"}) == 2
