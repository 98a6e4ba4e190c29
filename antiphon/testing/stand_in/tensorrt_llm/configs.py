"""Configuration classes, as strict as pydantic's `extra="forbid"`; defaults are the real ones."""

import enum
from typing import Any, ClassVar


class StrictModel:
    """A class body of annotated defaults becomes `model_fields`, as in pydantic."""

    model_fields: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls.model_fields = {
            name: getattr(cls, name) for name in cls.__annotations__ if name != "model_fields"
        }

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.model_fields.keys()
        if unknown:
            raise ValueError(f"{type(self).__name__}: extra inputs {sorted(unknown)}")
        for name, default in self.model_fields.items():
            setattr(self, name, values.get(name, default))

    def dump(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields}


class KvCacheConfig(StrictModel):
    enable_block_reuse: bool = True
    max_tokens: int | None = None
    max_attention_window: list[int] | None = None
    sink_token_length: int | None = None
    free_gpu_memory_fraction: float = 0.9
    host_cache_size: int | None = None
    onboard_blocks: bool = True
    cross_kv_cache_fraction: float | None = None
    secondary_offload_min_priority: int | None = None
    event_buffer_max_size: int = 0
    attention_dp_events_gather_period_ms: int = 5
    enable_partial_reuse: bool = True
    copy_on_partial_reuse: bool = True
    use_uvm: bool = False
    max_gpu_total_bytes: int = 0
    dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    tokens_per_block: int = 32

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if not 0 < self.free_gpu_memory_fraction <= 1:
            raise ValueError("free_gpu_memory_fraction must be in (0, 1]")
        if self.dtype not in ("auto", "fp8"):
            raise ValueError(f"unknown KV cache dtype {self.dtype!r}")


class CapacitySchedulerPolicy(enum.StrEnum):
    MAX_UTILIZATION = "MAX_UTILIZATION"
    GUARANTEED_NO_EVICT = "GUARANTEED_NO_EVICT"
    STATIC_BATCH = "STATIC_BATCH"


class SchedulerConfig(StrictModel):
    capacity_scheduler_policy: CapacitySchedulerPolicy = CapacitySchedulerPolicy.GUARANTEED_NO_EVICT
    context_chunking_policy: str | None = None
    dynamic_batch_config: Any = None


class CudaGraphConfig(StrictModel):
    batch_sizes: list[int] | None = None
    max_batch_size: int = 0
    enable_padding: bool = False


class TorchLlmArgs(StrictModel):
    """What `LLM` takes, beside its positional arguments."""

    model: str = ""
    tokenizer: Any = None
    tokenizer_mode: str = "auto"
    skip_tokenizer_init: bool = False
    trust_remote_code: bool = False
    tensor_parallel_size: int = 1
    dtype: str = "auto"
    revision: str | None = None
    tokenizer_revision: str | None = None
    pipeline_parallel_size: int = 1
    context_parallel_size: int = 1
    gpus_per_node: int | None = None
    load_format: str = "auto"
    enable_lora: bool = False
    lora_config: Any = None
    kv_cache_config: Any = KvCacheConfig()
    enable_chunked_prefill: bool = False
    guided_decoding_backend: str | None = None
    iter_stats_max_iterations: int | None = None
    request_stats_max_iterations: int | None = None
    scheduler_config: Any = SchedulerConfig()
    cache_transceiver_config: Any = None
    speculative_config: Any = None
    max_batch_size: int = 2048
    max_input_len: int = 1024
    max_seq_len: int | None = None
    max_beam_width: int = 1
    max_num_tokens: int = 8192
    gather_generation_logits: bool = False
    num_postprocess_workers: int = 0
    reasoning_parser: str | None = None
    return_perf_metrics: bool = False
    orchestrator_type: str | None = None
    env_overrides: dict[str, str] | None = None
    cuda_graph_config: Any = CudaGraphConfig()
    disable_overlap_scheduler: bool = False
    attn_backend: str = "TRTLLM"
    sampler_type: str = "auto"
    enable_iter_perf_stats: bool = False
    enable_iter_req_stats: bool = False
    print_iter_log: bool = False
    max_stats_len: int = 1000
    batch_wait_timeout_ms: float = 0
    stream_interval: int = 1
    enable_sleep: bool = False


class TokenRangeRetentionConfig:
    """A C++ class in the real one, whose signature can't be read."""

    def __init__(
        self,
        token_start: int,
        token_end: int | None = None,
        priority: int = 35,
        duration_ms: Any = None,
    ) -> None:
        if not 0 <= priority <= 100 or (token_end is not None and token_end <= token_start):
            raise ValueError("invalid retention range")
        self.token_start = token_start
        self.token_end = token_end
        self.priority = priority
        self.duration_ms = duration_ms


class KvCacheRetentionConfig:
    TokenRangeRetentionConfig = TokenRangeRetentionConfig

    def __init__(
        self,
        token_range_retention_configs: list[Any],
        decode_retention_priority: int = 35,
        decode_duration_ms: Any = None,
    ) -> None:
        self.token_range_retention_configs = token_range_retention_configs
        self.decode_retention_priority = decode_retention_priority
        self.decode_duration_ms = decode_duration_ms
