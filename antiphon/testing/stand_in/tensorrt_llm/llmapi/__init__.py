"""`tensorrt_llm.llmapi`: the configuration classes."""

from ..configs import (
    CapacitySchedulerPolicy,
    CudaGraphConfig,
    KvCacheConfig,
    KvCacheRetentionConfig,
    SchedulerConfig,
)
from ..sampling import GuidedDecodingParams, SamplingParams
from .llm_args import TorchLlmArgs

__all__ = [
    "CapacitySchedulerPolicy",
    "CudaGraphConfig",
    "GuidedDecodingParams",
    "KvCacheConfig",
    "KvCacheRetentionConfig",
    "SamplingParams",
    "SchedulerConfig",
    "TorchLlmArgs",
]
