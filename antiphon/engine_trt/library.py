"""The installed `tensorrt_llm` and what this version of it understands: probed, never assumed.

Names and keywords came and went between 1.0 and 1.3; what is missing here is None or left out.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from antiphon.errors import HostStartFailed

REFUSALS = (ValueError, TypeError, AssertionError, LookupError)
"""What the library raises in the caller's face for a request that it can't take."""


@dataclass(frozen=True, slots=True)
class Library:
    """The classes of one version; `submit_keywords` are those of `generate_async`."""

    version: str
    llm: Callable[..., Any]
    llm_keywords: frozenset[str] | None
    """None where the version doesn't say: then nothing is left out."""
    submit_keywords: frozenset[str]
    sampling_params: Callable[..., Any]
    sampling_keywords: frozenset[str]
    request_error: type[Exception]
    llmapi: ModuleType

    def configured(self, name: str, wanted: Mapping[str, Any]) -> Any:
        """An object of the configuration class `name` with those of `wanted` that it knows; None
        where there is no such class."""
        kind = getattr(self.llmapi, name, None)
        if kind is None:
            return None
        known = keywords_of(kind)
        return kind(**{key: value for key, value in wanted.items() if not known or key in known})

    def retained(self, tokens: int, priority: int) -> Any:
        """KV retention that keeps the first `tokens` of a prompt longer than others; None where
        the version has none."""
        if "kv_cache_retention_config" not in self.submit_keywords:
            return None
        kind = getattr(self.llmapi, "KvCacheRetentionConfig", None)
        ranges = getattr(kind, "TokenRangeRetentionConfig", None) or getattr(
            self.llmapi, "TokenRangeRetentionConfig", None
        )
        if kind is None or ranges is None:
            return None
        return kind(token_range_retention_configs=[ranges(0, tokens, priority, None)])


def load_library() -> Library:
    """Import it. Raises HostStartFailed."""
    # Its own log goes to our stderr and would be most of the server's.
    os.environ.setdefault("TLLM_LOG_LEVEL", "warning")
    # The model is a folder here, and nothing else is wanted.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    hook = sys.excepthook
    try:
        package = importlib.import_module("tensorrt_llm")
        llmapi = importlib.import_module("tensorrt_llm.llmapi")
        executor = importlib.import_module("tensorrt_llm.executor")
    except (ImportError, OSError, RuntimeError) as error:
        raise HostStartFailed(f"tensorrt_llm can't be imported: {plain_reason(error)}") from error
    finally:
        sys.excepthook = hook  # the import replaces it
    return Library(
        version=str(getattr(package, "__version__", "unknown")),
        llm=package.LLM,
        llm_keywords=_llm_keywords(llmapi),
        submit_keywords=keywords_of(package.LLM.generate_async),
        sampling_params=package.SamplingParams,
        sampling_keywords=keywords_of(package.SamplingParams),
        request_error=getattr(executor, "RequestError", RuntimeError),
        llmapi=llmapi,
    )


def keywords_of(kind: Any) -> frozenset[str]:
    """What may be passed by name: a pydantic model's fields, or a signature's parameters."""
    fields = getattr(kind, "model_fields", None)
    if fields is not None:
        return frozenset(fields)
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):  # a class of a C++ extension doesn't say
        return frozenset()
    return frozenset(
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    )


def plain_reason(error: BaseException) -> str:
    """The first line of the library's message, short enough for a client."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _llm_keywords(llmapi: ModuleType) -> frozenset[str] | None:
    arguments = getattr(llmapi, "TorchLlmArgs", None)
    if arguments is None:
        try:
            module = importlib.import_module("tensorrt_llm.llmapi.llm_args")
        except ImportError:
            return None
        arguments = getattr(module, "TorchLlmArgs", None)
    return None if arguments is None else keywords_of(arguments)
