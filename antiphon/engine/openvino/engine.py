"""The OpenVINO GenAI continuous-batching pipeline as a StepEngine, with its traps closed.

Each rule here answers to one: unique ids, handles kept alive, `can_read` before `read`, one more
step after a cancel, no request that the KV cache can't hold to its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import openvino_genai
import structlog
from openvino_genai import py_openvino_genai

from antiphon import faults
from antiphon.engine.blame import Blame
from antiphon.engine.config import HostConfig
from antiphon.engine.contract import AdmitRefused, EngineBroken, Failed, Gained, StepResult
from antiphon.engine.openvino.kv import BLOCK_TOKENS, blocks_for
from antiphon.engine.openvino.loading import load
from antiphon.engine.openvino.prefills import Prefills
from antiphon.engine.openvino.sampling import (
    NATIVE_ERRORS,
    generation_config,
    plain_reason,
    prefill_config,
    prompt_tensor,
)
from antiphon.engine.openvino.schemas import SchemaGate
from antiphon.events import Admit, Capabilities, EndReason
from antiphon.fault_plan import Site
from antiphon.ids import EngineRequest

log = structlog.get_logger(__name__)

_Reason = py_openvino_genai.GenerationFinishReason
_ENDS = {_Reason.STOP: EndReason.STOP, _Reason.LENGTH: EndReason.LENGTH}
_IGNORED = py_openvino_genai.GenerationStatus.IGNORED


_MOST_HELD = 8
"""Steps in a row that patient prompts let pass while others' prompts are computed."""


@dataclass(slots=True, eq=False)
class _Run:
    """A request in the pipeline, or parked beside it with no handle after a step that threw."""

    admit: Admit
    blocks: int
    handle: Any = None
    generated: list[int] = field(default_factory=list)
    upto: int | None = None
    """How many of its tokens the pipeline has been given, where that isn't all of them yet."""
    cached: int | None = None
    """How many tokens of its prompt were in the cache when its first piece went in, until that was
    told."""
    entered: bool = False


class OpenVinoEngine:
    """One loaded model. Single-threaded, like the pipeline under it."""

    def __init__(self, config: HostConfig) -> None:
        """Load and warm up. Raises HostStartFailed."""
        loaded = load(config)
        self._pipeline = loaded.pipeline
        self._stop_tokens = config.stop_token_ids
        self._step_tokens = config.step_tokens
        self._salter = loaded.salter
        self._schemas = SchemaGate(config.model_dir, loaded.vocabulary)
        self._runs: dict[EngineRequest, _Run] = {}
        self._unchecked: dict[EngineRequest, _Run] = {}
        self._cancelled: dict[EngineRequest, _Run] = {}
        self._patient: dict[EngineRequest, _Run] = {}
        """Those of which a piece may go into the pipeline before the next step."""
        self._held = 0
        self._freed: list[EngineRequest] = []
        self._blame = Blame()
        cached_blocks = loaded.kv_blocks if loaded.prefix_cache else 0
        self._prefills = Prefills(config.step_tokens, cached_blocks)
        self._blocks_left = loaded.kv_blocks
        self._next_id = 1
        self._capabilities = Capabilities(
            engine="openvino",
            engine_version=openvino_genai.get_version(),
            slots=config.slots,
            kv_blocks=loaded.kv_blocks,
            block_size=BLOCK_TOKENS,
            window=min(config.window, loaded.kv_blocks * BLOCK_TOKENS),
            special_tokens=list(config.stop_token_ids),
            logprobs=True,
            json_schema=True,
            salted_repetition_penalty=loaded.salter is None,
            prefix_cache=loaded.prefix_cache,
            abort_proof=True,  # the step after a cancel has freed it
            isolates_tenants=loaded.salter is not None or not loaded.prefix_cache,
            pausable=True,
            lets_pass=loaded.prefix_cache,
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def descriptors(self) -> Sequence[int]:
        return self._schemas.descriptors

    def admit(self, admit: Admit, generated: Sequence[int] = ()) -> None:
        """Take the request in. Raises AdmitRefused."""
        if self._salter and admit.salt is not None and admit.sampling.repetition_penalty != 1:
            # The sampler looks the prompt's ids up in the logits, and a salted id isn't there.
            raise AdmitRefused("invalid_sampling", "repetition_penalty beside a salt")
        run = _Run(admit=admit, blocks=self._blocks_needed(admit), generated=list(generated))
        schema = admit.sampling.json_schema
        if schema is not None:
            # Only a sampling step would find a malformed schema, and it throws for all.
            verdict = self._schemas.verdict(schema)
            if verdict is None:
                self._blocks_left -= run.blocks
                self._unchecked[admit.request] = run
                return
            if verdict.problem is not None:
                raise AdmitRefused(verdict.code, verdict.problem)
        if not self._blame.holds(admit.request):
            self._submit(run)
        self._blocks_left -= run.blocks
        self._runs[admit.request] = run

    def abort(self, request: EngineRequest) -> bool:
        if (run := self._unchecked.pop(request, None)) is not None:
            self._free(request, run)
        elif (run := self._runs.pop(request, None)) is not None:
            self._blame.forget(request)
            self._patient.pop(request, None)
            if run.handle is None:
                self._free(request, run)
            else:
                run.handle.cancel()
                # No step computes more of its prompt: it counts as none from now on.
                self._prefills.leave(request, self._tokens(run)[: run.upto])
                self._cancelled[request] = run
        return True

    def busy(self) -> bool:
        return bool(self._runs or self._cancelled or self._freed or self._schemas.overdue())

    def step(self) -> StepResult:
        """Run one step. Raises EngineBroken."""
        result = StepResult()
        self._settle_schemas(result)
        if (request := self._blame.next_trial()) is not None:
            self._put_back(request, result)
        self._let_patient_in(result)
        if self._runs or self._cancelled:
            try:
                if faults.strikes(Site.ENGINE_STEP_THROWS):
                    raise RuntimeError("a fault plan says so")
                self._pipeline.step()
            except NATIVE_ERRORS as error:
                self._recover(error, result)
            else:
                result.prefilled = self._prefills.step(self._decoding())
                self._collect(result)
                # The step after a cancel is what frees it. It may have turned CANCEL into IGNORED
                # on the way, which is why a cancelled handle is never asked again.
                self._free_cancelled()
        result.freed += self._freed
        self._freed = []
        return result

    def kv_usage(self) -> float:
        # While nothing runs the pipeline keeps showing the usage of its last step.
        if not self._runs:
            return 0.0
        return float(self._pipeline.get_metrics().cache_usage) / 100

    def close(self) -> None:
        self._schemas.close()
        for run in self._runs.values():
            if run.handle is not None:
                run.handle.cancel()
        try:
            # Frees what was cancelled; otherwise the library reports it as leaked.
            self._pipeline.step()
        except NATIVE_ERRORS as error:
            log.warning("engine_close_threw", reason=plain_reason(error))
        self._runs.clear()
        self._cancelled.clear()

    def _blocks_needed(self, admit: Admit) -> int:
        """Blocks for prompt and longest answer. When the pool runs dry the pipeline gives up on
        innocents (it evicts, then ignores), so it never may. Raises AdmitRefused."""
        total = len(admit.prompt) + admit.max_tokens
        if not admit.prompt or admit.max_tokens < 1:
            raise AdmitRefused("invalid_sampling", "an empty prompt or an empty answer")
        if total > self._capabilities.window:
            raise AdmitRefused(
                "window", f"{total} tokens do not fit a window of {self._capabilities.window}"
            )
        blocks = blocks_for(total)
        if blocks > self._blocks_left:
            raise AdmitRefused(
                "capacity", f"{blocks} KV blocks are needed and {self._blocks_left} are free"
            )
        return blocks

    def _submit(self, run: _Run) -> None:
        """Put a run into the pipeline, after what it generated before. Raises AdmitRefused."""
        if run.generated and run.admit.sampling.json_schema is not None:
            raise AdmitRefused("engine_error", "a grammar can't begin in the middle of an answer")
        if run.admit.patient and self._capabilities.prefix_cache:
            self._patient[run.admit.request] = run
        else:
            self._enter(run)

    def _enter(self, run: _Run) -> None:
        """Raises AdmitRefused."""
        number = self._next_id
        # Never reused, not even for a run that comes back: a duplicate poisons the pipeline.
        self._next_id += 1
        tokens = self._tokens(run)
        run.upto = self._next_piece(run, tokens)
        try:
            config = generation_config(run.admit, self._stop_tokens, len(run.generated))
            if run.upto is not None:
                tokens, config = tokens[: run.upto], prefill_config(self._stop_tokens)
            run.handle = self._pipeline.add_request(number, prompt_tensor(tokens), config)
        except NATIVE_ERRORS as error:
            raise AdmitRefused("invalid_sampling", plain_reason(error)) from error
        cached = self._prefills.enter(run.admit.request, tokens)
        if not run.entered:
            run.entered = True
            run.cached = None if run.generated else cached

    def _next_piece(self, run: _Run, tokens: list[int]) -> int | None:
        """Where the next piece of a patient prompt ends; None when it is the last. What is in the
        cache already costs no step."""
        if run.admit.request not in self._patient:
            return None
        begin = self._prefills.cached(tokens) if run.upto is None else run.upto
        end = begin + max(1, self._room() // BLOCK_TOKENS) * BLOCK_TOKENS
        return end if end < len(tokens) else None

    def _room(self) -> int:
        """Tokens of prompts that the next step can take beside the answers."""
        return self._step_tokens - self._decoding()

    def _decoding(self) -> int:
        return len(self._runs) - self._prefills.waiting - len(self._patient)

    def _let_patient_in(self, result: StepResult) -> None:
        """As much of the patient prompts as a step computes, and none while others' are in. The
        pipeline computes prompts in the order in which it got them, so one of thousands of tokens
        would keep all others waiting; the blocks of a piece are in the cache for the next one."""
        if not self._patient:
            return
        waiting = [self._runs[request] for request in self._prefills.requests]
        if self._held < _MOST_HELD and any(not run.admit.patient for run in waiting):
            self._held += 1
            return
        self._held = 0
        room = self._room()
        for request, run in list(self._patient.items()):
            before = run.upto or 0
            self._put_in(request, run, result)
            room -= (run.upto or len(run.admit.prompt) + len(run.generated)) - before
            if room <= 0:
                return

    def _put_in(self, request: EngineRequest, run: _Run, result: StepResult) -> None:
        try:
            self._enter(run)
        except AdmitRefused as refusal:
            self._fail(request, refusal.detail, result)
        self._patient.pop(request, None)

    def _collect(self, result: StepResult) -> None:
        """Read what the step pushed. This is the hot path: every live request, every step."""
        over: list[EngineRequest] = []
        pieces: list[EngineRequest] = []
        for request, run in self._runs.items():
            handle = run.handle
            if handle is None:
                continue
            if not handle.can_read():
                if handle.get_status() == _IGNORED:
                    result.gained.append(Gained(request, (), None, EndReason.CAPACITY))
                    over.append(request)
                continue
            if run.upto is not None:
                pieces.append(request)
                continue
            for output in handle.read().values():
                tokens = output.generated_ids
                end = _ENDS.get(output.finish_reason)
                logprobs = output.generated_log_probs if run.admit.sampling.logprobs else None
                run.generated += tokens
                result.gained.append(Gained(request, tokens, logprobs, end, run.cached))
                run.cached = None
                if end is not None:
                    over.append(request)
                if self._prefills.waiting:
                    self._prefills.gave_token(request)
                if self._blame.alert:
                    self._blame.gave_token(request)
        for request in over:
            self._blame.forget(request)
            self._free(request, self._runs.pop(request))
        for request in pieces:
            self._prefills.gave_token(request)
            self._leave(self._runs[request])
            self._put_back(request, result)

    def _recover(self, error: Exception, result: StepResult) -> None:
        """Bring the pipeline back after a step threw: it takes every request out, since each later
        step would throw for all of them, then puts the innocent back."""
        log.error("engine_step_threw", live=len(self._runs), reason=plain_reason(error))
        self._collect(result)
        for run in self._runs.values():
            if run.handle is not None:
                run.handle.cancel()
        try:
            self._pipeline.step()
        except NATIVE_ERRORS as again:
            raise EngineBroken(plain_reason(again)) from again
        self._free_cancelled()
        live = [request for request, run in self._runs.items() if run.handle is not None]
        shown = {request for request in live if self._runs[request].generated}
        verdict = self._blame.step_threw(live, shown)
        parked = set(verdict.parked)
        for request in live:
            self._leave(self._runs[request])
            if request in verdict.failed:
                self._fail(request, plain_reason(error), result)
            elif request not in parked:
                self._put_back(request, result)

    def _put_back(self, request: EngineRequest, result: StepResult) -> None:
        try:
            self._submit(self._runs[request])
        except AdmitRefused as refusal:
            self._fail(request, refusal.detail, result)

    def _fail(
        self, request: EngineRequest, detail: str, result: StepResult, code: str = "engine_error"
    ) -> None:
        self._blame.forget(request)
        self._patient.pop(request, None)
        self._blocks_left += self._runs.pop(request).blocks
        result.failed.append(Failed(request, code, detail))

    def _free_cancelled(self) -> None:
        for request, run in self._cancelled.items():
            self._free(request, run)
        self._cancelled.clear()

    def _free(self, request: EngineRequest, run: _Run) -> None:
        self._leave(run)
        self._blocks_left += run.blocks
        self._freed.append(request)

    def _leave(self, run: _Run) -> None:
        """The pipeline holds nothing of it any more, but for what its cache remembers."""
        run.handle = None
        self._prefills.leave(run.admit.request, self._tokens(run)[: run.upto])

    def _tokens(self, run: _Run) -> list[int]:
        """What it has so far, by the names that the pipeline knows it by."""
        tokens = [*run.admit.prompt, *run.generated]
        if self._salter and run.admit.salt is not None:
            return self._salter.salted(tokens, run.admit.salt)
        return tokens

    def _settle_schemas(self, result: StepResult) -> None:
        """Let in, or refuse, the requests whose schema has been judged since."""
        if not self._schemas.settle():
            return
        for request, run in list(self._unchecked.items()):
            schema = run.admit.sampling.json_schema
            assert schema is not None
            verdict = self._schemas.verdict(schema)
            if verdict is None:
                continue
            self._runs[request] = self._unchecked.pop(request)
            if verdict.problem is None:
                if not self._blame.holds(request):
                    self._put_back(request, result)
            else:
                self._fail(request, verdict.problem, result, code=verdict.code)
