"""The loop of the engine, in a thread: requests and cancels come in one queue, in order; a cancel
takes effect after an iteration, and only on what is active.

A request answers with the tokens before the first end token of its prompt, then ends. So an answer
that goes on from its own first half ends the same.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .results import Response
from .switches import DICE, SWITCHES, note


@dataclass(slots=True)
class Submit:
    request_id: int
    prompt: list[int]
    max_tokens: int
    end_ids: frozenset[int]
    first_end: int
    blocks: int
    prefill_iterations: int = 1
    min_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Cancel:
    request_id: int


@dataclass(slots=True)
class _Active:
    submit: Submit
    generated: int = 0
    prefill_left: int = 0
    ignores_cancel: bool = False
    mute: bool = False


class PyExecutor:
    """`deliver` is called with every iteration's responses, on this thread."""

    def __init__(
        self,
        max_batch_size: int,
        deliver: Callable[[list[Response]], None],
        kill_worker: Callable[[], None],
    ) -> None:
        self._max_batch_size = max_batch_size
        self._deliver = deliver
        self._kill_worker = kill_worker
        self._queue: queue.SimpleQueue[Submit | Cancel | None] = queue.SimpleQueue()
        self._waiting: list[Submit] = []
        self._active: dict[int, _Active] = {}
        self._canceled: list[int] = []
        self._leaked = 0
        self._started = 0
        self._failed: set[tuple[int, ...]] = set()
        """Prompts that failed by chance: once each, or nobody could tell chance from guilt."""
        self._late: list[tuple[float, Response]] = []
        self.blocks_used = 0
        self.iterations = 0
        self.background_error: str | None = None
        self._thread = threading.Thread(target=self._run, name="py_executor", daemon=True)
        self._thread.start()

    def put(self, item: Submit | Cancel) -> None:
        self._queue.put(item)

    def join(self) -> None:
        self._queue.put(None)
        if SWITCHES.shutdown_hangs:
            threading.Event().wait()
        self._thread.join()

    @property
    def num_active(self) -> int:
        return len(self._active) + self._leaked

    def _run(self) -> None:
        while self._fetch():
            responses = self._late_responses()
            if self._active:
                time.sleep(SWITCHES.iteration_s)
                self.iterations += 1
                if self._struck():
                    return
                responses += self._forward()
                responses += self._handle_canceled()
            if responses:
                self._deliver(responses)

    def _fetch(self) -> bool:
        """Everything that has come; waits only when there is nothing to do."""
        idle = not self._active and not self._late
        try:
            while True:
                item = self._queue.get(timeout=0.05) if idle else self._queue.get_nowait()
                idle = False
                match item:
                    case None:
                        return False
                    case Submit():
                        self._waiting.append(item)
                    case Cancel():
                        self._canceled.append(item.request_id)
        except queue.Empty:
            pass
        # A canceled request that still waits is dropped without a response (1.2).
        self._waiting = [s for s in self._waiting if s.request_id not in self._canceled]
        while self._waiting and self._has_room(self._waiting[0]):
            submit = self._waiting.pop(0)
            self.blocks_used += submit.blocks
            self._active[submit.request_id] = _Active(
                submit,
                prefill_left=submit.prefill_iterations,
                mute=SWITCHES.mute in submit.prompt,
            )
        return True

    def _has_room(self, submit: Submit) -> bool:
        fits = self.blocks_used + submit.blocks <= SWITCHES.kv_blocks
        return fits and self.num_active < self._max_batch_size

    def _struck(self) -> bool:
        """Whether this iteration is the last one, by a switch."""
        if self.iterations == SWITCHES.background_error_at:
            self.background_error = "a background thread failed"
        if self.iterations == SWITCHES.worker_dies_at:
            note(event="worker_dies")
            self._kill_worker()
            return True
        return self.iterations == SWITCHES.hangs_at

    def _forward(self) -> list[Response]:
        poisoned = any(SWITCHES.poison in active.submit.prompt for active in self._active.values())
        if poisoned or _is_nth(self.iterations, SWITCHES.step_throws_each):
            failed = list(self._active)
            for request_id in failed:
                self._terminate(request_id)
            return [Response(request_id, error="CUDA error in forward") for request_id in failed]
        responses: list[Response] = []
        for request_id, active in list(self._active.items()):
            if active.mute:
                continue
            if active.prefill_left:
                active.prefill_left -= 1
                if active.prefill_left == 0 and self._fails(active.submit):
                    self._terminate(request_id)
                    responses.append(Response(request_id, error="this request failed"))
                continue
            responses += self._decode(request_id, active)
        return responses

    def _fails(self, submit: Submit) -> bool:
        self._started += 1
        prompt = tuple(submit.prompt)
        every = _is_nth(self._started, SWITCHES.request_fails_each) and prompt not in self._failed
        if every:
            self._failed.add(prompt)
        return every or SWITCHES.failing in submit.prompt

    def _decode(self, request_id: int, active: _Active) -> list[Response]:
        tokens: list[int] = []
        reason: str | None = None
        while len(tokens) < SWITCHES.tokens_at_once and reason is None:
            token = _next_token(active.submit, active.generated)
            tokens.append(token)
            active.generated += 1
            if token in active.submit.end_ids and active.generated > active.submit.min_tokens:
                reason = "stop"
            elif active.generated >= active.submit.max_tokens:
                reason = "length"
        if SWITCHES.strange_end in active.submit.prompt:
            reason = "timeout"
        if reason is None:
            return [Response(request_id, tuple(tokens))]
        self._terminate(request_id)
        cut = int(SWITCHES.cut_end and reason == "stop")
        if SWITCHES.final_delay_s or DICE.random() < SWITCHES.finals_lost:
            if SWITCHES.final_delay_s:
                due = time.monotonic() + SWITCHES.final_delay_s
                self._late.append((due, Response(request_id, (), reason, is_final=True)))
            return [Response(request_id, tuple(tokens), reason, cut=cut)]
        return [Response(request_id, tuple(tokens), reason, is_final=True, cut=cut)]

    def _handle_canceled(self) -> list[Response]:
        canceled, self._canceled = self._canceled, []
        responses = []
        for request_id in canceled:
            active = self._active.get(request_id)
            if active is None or active.ignores_cancel:
                continue
            if DICE.random() < SWITCHES.aborts_ignored:
                active.ignores_cancel = True
            elif DICE.random() < SWITCHES.aborts_unanswered:
                self._terminate(request_id)
            elif DICE.random() < SWITCHES.aborts_leak:
                del self._active[request_id]
                self._leaked += 1
            else:
                self._terminate(request_id)
                responses.append(Response(request_id, (), "cancelled", is_final=True))
        return responses

    def _late_responses(self) -> list[Response]:
        now = time.monotonic()
        due = [response for at, response in self._late if at <= now]
        self._late = [entry for entry in self._late if entry[0] > now]
        if self._late and not self._active:
            time.sleep(SWITCHES.iteration_s)
        return due

    def _terminate(self, request_id: int) -> None:
        self.blocks_used -= self._active.pop(request_id).submit.blocks


def _is_nth(number: int, each: int | None) -> bool:
    return each is not None and number % each == 0


def _next_token(submit: Submit, generated: int) -> int:
    prompt = submit.prompt
    end = prompt.index(submit.first_end) if submit.first_end in prompt else len(prompt)
    before = max(0, len(prompt) - end - 1)
    place = before + generated
    if generated < submit.min_tokens and end:
        place %= end  # the end is masked then, and the answer begins anew
    return prompt[place] if place < end else submit.first_end
