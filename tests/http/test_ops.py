"""The operations pages and the metrics behind them."""

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from antiphon.events import CancelCause
from antiphon.http.ops.app import make_ops_app
from antiphon.http.ops.metrics import PrometheusTelemetry
from antiphon.ids import ModelName
from antiphon.ports import ReplicaStatistics
from antiphon.settings import HttpSettings
from antiphon.testing.http import serving
from antiphon.testing.ops import ScriptedSources, a_breaker, no_commands

MODEL = ModelName("m")


@pytest.fixture
def sources():
    return ScriptedSources()


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return PrometheusTelemetry(registry)


@pytest.fixture
async def get(sources, registry, metrics):
    app = make_ops_app(sources, HttpSettings, registry, metrics, no_commands())
    async with (
        serving(app, HttpSettings()) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        yield client.get


async def test_live_answers_while_nothing_is_ready(get, sources):
    sources.reasons = ["engine is starting"]

    assert (await get("/health/live")).json() == {"status": "ok"}


async def test_ready_is_503_with_the_reasons_and_200_without(get, sources):
    assert (await get("/health/ready")).status_code == 200
    sources.reasons = ["engine is starting"]

    answer = await get("/health/ready")

    assert answer.status_code == 503
    assert answer.json() == {"status": "not_ready", "reasons": ["engine is starting"]}


def a_replica(name, state="up", **fields):
    return ReplicaStatistics(
        **{
            "name": name,
            "state": state,
            "in_flight": 2,
            "started": 9,
            "failed": 1,
            "moved": 3,
            "circuit": "closed",
            "last_error": None,
            "last_error_age_s": None,
            "engine": "vllm",
            **fields,
        }
    )


async def test_replicas_are_shown_where_there_are_some(get, sources, metrics):
    assert (await get("/ops/replicas")).json() == []
    assert "Replicas" not in (await get("/ops")).text
    down = {"last_error": "<connection refused>", "last_error_age_s": 4.0}
    sources.fleet = [a_replica("10.0.0.1:8000"), a_replica("10.0.0.2:8000", "down", **down)]
    metrics.watch_replicas(MODEL, sources.replicas)

    shown = (await get("/ops/replicas")).json()
    page = (await get("/ops")).text
    counted = (await get("/metrics")).text

    assert [(replica["name"], replica["state"]) for replica in shown] == [
        ("10.0.0.1:8000", "up"),
        ("10.0.0.2:8000", "down"),
    ]
    assert (await get("/ops/tree")).json()["runtime"]["replicas"] == shown
    assert "&lt;connection refused&gt;, 4" in page
    assert 'antiphon_replica_up{model_name="m",replica="10.0.0.1:8000"} 1.0' in counted
    assert 'antiphon_replica_up{model_name="m",replica="10.0.0.2:8000"} 0.0' in counted
    assert 'antiphon_replica_moves_total{model_name="m",replica="10.0.0.1:8000"} 3.0' in counted
    sources.fleet = sources.fleet[:1]
    assert "10.0.0.2" not in (await get("/metrics")).text


async def test_a_worry_is_told_to_whoever_asks_for_readiness_and_sends_nobody_away(get, sources):
    sources.worries = ["store: no space left"]

    answer = await get("/health/ready")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "reasons": ["store: no space left"]}


async def test_slots_and_tree_are_json(get):
    assert (await get("/ops/slots")).json() == [
        {
            "model": "m",
            "slot": 0,
            "state": "decode",
            "request_id": "req_1",
            "tokens": 5,
            "age_s": 0.25,
            "lane": "interactive",
        }
    ]
    tree = (await get("/ops/tree")).json()
    assert (tree["path"], tree["kind"], tree["state"]) == ("root", "supervisor", "up")
    assert [child["path"] for child in tree["children"]] == ["root/<pool>"]
    runtime = tree["runtime"]
    assert runtime["loop"]["tasks"] == 20
    assert runtime["slots"][0]["request_id"] == "req_1"
    assert runtime["breakers"] == (await get("/ops/breakers")).json()
    assert runtime["breakers"][0]["circuit"] == "closed"
    assert runtime["pools"] == (await get("/ops/pools")).json()
    assert runtime["pools"][0]["model"] == "m"
    assert (await get("/ops/version")).json()["name"] == "antiphon"


async def test_metrics_are_text_or_openmetrics_as_accepted(get):
    plain = await get("/metrics")
    open_ = await get("/metrics", headers={"accept": "application/openmetrics-text"})

    assert plain.headers["content-type"].startswith("text/plain")
    assert open_.headers["content-type"].startswith("application/openmetrics-text")
    assert open_.text.endswith("# EOF\n")


async def test_pages_are_counted_and_carry_ids_but_no_openai_headers(get):
    answer = await get("/health/live")
    text = (await get("/metrics")).text

    assert answer.headers["x-request-id"].startswith("req_")
    assert "openai-version" not in answer.headers
    assert (
        'antiphon_http_requests_total{handler="/health/live",method="GET",status="200"} 1.0' in text
    )


async def test_unknown_pages_are_404_in_the_envelope(get):
    answer = await get("/ops/secrets")

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_url"


def test_every_fact_has_its_metric(registry, metrics):
    metrics.http_request_finished("/x", "GET", 200, 0.1)
    metrics.sse_opened()
    metrics.stream_disconnected()
    metrics.admission_rejected("queue_full")
    metrics.requests_in_flight(MODEL, running=3, waiting=2)
    metrics.queue_left(MODEL, 0.1)
    metrics.first_token(MODEL, 0.2)
    metrics.prompt_admitted(MODEL, 7)
    metrics.tokens_generated(MODEL, 2, 0.05)
    metrics.turn_finished(MODEL, "stop", 1.0)
    metrics.turn_cancelled(CancelCause.DISCONNECT)
    metrics.tool_call("retried")
    metrics.released_after_disconnect(0.03, 1)
    metrics.engine_stepped(MODEL, 0.02)
    metrics.engine_stats(MODEL, 0.5)
    metrics.engine_restarted(MODEL)

    model = {"model_name": MODEL}
    expected = {
        ("num_requests_running", "", ()): 3,
        ("num_requests_waiting", "", ()): 2,
        ("kv_cache_usage_perc", "", ()): 0.5,
        ("time_to_first_token_seconds", "_count", ()): 1,
        ("inter_token_latency_seconds", "_sum", ()): 0.025,
        ("request_queue_time_seconds", "_count", ()): 1,
        ("e2e_request_latency_seconds", "_count", ()): 1,
        ("prompt_tokens", "_total", ()): 7,
        ("generation_tokens", "_total", ()): 2,
        ("request_success", "_total", (("finished_reason", "stop"),)): 1,
        ("engine_restarts", "_total", ()): 1,
        ("engine_step_seconds", "_count", ()): 1,
    }
    for (name, suffix, labels), value in expected.items():
        sample = registry.get_sample_value(f"antiphon_{name}{suffix}", model | dict(labels))
        assert sample == value, name
    unlabelled = {
        "cancellations_total": {"cause": "disconnect"},
        "tool_calls_total": {"outcome": "retried"},
        "admission_rejections_total": {"reason": "queue_full"},
        "stream_disconnects_total": {},
        "tokens_after_disconnect_total": {},
        "disconnect_to_release_seconds_count": {},
        "sse_active_streams": {},
    }
    for name, labels in unlabelled.items():
        assert registry.get_sample_value(f"antiphon_{name}", labels) == 1, name


def test_the_age_of_the_last_step_is_taken_when_somebody_looks():
    registry, now = CollectorRegistry(), [100.0]
    metrics = PrometheusTelemetry(registry, clock=lambda: now[0])
    metrics.engine_stepped(MODEL, 0.02)
    now[0] = 103.5

    age = registry.get_sample_value("antiphon_engine_last_step_age_seconds", {"model_name": MODEL})
    assert age == 3.5


async def test_the_page_for_people_shows_the_tree_the_slots_and_the_loop(get):
    reply = await get("/ops")

    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/html")
    assert 'http-equiv="refresh"' in reply.text
    assert "20 tasks" in reply.text
    assert "4.2 ms" in reply.text
    assert "└─ " in reply.text
    assert "decode" in reply.text


async def test_the_page_escapes_what_it_shows(get, sources):
    sources.reasons.append("<script>alert(1)</script>")

    text = (await get("/ops")).text

    assert "<script>" not in text
    assert "&lt;pool&gt;" in text
    assert "not ready" in text


async def test_the_event_loop_is_told_as_json(get):
    assert (await get("/ops/runtime")).json()["loop_lag_s"] == 0.0042


async def test_the_page_shows_an_open_circuit_and_when_it_is_tried_next(get, sources):
    assert "Circuit engine m" in (await get("/ops")).text
    sources.circuits = [a_breaker("open", failures_in_row=5, retry_after_s=2.5, refused=12)]

    text = " ".join((await get("/ops")).text.split())

    assert '<span class="bad">open</span>, 5 failures in a row, next try in 2.5 s' in text
    assert "12 calls refused" in text


@pytest.mark.parametrize(("circuit", "value"), [("closed", 0), ("half_open", 1), ("open", 2)])
def test_the_state_of_a_circuit_is_a_gauge(registry, metrics, circuit, value):
    metrics.watch_circuit(MODEL, lambda: a_breaker(circuit))

    labels = {"model_name": MODEL}
    assert registry.get_sample_value("antiphon_engine_circuit_state", labels) == value
