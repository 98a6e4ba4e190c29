"""`tensorrt_llm.llmapi.llm_args`: the arguments of `LLM`, by name."""

from ..configs import TorchLlmArgs

__all__ = ["TorchLlmArgs"]
