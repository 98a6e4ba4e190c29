"""Telemetry for tests: one that forgets and one that remembers."""

from antiphon.events import CancelCause
from antiphon.ids import ModelName, RequestId
from antiphon.moments import Moment
from antiphon.views import Manifest
from antiphon.workload import WorkloadClass


class NullTelemetry:
    """Counts nothing."""

    def http_request_finished(self, handler: str, method: str, status: int, seconds: float) -> None:
        pass

    def turn_noted(self, request: RequestId, moment: Moment) -> None:
        pass

    def sse_opened(self) -> None:
        pass

    def sse_closed(self) -> None:
        pass

    def stream_disconnected(self) -> None:
        pass

    def admission_rejected(self, reason: str) -> None:
        pass

    def turn_routed(self, model: ModelName, reason: str) -> None:
        pass

    def view_built(self, model: ModelName, manifest: Manifest) -> None:
        pass

    def requests_in_flight(self, model: ModelName, *, running: int, waiting: int) -> None:
        pass

    def lane_in_flight(
        self, model: ModelName, lane: WorkloadClass, *, running: int, waiting: int, tokens: int
    ) -> None:
        pass

    def generation_paused(self, model: ModelName) -> None:
        pass

    def first_token_predicted(self, model: ModelName, predicted_s: float, actual_s: float) -> None:
        pass

    def queue_left(self, model: ModelName, seconds: float) -> None:
        pass

    def first_token(self, model: ModelName, seconds: float) -> None:
        pass

    def prompt_admitted(self, model: ModelName, tokens: int) -> None:
        pass

    def tokens_generated(self, model: ModelName, tokens: int, seconds: float) -> None:
        pass

    def turn_finished(self, model: ModelName, finished_reason: str, seconds: float) -> None:
        pass

    def prompt_used(self, prompt: str | None, finished_reason: str) -> None:
        pass

    def tool_call(self, outcome: str) -> None:
        pass

    def turn_cancelled(self, cause: CancelCause) -> None:
        pass

    def released_after_disconnect(self, seconds: float, tokens: int) -> None:
        pass

    def engine_stepped(self, model: ModelName, seconds: float) -> None:
        pass

    def engine_stats(self, model: ModelName, kv_usage: float) -> None:
        pass

    def engine_restarted(self, model: ModelName) -> None:
        pass

    def braked(self, reason: str) -> None:
        pass

    def store_unit_finished(self, kind: str, outcome: str, seconds: float) -> None:
        pass

    def store_refused(self, reason: str) -> None:
        pass

    def work_finished(self, kind: str, outcome: str) -> None:
        pass

    def work_done(self, seconds: float) -> None:
        pass

    def document_made(self, outcome: str, seconds: float) -> None:
        pass

    def files_searched(self, outcome: str, seconds: float) -> None:
        pass

    def texts_judged(self, stage: str, outcome: str) -> None:
        pass

    def judging_took(self, stage: str, seconds: float) -> None:
        pass

    def rule_matched(self, rule: str, action: str, *, shadow: bool) -> None:
        pass

    def rule_not_run(self, failure: str, on_failure: str) -> None:
        pass

    def judge_restarted(self) -> None:
        pass

    def policy_events_dropped(self, events: int) -> None:
        pass


class RecordingTelemetry:
    """Keeps every report in order, as (name, arguments)."""

    def __init__(self) -> None:
        self.reports: list[tuple[object, ...]] = []

    def named(self, name: str) -> list[tuple[object, ...]]:
        """The arguments of each report of that name."""
        return [report[1:] for report in self.reports if report[0] == name]

    def http_request_finished(self, handler: str, method: str, status: int, seconds: float) -> None:
        self.reports.append(("http_request_finished", handler, method, status, seconds))

    def turn_noted(self, request: RequestId, moment: Moment) -> None:
        self.reports.append(("turn_noted", request, moment))

    def sse_opened(self) -> None:
        self.reports.append(("sse_opened",))

    def sse_closed(self) -> None:
        self.reports.append(("sse_closed",))

    def stream_disconnected(self) -> None:
        self.reports.append(("stream_disconnected",))

    def admission_rejected(self, reason: str) -> None:
        self.reports.append(("admission_rejected", reason))

    def turn_routed(self, model: ModelName, reason: str) -> None:
        self.reports.append(("turn_routed", model, reason))

    def view_built(self, model: ModelName, manifest: Manifest) -> None:
        self.reports.append(("view_built", model, manifest))

    def requests_in_flight(self, model: ModelName, *, running: int, waiting: int) -> None:
        self.reports.append(("requests_in_flight", model, running, waiting))

    def lane_in_flight(
        self, model: ModelName, lane: WorkloadClass, *, running: int, waiting: int, tokens: int
    ) -> None:
        self.reports.append(("lane_in_flight", model, lane, running, waiting, tokens))

    def generation_paused(self, model: ModelName) -> None:
        self.reports.append(("generation_paused", model))

    def first_token_predicted(self, model: ModelName, predicted_s: float, actual_s: float) -> None:
        self.reports.append(("first_token_predicted", model, predicted_s, actual_s))

    def queue_left(self, model: ModelName, seconds: float) -> None:
        self.reports.append(("queue_left", model, seconds))

    def first_token(self, model: ModelName, seconds: float) -> None:
        self.reports.append(("first_token", model, seconds))

    def prompt_admitted(self, model: ModelName, tokens: int) -> None:
        self.reports.append(("prompt_admitted", model, tokens))

    def tokens_generated(self, model: ModelName, tokens: int, seconds: float) -> None:
        self.reports.append(("tokens_generated", model, tokens, seconds))

    def turn_finished(self, model: ModelName, finished_reason: str, seconds: float) -> None:
        self.reports.append(("turn_finished", model, finished_reason, seconds))

    def prompt_used(self, prompt: str | None, finished_reason: str) -> None:
        self.reports.append(("prompt_used", prompt, finished_reason))

    def tool_call(self, outcome: str) -> None:
        self.reports.append(("tool_call", outcome))

    def turn_cancelled(self, cause: CancelCause) -> None:
        self.reports.append(("turn_cancelled", cause))

    def released_after_disconnect(self, seconds: float, tokens: int) -> None:
        self.reports.append(("released_after_disconnect", seconds, tokens))

    def engine_stepped(self, model: ModelName, seconds: float) -> None:
        self.reports.append(("engine_stepped", model, seconds))

    def engine_stats(self, model: ModelName, kv_usage: float) -> None:
        self.reports.append(("engine_stats", model, kv_usage))

    def engine_restarted(self, model: ModelName) -> None:
        self.reports.append(("engine_restarted", model))

    def braked(self, reason: str) -> None:
        self.reports.append(("braked", reason))

    def store_unit_finished(self, kind: str, outcome: str, seconds: float) -> None:
        self.reports.append(("store_unit_finished", kind, outcome, seconds))

    def store_refused(self, reason: str) -> None:
        self.reports.append(("store_refused", reason))

    def work_finished(self, kind: str, outcome: str) -> None:
        self.reports.append(("work_finished", kind, outcome))

    def document_made(self, outcome: str, seconds: float) -> None:
        self.reports.append(("document_made", outcome))

    def files_searched(self, outcome: str, seconds: float) -> None:
        self.reports.append(("files_searched", outcome))

    def work_done(self, seconds: float) -> None:
        self.reports.append(("work_done", seconds))

    def texts_judged(self, stage: str, outcome: str) -> None:
        self.reports.append(("texts_judged", stage, outcome))

    def judging_took(self, stage: str, seconds: float) -> None:
        self.reports.append(("judging_took", stage, seconds))

    def rule_matched(self, rule: str, action: str, *, shadow: bool) -> None:
        self.reports.append(("rule_matched", rule, action, shadow))

    def rule_not_run(self, failure: str, on_failure: str) -> None:
        self.reports.append(("rule_not_run", failure, on_failure))

    def judge_restarted(self) -> None:
        self.reports.append(("judge_restarted",))

    def policy_events_dropped(self, events: int) -> None:
        self.reports.append(("policy_events_dropped", events))
