"""TensorRT-LLM as the host runtime wants an engine: it steps by itself, and a step here takes in
what its event loop has heard since the last one.

One thread, one loop. A slot is used until the engine has said, or another request has proved, that
it is free.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog

from antiphon.engine.blame import Blame
from antiphon.engine.config import HostConfig
from antiphon.engine.contract import AdmitRefused, EngineBroken, Failed, Gained, StepResult
from antiphon.engine_trt.library import REFUSALS, plain_reason
from antiphon.engine_trt.loading import Loaded
from antiphon.engine_trt.prefixes import SharedPrefixes
from antiphon.engine_trt.releases import Releases
from antiphon.engine_trt.runs import Run, read
from antiphon.engine_trt.sampling import probe_params, sampling_params
from antiphon.engine_trt.statistics import Statistics
from antiphon.engine_trt.workers import health_problem
from antiphon.events import Admit, Capabilities
from antiphon.ids import EngineRequest

log = structlog.get_logger(__name__)

_SETTLE_S = 0.02
"""An error of the engine reaches all its requests, one after another, within this."""
_CHECK_S = 0.02
_ASK_S = 1.0
_PRIORITY = 0.5
_FIRST = 1.0
_KEEP = 80
"""Retention priority of a shared beginning; 35 is the library's for everything else."""
_PROBE_SALT = "antiphon-probe"


class TrtEngine:
    """One loaded model, made on the running loop. `wake` is called when there is news."""

    def __init__(
        self,
        loaded: Loaded,
        config: HostConfig,
        capabilities: Capabilities,
        statistics: Statistics,
        wake: Callable[[], None],
    ) -> None:
        self._llm = loaded.llm
        self._library = loaded.library
        self._settings = config.trt
        self._stop_tokens = config.stop_token_ids
        self._capabilities = capabilities
        self._statistics = statistics
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._runs: dict[EngineRequest, Run] = {}
        self._result = StepResult()
        self._blame = Blame()
        self._unjudged: dict[EngineRequest, str] = {}
        self._releases = Releases(config.trt.abort_wait_s, config.trt.idle_s)
        self._prefixes = SharedPrefixes(capabilities.block_size)
        self._blocks_left = capabilities.kv_blocks
        self._submitted = 0
        self._probe: asyncio.Task[None] | None = None
        self._broken: str | None = None
        self._heard_at = self._stepped_at = self._loop.time()
        self._next_check = self._next_ask = self._heard_at
        self._iteration = statistics.iteration
        self._moved = False

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def descriptors(self) -> Sequence[int]:
        return ()

    def admit(self, admit: Admit, generated: Sequence[int] = ()) -> None:
        """Take the request in. Raises AdmitRefused."""
        run = Run(admit, self._blocks_needed(admit), generated=list(generated))
        if not self._runs:
            self._stepped_at = self._loop.time()
        if not self._blame.holds(admit.request):
            self._submit(run, _PRIORITY)
        self._blocks_left -= run.blocks
        self._runs[admit.request] = run

    def abort(self, request: EngineRequest) -> bool:
        """Nothing is promised: the slot is used until its release is proven."""
        run = self._runs.get(request)
        if run is None or run.over:
            return False
        run.over = True
        self._forget(request)
        if run.output is None:
            self._free(request)
        elif self._settings.abort:
            self._send_abort(run)
        return False

    def busy(self) -> bool:
        result = self._result
        return bool(result.gained or result.freed or result.failed or self._moved or self._broken)

    def step(self) -> StepResult:
        """What has been heard since the last step. Raises EngineBroken."""
        if self._broken is not None:
            raise EngineBroken(self._broken)
        result, self._result = self._result, StepResult()
        self._moved = False
        now = self._loop.time()
        result.duration_s, self._stepped_at = now - self._stepped_at, now
        return result

    def kv_usage(self) -> float:
        if not self._runs:
            return 0.0
        if (blocks := self._statistics.blocks) is not None:
            return min(1.0, blocks.used / blocks.total)
        return 1 - self._blocks_left / self._capabilities.kv_blocks

    def tick(self) -> None:
        """See to all that has waited for too long."""
        now = self._loop.time()
        if now < self._next_check:
            return
        self._next_check = now + _CHECK_S
        for run in list(self._runs.values()):
            if run.output is not None and now - run.heard_at > self._settings.idle_s:
                self._give_up(run, now)
        for request in self._releases.due(now):
            log.info("engine_release_inferred", request=request)
            self._free(request)
        if self._releases.wants_probe(now):
            self._send_probe()
        if self._releases.is_stuck(now, self._heard_at):
            self.break_down("aborted requests never ended, and a probe got no answer")
        if now >= self._next_ask:
            self._next_ask = now + _ASK_S
            self._look_at_engine()

    def break_down(self, detail: str) -> None:
        """It can't be brought back; the next step says so. The first reason counts."""
        self._broken = self._broken or detail
        self._wake()

    def close(self) -> None:
        """End every request and the engine; may block for as long as the library likes."""
        self._statistics.close()
        for run in self._runs.values():
            if run.task is not None:
                run.task.cancel()
        if self._probe is not None:
            self._probe.cancel()
        self._llm.shutdown()

    def _blocks_needed(self, admit: Admit) -> int:
        """As many as prompt and longest answer take, so that nobody waits inside the engine. Raises
        AdmitRefused."""
        total = len(admit.prompt) + admit.max_tokens
        # An empty prompt fails an assertion inside the library.
        if not admit.prompt or admit.max_tokens < 1:
            raise AdmitRefused("invalid_sampling", "an empty prompt or an empty answer")
        if total > self._capabilities.window:
            raise AdmitRefused(
                "window", f"{total} tokens do not fit a window of {self._capabilities.window}"
            )
        blocks = -(-total // self._capabilities.block_size)
        if blocks > self._blocks_left:
            raise AdmitRefused(
                "capacity", f"{blocks} KV blocks are needed and {self._blocks_left} are free"
            )
        return blocks

    def _submit(self, run: Run, priority: float) -> None:
        """Put a run into the engine, after what it generated before. Raises AdmitRefused."""
        admit = run.admit
        if run.generated and admit.sampling.json_schema is not None:
            raise AdmitRefused("engine_error", "a grammar can't begin in the middle of an answer")
        params = sampling_params(admit, self._library, self._stop_tokens, len(run.generated))
        shared = self._prefixes.shared_tokens(admit.prompt, admit.salt)
        extras = {
            "cache_salt": admit.salt,
            "priority": priority,
            "kv_cache_retention_config": self._library.retained(shared, _KEEP) if shared else None,
        }
        run.output = self._generate([*admit.prompt, *run.generated], params, extras)
        run.order = self._submitted
        run.read = 0
        run.heard_at = self._loop.time()
        run.task = self._loop.create_task(self._consume(run, run.output))
        run.task.add_done_callback(partial(self._consumed, run, run.output))

    def _generate(self, prompt: list[int], params: Any, extras: dict[str, Any]) -> Any:
        """Raises AdmitRefused."""
        known = {
            name: value
            for name, value in extras.items()
            if value is not None and name in self._library.submit_keywords
        }
        try:
            output = self._llm.generate_async(prompt, params, streaming=True, **known)
        except REFUSALS as error:
            raise AdmitRefused("invalid_sampling", plain_reason(error)) from error
        except RuntimeError as error:
            if not isinstance(error, self._library.request_error):
                # What a background thread of the library ran into comes out here.
                self.break_down(plain_reason(error))
            raise AdmitRefused("engine_error", plain_reason(error)) from error
        self._submitted += 1
        return output

    async def _consume(self, run: Run, output: Any) -> None:
        # The first exception ends it: after one the library's iterator would wait for ever.
        async for _ in output:
            self._hear(run)
            if output.finished:
                return

    def _hear(self, run: Run) -> None:
        """Read one response. This is the hot path: every live request, every iteration."""
        request = run.admit.request
        news = read(run)
        run.heard_at = self._heard_at = now = self._loop.time()
        if news.tokens:
            self._releases.spoke(run.order)
        if run.over:
            self._releases.heard(request, now)
            return
        if news.tokens and self._blame.alert:
            self._blame.gave_token(request)
            self._try_next()
        run.generated += news.tokens
        self._result.prefilled += news.prefilled
        if news.ended_by is not None:
            run.over = True
            run.failure = ("engine_error", f"the engine ended it: {news.ended_by}")
        elif news.end is not None:
            run.over = True
        if news.tokens or news.end is not None:
            gained = Gained(request, news.tokens, news.logprobs, news.end, news.cached)
            self._result.gained.append(gained)
        if run.over:
            self._forget(request)
            if not run.output.finished:  # then its last word is due at once
                self._releases.leave(request, self._submitted, now)
        self._wake()

    def _consumed(self, run: Run, output: Any, task: "asyncio.Task[None]") -> None:
        """Its iterator has ended, one way or another."""
        if task.cancelled() or run.output is not output:
            return
        run.output = None
        request = run.admit.request
        error = task.exception()
        if error is None:
            if not run.over:
                run.failure = ("engine_error", "its answer ended without a word")
            self._free(request)
        elif not isinstance(error, self._library.request_error):
            self.break_down(f"{type(error).__name__}: {plain_reason(error)}")
        elif run.over:
            self._free(request)
        else:
            if not self._unjudged:
                self._loop.call_later(_SETTLE_S, self._judge)
            self._unjudged[request] = plain_reason(error)

    def _judge(self) -> None:
        """What failed together was failed by one of them, or by none: PyExecutor fails everybody
        when a step throws. One alone among others gets a second try by itself."""
        unjudged, self._unjudged = self._unjudged, {}
        failed = [request for request in unjudged if request in self._runs]
        others = any(run.output is not None and not run.over for run in self._runs.values())
        if not failed:
            return
        if len(failed) == 1 and others:
            self._try_again(failed[0], unjudged[failed[0]])
            return
        log.error("engine_step_threw", live=len(failed), reason=unjudged[failed[0]])
        shown = {request for request in failed if self._runs[request].generated}
        try:
            verdict = self._blame.step_threw(failed, shown)
        except EngineBroken as error:
            self.break_down(error.detail)
            return
        parked = set(verdict.parked)
        for request in failed:
            if request in verdict.failed:
                self._fail(request, unjudged[request])
            elif request not in parked:
                self._put_back(request)
        self._try_next()

    def _try_again(self, request: EngineRequest, error: str) -> None:
        run = self._runs[request]
        if run.retried:
            self._fail(request, error)
        else:
            run.retried = True
            self._put_back(request)

    def _try_next(self) -> None:
        if (request := self._blame.next_trial()) is not None:
            self._put_back(request)

    def _put_back(self, request: EngineRequest) -> None:
        run = self._runs[request]
        if run.output is not None:
            return
        try:
            self._submit(run, _FIRST)
        except AdmitRefused as refusal:
            self._fail(request, refusal.detail)

    def _give_up(self, run: Run, now: float) -> None:
        """It has been silent for too long. What it held may still be held."""
        if not run.over:
            run.over = True
            run.failure = ("engine_silent", f"no token for {self._settings.idle_s:g} s")
            self._forget(run.admit.request)
            if self._settings.abort:
                self._send_abort(run)
        self._releases.leave(run.admit.request, self._submitted, now)

    def _send_abort(self, run: Run) -> None:
        run.output.abort()
        self._releases.leave(run.admit.request, self._submitted, self._loop.time())

    def _send_probe(self) -> None:
        prompt = [self._stop_tokens[0]]
        extras = {"cache_salt": _PROBE_SALT, "priority": _FIRST}
        try:
            output = self._generate(prompt, probe_params(self._library), extras)
        except AdmitRefused as refusal:
            self.break_down(f"a probe was refused: {refusal.detail}")
            return
        if self._probe is not None:
            self._probe.cancel()
        self._releases.probing(self._submitted)
        self._probe = self._loop.create_task(self._consume_probe(output))
        self._probe.add_done_callback(partial(self._probed, self._submitted))

    async def _consume_probe(self, output: Any) -> None:
        async for _ in output:
            return

    def _probed(self, order: int, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        self._probe = None
        error = task.exception()
        if error is None or isinstance(error, self._library.request_error):
            self._heard_at = self._loop.time()
            self._releases.spoke(order)
        else:
            self.break_down(f"{type(error).__name__}: {plain_reason(error)}")

    def _fail(self, request: EngineRequest, detail: str) -> None:
        self._runs[request].failure = ("engine_error", detail)
        self._free(request)

    def _free(self, request: EngineRequest) -> None:
        """The engine holds nothing of it any more."""
        run = self._runs.pop(request)
        run.output = None
        if run.task is not None:
            run.task.cancel()
        self._blocks_left += run.blocks
        self._releases.gone(request)
        self._unjudged.pop(request, None)
        self._forget(request)
        if run.failure is not None:
            self._result.failed.append(Failed(request, *run.failure))
        else:
            self._result.freed.append(request)
        self._wake()

    def _forget(self, request: EngineRequest) -> None:
        """It is nobody's suspect any more, and whoever waits for its trial may be next."""
        self._blame.forget(request)
        self._try_next()

    def _look_at_engine(self) -> None:
        """Once a second: does it still say that it lives, and does it move?"""
        if self._settings.iteration_statistics:
            self._statistics.poll()
        if self._runs and self._statistics.iteration > self._iteration:
            # A long prompt takes many iterations until its first token.
            self._moved = True
        self._iteration = self._statistics.iteration
        if (problem := health_problem(self._llm)) is not None:
            self.break_down(problem)
