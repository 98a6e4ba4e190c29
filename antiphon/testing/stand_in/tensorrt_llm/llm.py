"""`LLM`: refuses unknown arguments, belongs to one thread, and to the loop of its first request."""

import asyncio
import atexit
import json
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tokenizers import Tokenizer

from antiphon.testing.instances import instance_of

from .configs import TorchLlmArgs
from .py_executor import Cancel, PyExecutor, Submit
from .results import RequestOutput, Response
from .sampling import GuidedDecodingParams, SamplingParams
from .switches import SWITCHES, note
from .worker import start_worker

_END_ID = 0
"""What the stand-in's tokenizers have for `<|end|>`."""
_TOKENS_PER_BLOCK = 32

if SWITCHES.import_fails:
    raise ImportError("libmpi.so.40: cannot open shared object file")


class _Future:
    """A hard-killed rank leaves it pending (PR 16338)."""

    def done(self) -> bool:
        return False


class _Executor:
    """The proxy in front of the rank: client ids, results, background errors."""

    def __init__(self, llm: "_BaseLLM", max_batch_size: int) -> None:
        self.mpi_futures = [_Future()]
        self.worker = start_worker()
        self._llm = llm
        self._loop: asyncio.AbstractEventLoop | None = None
        self._results: dict[int, RequestOutput] = {}
        self._last_id = 0
        self._py = PyExecutor(max_batch_size, self._dispatch, self.worker.kill)

    @property
    def py(self) -> PyExecutor:
        return self._py

    def submit(self, prompt: list[int], params: SamplingParams, chunk: int) -> RequestOutput:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise AssertionError("all loops identical")
        self._loop = loop
        self.handle_background_error()
        self._last_id += 1
        result = RequestOutput(self._last_id, prompt, self)
        result.expect_logprobs(params.logprobs)
        self._results[self._last_id] = result
        assert params.max_tokens is not None
        assert params.end_id is not None
        ends = set() if params.ignore_eos else {params.end_id}
        self._py.put(
            Submit(
                request_id=self._last_id,
                prompt=prompt,
                max_tokens=params.max_tokens,
                end_ids=frozenset(ends | set(params.stop_token_ids or ())),
                first_end=params.end_id,
                blocks=-(-(len(prompt) + params.max_tokens) // _TOKENS_PER_BLOCK),
                prefill_iterations=-(-len(prompt) // chunk),
                min_tokens=params.min_tokens or 0,
            )
        )
        return result

    def abort_request(self, client_id: int) -> None:
        self._llm.check_thread()
        note(event="abort", request=client_id)
        if client_id in self._results:
            self._py.put(Cancel(client_id))

    def handle_background_error(self) -> None:
        if self._py.background_error is not None:
            self._llm.shutdown()
            raise RuntimeError(self._py.background_error)

    def _dispatch(self, responses: list[Response]) -> None:
        """`proxy_dispatch_result_thread`: a dead rank delivers nothing, and says nothing."""
        if self.worker.poll() is None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._notify_many, responses)

    def _notify_many(self, responses: list[Response]) -> None:
        for response in responses:
            if (result := self._results.get(response.request_id)) is not None:
                result.put(response)
                if response.is_final or response.error is not None:
                    del self._results[response.request_id]


class _BaseLLM:
    """What both versions share."""

    def __init__(
        self,
        model: str,
        tokenizer: Any = None,
        tokenizer_mode: str = "auto",
        skip_tokenizer_init: bool = False,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        revision: str | None = None,
        tokenizer_revision: str | None = None,
        **kwargs: Any,
    ) -> None:
        for name in kwargs:
            if name not in TorchLlmArgs.model_fields:
                raise ValueError(f"LLM got invalid argument: {name}")
        if skip_tokenizer_init:
            raise ValueError("the stand-in has no way to go without a tokenizer")
        self.args = TorchLlmArgs(
            model=model, tensor_parallel_size=tensor_parallel_size, dtype=dtype, **kwargs
        )
        if SWITCHES.construction_fails:
            raise RuntimeError("Executor worker died during initialization")
        if not isinstance(self.args.max_batch_size, int) or self.args.max_batch_size < 1:
            raise ValueError("max_batch_size must be positive")
        note(
            event="constructed",
            options={name: str(value) for name, value in kwargs.items()},
            kv=self.args.kv_cache_config.dump(),
        )
        self._thread = threading.get_ident()
        self._executor = _Executor(self, self.args.max_batch_size)
        self._is_shut_down = False
        self._stats_at = 0
        atexit.register(self.shutdown)

    def _generate(
        self, inputs: Any, sampling_params: SamplingParams | None, streaming: bool, **facts: Any
    ) -> RequestOutput:
        self.check_thread()
        if self._is_shut_down:
            raise RuntimeError("LLM is shutting down")
        if not isinstance(inputs, list):
            raise TypeError("the stand-in takes token ids only")
        if not isinstance(inputs[0], int) or not all(type(token) is int for token in inputs):
            raise AssertionError("prompt_token_ids must be a list of int")
        if SWITCHES.refuse in inputs:
            raise ValueError("this prompt is refused")
        args = self.args
        chunk = args.max_num_tokens
        if len(inputs) > chunk and not args.enable_chunked_prefill:
            raise ValueError(f"prompt length exceeds max_num_tokens ({chunk})")
        params = sampling_params or SamplingParams()
        if params.use_beam_search:
            raise AssertionError("beam width must equal max_beam_width")
        if params.guided_decoding is not None and args.guided_decoding_backend is None:
            raise ValueError("guided decoding needs guided_decoding_backend")
        params.setup(_END_ID)
        told = inputs if params.guided_decoding is None else self._guided(params.guided_decoding)
        window = args.max_seq_len or 2048
        if params.max_tokens is None or len(inputs) + params.max_tokens > window:
            params.max_tokens = window - len(inputs)
        if params.max_tokens < 1:
            raise ValueError("the prompt fills max_seq_len")
        note(
            event="submitted",
            prompt=len(inputs),
            max_tokens=params.max_tokens,
            streaming=streaming,
            detokenize=params.detokenize,
            seed=params.seed,
            **facts,
        )
        return self._executor.submit(told, params, chunk)

    def _guided(self, guide: GuidedDecodingParams) -> list[int]:
        """A prompt whose echo is of the schema."""
        value = instance_of(json.loads(guide.json))
        tokenizer = Tokenizer.from_file(f"{self.args.model}/tokenizer.json")
        return [*tokenizer.encode(json.dumps(value, ensure_ascii=False)).ids, _END_ID]

    def get_stats_async(self, timeout: float | None = 2) -> AsyncIterator[dict[str, Any]]:
        if SWITCHES.statistics_fail:
            raise RuntimeError("no statistics")
        return self._statistics(timeout or 0)

    async def _statistics(self, wait_s: float) -> AsyncIterator[dict[str, Any]]:
        if wait_s <= 0:
            raise asyncio.QueueEmpty
        py = self._executor.py
        await asyncio.sleep(wait_s)
        if self.args.enable_iter_perf_stats and py.iterations > self._stats_at:
            self._stats_at = py.iterations
            yield {
                "iter": py.iterations,
                "numActiveRequests": py.num_active,
                "kvCacheStats": {
                    "maxNumBlocks": SWITCHES.kv_blocks,
                    "usedNumBlocks": py.blocks_used,
                    "tokensPerBlock": _TOKENS_PER_BLOCK,
                },
            }

    def shutdown(self) -> None:
        """Joins without a bound."""
        if not self._is_shut_down:
            self._is_shut_down = True
            self._executor.py.join()
            self._executor.worker.kill()
            self._executor.worker.wait()

    def check_thread(self) -> None:
        """Neither ids nor the socket are guarded: stricter than the real one, which corrupts."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("called from another thread")

    def _retention(self, config: Any) -> list[list[int | None]] | None:
        if config is None:
            return None
        return [
            [entry.token_start, entry.token_end, entry.priority]
            for entry in config.token_range_retention_configs
        ]


class _LLM10(_BaseLLM):
    """Without `cache_salt`."""

    def generate_async(
        self,
        inputs: Any,
        sampling_params: SamplingParams | None = None,
        lora_request: Any = None,
        prompt_adapter_request: Any = None,
        streaming: bool = False,
        kv_cache_retention_config: Any = None,
        disaggregated_params: Any = None,
    ) -> RequestOutput:
        retention = self._retention(kv_cache_retention_config)
        return self._generate(inputs, sampling_params, streaming, salt=None, retention=retention)


class _LLM12(_BaseLLM):
    def generate_async(
        self,
        inputs: Any,
        sampling_params: SamplingParams | None = None,
        lora_request: Any = None,
        prompt_adapter_request: Any = None,
        streaming: bool = False,
        kv_cache_retention_config: Any = None,
        disaggregated_params: Any = None,
        _postproc_params: Any = None,
        scheduling_params: Any = None,
        cache_salt: str | None = None,
    ) -> RequestOutput:
        retention = self._retention(kv_cache_retention_config)
        return self._generate(
            inputs, sampling_params, streaming, salt=cache_salt, retention=retention
        )


class _LLMMain(_BaseLLM):
    def generate_async(
        self,
        inputs: Any,
        sampling_params: SamplingParams | None = None,
        lora_request: Any = None,
        streaming: bool = False,
        kv_cache_retention_config: Any = None,
        disaggregated_params: Any = None,
        trace_headers: Mapping[str, str] | None = None,
        _postproc_params: Any = None,
        scheduling_params: Any = None,
        cache_salt: str | None = None,
        conversation_params: Any = None,
        priority: float = 0.5,
    ) -> RequestOutput:
        if not 0 <= priority <= 1:
            raise ValueError("priority must be in [0, 1]")
        return self._generate(
            inputs,
            sampling_params,
            streaming,
            salt=cache_salt,
            priority=priority,
            retention=self._retention(kv_cache_retention_config),
        )

    def get_kv_cache_capacity(self) -> dict[str, int]:
        blocks = SWITCHES.kv_blocks
        return {
            "maxNumBlocks": blocks,
            "tokensPerBlock": _TOKENS_PER_BLOCK,
            "maxNumTokens": blocks * _TOKENS_PER_BLOCK,
        }

    def _check_health(self) -> bool:
        at = SWITCHES.unhealthy_at
        return at is None or self._executor.py.iterations < at


LLM: Any = _LLMMain if SWITCHES.main else _LLM12 if SWITCHES.salts else _LLM10
