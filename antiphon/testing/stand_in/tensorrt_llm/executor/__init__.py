"""`tensorrt_llm.executor`: its exceptions."""

from ..results import CppExecutorError, RequestError

__all__ = ["CppExecutorError", "RequestError"]
