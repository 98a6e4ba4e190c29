"""The store's state as a scraper sees it."""

from prometheus_client import CollectorRegistry

from antiphon.actors.breaker import Permit
from antiphon.actors.store.status import StoreStatus
from antiphon.errors import StoreUnavailable
from antiphon.http.ops.metrics import PrometheusTelemetry


def test_the_stores_state_is_read_when_somebody_looks(autojump_clock):
    registry = CollectorRegistry()
    status = StoreStatus()
    PrometheusTelemetry(registry).watch_store(status.statistics)
    before = registry.get_sample_value("antiphon_store_up")
    status.is_open()
    status.running = 3
    status.full = True

    assert before == 0
    assert registry.get_sample_value("antiphon_store_up") == 1
    assert registry.get_sample_value("antiphon_store_units_running") == 3
    assert registry.get_sample_value("antiphon_store_full") == 1
    assert registry.get_sample_value("antiphon_store_circuit_state") == 0


async def test_an_open_circuit_shows(autojump_clock):
    registry = CollectorRegistry()
    status = StoreStatus()
    PrometheusTelemetry(registry).watch_store(status.statistics)
    for _ in range(5):
        permit = status.breaker.admit()
        assert isinstance(permit, Permit)
        try:
            with permit:
                raise StoreUnavailable("gone")
        except StoreUnavailable:
            pass

    assert registry.get_sample_value("antiphon_store_circuit_state") == 2


def test_units_are_counted_by_kind_and_outcome_and_timed_by_kind():
    registry = CollectorRegistry()
    telemetry = PrometheusTelemetry(registry)
    telemetry.store_unit_finished("write", "unavailable", 0.5)
    telemetry.store_refused("overloaded")

    labels = {"kind": "write", "outcome": "unavailable"}
    assert registry.get_sample_value("antiphon_store_units_total", labels) == 1
    assert registry.get_sample_value("antiphon_store_unit_seconds_sum", {"kind": "write"}) == 0.5
    refused = {"reason": "overloaded"}
    assert registry.get_sample_value("antiphon_store_refusals_total", refused) == 1
