"""Where rooms report what happens, said at their side: a port, as those in `ports`."""

from typing import Protocol

from antiphon.events import CancelCause
from antiphon.ids import ModelName, RequestId
from antiphon.moments import Moment
from antiphon.views import Manifest
from antiphon.workload import WorkloadClass


class Telemetry(Protocol):
    """What rooms report as it happens. Every method is a fact, never blocks, never raises."""

    def http_request_finished(
        self, handler: str, method: str, status: int, seconds: float
    ) -> None: ...

    def turn_noted(self, request: RequestId, moment: Moment) -> None:
        """Something has become of one turn."""

    def sse_opened(self) -> None:
        """A streaming answer began; `sse_closed` follows exactly once."""

    def sse_closed(self) -> None: ...

    def stream_disconnected(self) -> None:
        """The client left a streaming answer before its end."""

    def admission_rejected(self, reason: str) -> None:
        """A request was refused for load; `reason` is a short word of a fixed set."""

    def turn_routed(self, model: ModelName, reason: str) -> None:
        """A turn was taken by this model's pool; `reason` is a short word of a fixed set."""

    def view_built(self, model: ModelName, manifest: Manifest) -> None:
        """The same, and it is shown that of its conversation."""

    def requests_in_flight(self, model: ModelName, *, running: int, waiting: int) -> None:
        """How many requests hold a slot and how many wait for one, now."""

    def lane_in_flight(
        self, model: ModelName, lane: WorkloadClass, *, running: int, waiting: int, tokens: int
    ) -> None:
        """The same of one lane; `tokens` is what waits in it, prompts and longest answers."""

    def generation_paused(self, model: ModelName) -> None:
        """A generation gave its slot to somebody who waits, and waits itself."""

    def first_token_predicted(self, model: ModelName, predicted_s: float, actual_s: float) -> None:
        """A request's first token came; when it was to come had been predicted."""

    def queue_left(self, model: ModelName, seconds: float) -> None:
        """A request got its slot after waiting this long."""

    def first_token(self, model: ModelName, seconds: float) -> None:
        """The first text of a request, this long after the request arrived."""

    def prompt_admitted(self, model: ModelName, tokens: int) -> None: ...

    def tokens_generated(self, model: ModelName, tokens: int, seconds: float) -> None:
        """A request gained tokens, `seconds` after it last did; 0 for its first ones."""

    def turn_finished(self, model: ModelName, finished_reason: str, seconds: float) -> None:
        """A turn ended, in whatever way: stop, length, abort or error."""

    def prompt_used(self, prompt: str | None, finished_reason: str) -> None:
        """The same; `prompt` is `name@version` of the one that it began with, if any."""

    def tool_call(self, outcome: str) -> None:
        """A model has called a function, or tried to: `chosen`, `required` or `retried` say how a
        call came about that was made; `malformed` is an attempt that was none, after which there
        may be a `retried` one, and `cut` one that the longest answer has ended."""

    def turn_cancelled(self, cause: CancelCause) -> None: ...

    def released_after_disconnect(self, seconds: float, tokens: int) -> None:
        """The engine gave a slot back after the client left; `tokens` were generated in between."""

    def engine_stepped(self, model: ModelName, seconds: float) -> None: ...

    def engine_stats(self, model: ModelName, kv_usage: float) -> None:
        """`kv_usage` is 0…1."""

    def engine_restarted(self, model: ModelName) -> None: ...

    def braked(self, reason: str) -> None:
        """A request was refused by an abuse brake; `reason` is a short word of a fixed set."""

    def store_unit_finished(self, kind: str, outcome: str, seconds: float) -> None:
        """One unit of work with the database: `kind` is read or write; `outcome` ok, refused (by a
        rule), unavailable, failed or defect."""

    def texts_judged(self, stage: str, outcome: str) -> None:
        """The texts of one request, or one output from its first word to its last. `outcome` is
        passed, blocked, transformed, annotated or not_run."""

    def judging_took(self, stage: str, seconds: float) -> None:
        """Somebody has waited so long for a verdict; for an output it may be one of many."""

    def rule_matched(self, rule: str, action: str, *, shadow: bool) -> None: ...

    def rule_not_run(self, failure: str, on_failure: str) -> None: ...

    def judge_restarted(self) -> None:
        """A judge process was started again."""

    def policy_events_dropped(self, events: int) -> None:
        """There was no room for them while the store was away."""

    def work_finished(self, kind: str, outcome: str) -> None:
        """A background worker is done with a title, a summary or memories. `outcome` is how it was
        made, `model` or `extract`; none (there was nothing to do), blocked (by the policy),
        unwanted (it was deleted or written meanwhile), or failed: it is tried again."""

    def work_done(self, seconds: float) -> None:
        """All work on a conversation is done, so long after its last turn."""

    def document_made(self, outcome: str, seconds: float) -> None:
        """The work on a document has ended here: ready, unembedded (full text alone finds it),
        failed (the file's fault), again (it is tried once more), lost (deleted, or another server
        has it), or let_go (the server stops)."""

    def files_searched(self, outcome: str, seconds: float) -> None:
        """A question was asked of files: found, nothing, or by_text: its meaning could not be
        searched for."""

    def store_refused(self, reason: str) -> None:
        """A unit was not begun: overloaded or circuit_open."""
