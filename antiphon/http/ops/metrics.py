"""All metrics of the server, behind the Telemetry port: nobody else knows Prometheus.

Suffixes are vLLM's, so that dashboards made for it need another prefix only. Every label has a
bounded set of values.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from antiphon.actors.abuse.abuse import AbuseStatistics
from antiphon.actors.breaker import BreakerStatistics
from antiphon.actors.moderation.status import PolicyView
from antiphon.actors.scheduling.prediction import Rates
from antiphon.actors.scheduling.tickets import Room
from antiphon.context_records import PromptActivation
from antiphon.events import CancelCause
from antiphon.http.ops.abuse_metrics import AbuseCollector
from antiphon.http.ops.file_metrics import FileMetrics
from antiphon.http.ops.policy_metrics import PolicyCollector, PolicyMetrics
from antiphon.http.ops.prompts import TURNS, PromptCollector
from antiphon.http.ops.recent import Recent
from antiphon.http.ops.replicas import ReplicaCollector
from antiphon.http.ops.store_metrics import CIRCUITS, StoreMetrics
from antiphon.http.ops.work_metrics import WorkMetrics
from antiphon.ids import ModelName, RequestId
from antiphon.moments import Moment
from antiphon.ports import ReplicaStatistics
from antiphon.views import Manifest
from antiphon.workload import WorkloadClass

_PREFIX = "antiphon"
_FIRST_TOKEN_BUCKETS = (
    *(0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_TOKEN_BUCKETS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
_LATENCY_BUCKETS = (0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 60, 120, 240, 480)
_STEP_BUCKETS = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.5, 1, 2, 5)
_RELEASE_BUCKETS = (
    *(0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2),
    *(0.3, 0.5, 1.0, 2.0, 5.0),
)
"""Fine where the promise lies: two engine steps and 20 ms."""
_RATIO_BUCKETS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.0, 5.0)
_COUNT_BUCKETS = (0, 1, 2, 3, 4, 6, 8, 16, 32, 64)


class PrometheusTelemetry:
    """Counts into one registry; `clock` is for the age of the last engine step."""

    def __init__(
        self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._last_steps: dict[ModelName, float] = {}
        self._of_tokens: dict[ModelName, tuple[Counter, Histogram]] = {}
        self.recent = Recent(clock=clock)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

        self._running = self._gauge("num_requests_running", "Requests that hold a slot")
        self._waiting = self._gauge("num_requests_waiting", "Requests that wait for a slot")
        self._lane_running = self._lane_gauge("lane_requests_running", "Requests that hold a slot")
        self._lane_waiting = self._lane_gauge(
            "lane_requests_waiting", "Requests that wait for a slot, those that are paused included"
        )
        self._lane_tokens = self._lane_gauge(
            "lane_tokens_waiting", "Tokens that wait for a slot: prompts and longest answers"
        )
        self._predicted = self._lane_gauge(
            "predicted_first_token_seconds",
            "When the first token of a usual request would come, were it submitted now",
        )
        self._prefill_rate = self._gauge(
            "prefill_tokens_per_second", "Prompt tokens a second with nothing else to do"
        )
        self._decode_rate = self._gauge(
            "decode_tokens_per_second", "Tokens a second of as many answers as there are now"
        )
        self._slots = self._gauge("slots", "Slots of the engine, none while there is no engine")
        self._free_slots = self._gauge("free_slots", "Slots that nobody holds")
        self._kv_usage = self._gauge("kv_cache_usage_perc", "KV cache in use, 0 to 1")
        self._kv_reserved = self._gauge(
            "kv_cache_reserved_perc",
            "KV cache that is promised to what holds a slot, prompts and longest answers, 0 to 1",
        )
        self._step_age = self._gauge(
            "engine_last_step_age_seconds", "Time since the engine's last step"
        )
        self._circuit = self._gauge(
            "engine_circuit_state", "Circuit breaker: 0 closed, 1 half open, 2 open"
        )
        self._first_token = self._histogram(
            "time_to_first_token_seconds", "Arrival to first text", _FIRST_TOKEN_BUCKETS
        )
        self._token_gap = self._histogram(
            "inter_token_latency_seconds", "Time between two tokens", _TOKEN_BUCKETS
        )
        self._queue_time = self._histogram(
            "request_queue_time_seconds", "Time spent waiting for a slot", _LATENCY_BUCKETS
        )
        self._turn_time = self._histogram(
            "e2e_request_latency_seconds", "Arrival to the end of the turn", _LATENCY_BUCKETS
        )
        self._step_time = self._histogram(
            "engine_step_seconds", "Duration of an engine step", _STEP_BUCKETS
        )
        self._prompt_tokens = self._counter("prompt_tokens", "Prompt tokens admitted")
        self._generated = self._counter("generation_tokens", "Tokens generated")
        self._turns = self._counter("request_success", "Turns that ended", "finished_reason")
        self._paused = self._counter(
            "generations_paused", "Times a generation gave its slot to somebody who waits"
        )
        self._predicted_error = self._histogram(
            "first_token_prediction_error_ratio",
            "How far the time to first token was from the predicted one, over the actual one",
            _RATIO_BUCKETS,
        )
        self._restarts = self._counter("engine_restarts", "Engine hosts started again")

        self._cancelled = Counter(
            f"{_PREFIX}_cancellations",
            "Turns cancelled before their end",
            ["cause"],
            registry=registry,
        )
        self._tool_calls = Counter(
            f"{_PREFIX}_tool_calls",
            "Calls of functions, and attempts at them, by how they came out",
            ["outcome"],
            registry=registry,
        )
        self._rejected = Counter(
            f"{_PREFIX}_admission_rejections",
            "Requests refused for load",
            ["reason"],
            registry=registry,
        )
        self._routed = Counter(
            f"{_PREFIX}_routed",
            "Turns by the model that took them, and why it did",
            ["model", "reason"],
            registry=registry,
        )
        self._context = Counter(
            f"{_PREFIX}_context_tokens",
            "Tokens of what turns were made of, by what became of it",
            ["model", "kind", "fate"],
            registry=registry,
        )
        self._prompts = Counter(
            TURNS,
            "Turns that began with a version of a system prompt, by how they ended",
            ["prompt", "version", "finished_reason"],
            registry=registry,
        )
        self._braked = Counter(
            f"{_PREFIX}_braked",
            "Requests that an abuse brake refused",
            ["reason"],
            registry=registry,
        )
        self._disconnects = Counter(
            f"{_PREFIX}_stream_disconnects",
            "Streaming answers that the client left",
            registry=registry,
        )
        self._release_time = Histogram(
            f"{_PREFIX}_disconnect_to_release_seconds",
            "From the client's leaving to the slot being free",
            buckets=_RELEASE_BUCKETS,
            registry=registry,
        )
        self._wasted = Counter(
            f"{_PREFIX}_tokens_after_disconnect",
            "Tokens generated for clients that had left",
            registry=registry,
        )
        self._wasted_each = Histogram(
            f"{_PREFIX}_tokens_after_disconnect_per_request",
            "Tokens generated after one client left",
            buckets=_COUNT_BUCKETS,
            registry=registry,
        )
        self._streams = Gauge(
            f"{_PREFIX}_sse_active_streams", "Streaming answers open now", registry=registry
        )
        self._http_requests = Counter(
            f"{_PREFIX}_http_requests",
            "HTTP requests answered",
            ["handler", "method", "status"],
            registry=registry,
        )
        self._http_time = Histogram(
            f"{_PREFIX}_http_request_duration_seconds",
            "HTTP request duration",
            ["handler", "method"],
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        store = StoreMetrics(registry)
        self.store_unit_finished = store.store_unit_finished
        self.store_refused = store.store_refused
        self.watch_store = store.watch
        work = WorkMetrics(registry)
        self.work_finished = work.work_finished
        self.work_done = work.work_done
        self.watch_work = work.watch
        files = FileMetrics(registry)
        self.document_made = files.document_made
        self.files_searched = files.files_searched
        self.watch_files = files.watch
        policy = PolicyMetrics(registry)
        self.texts_judged = policy.texts_judged
        self.judging_took = policy.judging_took
        self.rule_matched = policy.rule_matched
        self.rule_not_run = policy.rule_not_run
        self.judge_restarted = policy.judge_restarted
        self.policy_events_dropped = policy.policy_events_dropped
        for cause in CancelCause:
            self._cancelled.labels(cause.value)  # so that a rate exists before the first one

    def http_request_finished(self, handler: str, method: str, status: int, seconds: float) -> None:
        self._http_requests.labels(handler, method, str(status)).inc()
        self._http_time.labels(handler, method).observe(seconds)

    def sse_opened(self) -> None:
        self._streams.inc()

    def sse_closed(self) -> None:
        self._streams.dec()

    def turn_noted(self, request: RequestId, moment: Moment) -> None:
        self.recent.timelines.note(request, moment, self._clock(), time.time())

    def stream_disconnected(self) -> None:
        self._disconnects.inc()

    def admission_rejected(self, reason: str) -> None:
        self._rejected.labels(reason).inc()

    def turn_routed(self, model: ModelName, reason: str) -> None:
        self._routed.labels(model, reason).inc()

    def view_built(self, model: ModelName, manifest: Manifest) -> None:
        for run in manifest.runs:
            self._context.labels(model, run.kind.value, run.fate.value).inc(run.tokens)

    def requests_in_flight(self, model: ModelName, *, running: int, waiting: int) -> None:
        self._running.labels(model).set(running)
        self._waiting.labels(model).set(waiting)

    def lane_in_flight(
        self, model: ModelName, lane: WorkloadClass, *, running: int, waiting: int, tokens: int
    ) -> None:
        self._lane_running.labels(model, lane.value).set(running)
        self._lane_waiting.labels(model, lane.value).set(waiting)
        self._lane_tokens.labels(model, lane.value).set(tokens)

    def generation_paused(self, model: ModelName) -> None:
        self._paused.labels(model).inc()

    def first_token_predicted(self, model: ModelName, predicted_s: float, actual_s: float) -> None:
        if actual_s > 0:
            error = abs(predicted_s - actual_s) / actual_s
            self._predicted_error.labels(model).observe(error)

    def queue_left(self, model: ModelName, seconds: float) -> None:
        self._queue_time.labels(model).observe(seconds)

    def first_token(self, model: ModelName, seconds: float) -> None:
        self._first_token.labels(model).observe(seconds)

    def prompt_admitted(self, model: ModelName, tokens: int) -> None:
        self._prompt_tokens.labels(model).inc(tokens)

    def tokens_generated(self, model: ModelName, tokens: int, seconds: float) -> None:
        # The one report that comes for every token: looking a label up costs more than counting.
        counters = self._of_tokens.get(model)
        if counters is None:
            counters = self._generated.labels(model), self._token_gap.labels(model)
            self._of_tokens[model] = counters
        counters[0].inc(tokens)
        if tokens > 0 and seconds > 0:
            counters[1].observe(seconds / tokens)
        self.recent.pulse.add(model, tokens, self._clock())

    def turn_finished(self, model: ModelName, finished_reason: str, seconds: float) -> None:
        self._turns.labels(model, finished_reason).inc()
        self._turn_time.labels(model).observe(seconds)

    def prompt_used(self, prompt: str | None, finished_reason: str) -> None:
        if prompt is not None:
            self._prompts.labels(*prompt.split("@"), finished_reason).inc()

    def tool_call(self, outcome: str) -> None:
        self._tool_calls.labels(outcome).inc()

    def turn_cancelled(self, cause: CancelCause) -> None:
        self._cancelled.labels(cause.value).inc()

    def released_after_disconnect(self, seconds: float, tokens: int) -> None:
        self._release_time.observe(seconds)
        self._wasted.inc(tokens)
        self._wasted_each.observe(tokens)

    def engine_stepped(self, model: ModelName, seconds: float) -> None:
        self._step_time.labels(model).observe(seconds)
        if model not in self._last_steps:
            self._step_age.labels(model).set_function(lambda: self._age(model))
        self._last_steps[model] = self._clock()

    def engine_stats(self, model: ModelName, kv_usage: float) -> None:
        self._kv_usage.labels(model).set(kv_usage)

    def watch_circuit(self, model: ModelName, read: Callable[[], BreakerStatistics]) -> None:
        """Show the state of a model's circuit breaker as it is when somebody looks."""
        self._circuit.labels(model).set_function(lambda: CIRCUITS[read().circuit])

    def watch_forecast(
        self,
        model: ModelName,
        rates: Callable[[], Rates],
        first_token_s: Callable[[WorkloadClass], float],
    ) -> None:
        """Show what an engine does now, and when a first token would come, when somebody looks."""
        self._prefill_rate.labels(model).set_function(lambda: rates().prefill_tokens_s)
        self._decode_rate.labels(model).set_function(lambda: rates().decode_tokens_s)
        for lane in WorkloadClass:
            gauge = self._predicted.labels(model, lane.value)
            gauge.set_function(partial(first_token_s, lane))

    def watch_room(self, model: ModelName, read: Callable[[], Room]) -> None:
        """Show what there is to be had and what is left of it, when somebody looks."""
        self._slots.labels(model).set_function(lambda: read().slots)
        self._free_slots.labels(model).set_function(lambda: read().free_slots)
        self._kv_reserved.labels(model).set_function(lambda: read().reserved)

    def watch_replicas(
        self, model: ModelName, read: Callable[[], Sequence[ReplicaStatistics]]
    ) -> None:
        """Show the replicas of a model's upstream as they are when somebody looks."""
        self._registry.register(ReplicaCollector(model, read))

    def engine_restarted(self, model: ModelName) -> None:
        self._restarts.labels(model).inc()

    def braked(self, reason: str) -> None:
        self._braked.labels(reason).inc()

    def watch_policy(self, read: Callable[[], PolicyView]) -> None:
        """Show the rules in force and the judges as they are when somebody looks."""
        self._registry.register(PolicyCollector(read))

    def watch_prompts(self, read: Callable[[], Sequence[PromptActivation]]) -> None:
        """Show which versions of the prompts of the settings are in force when somebody looks."""
        self._registry.register(PromptCollector(read))

    def watch_abuse(self, read: Callable[[], AbuseStatistics]) -> None:
        """Show what the abuse detection counts and does when somebody looks."""
        self._registry.register(AbuseCollector(read))

    def _age(self, model: ModelName) -> float:
        return self._clock() - self._last_steps[model]

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, ["model_name"], registry=self._registry)

    def _lane_gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, ["model_name", "lane"], registry=self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        names = ["model_name", *labels]
        return Counter(f"{_PREFIX}_{name}", text, names, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        names = ["model_name"]
        return Histogram(f"{_PREFIX}_{name}", text, names, buckets=buckets, registry=self._registry)
