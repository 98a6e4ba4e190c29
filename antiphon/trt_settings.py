"""The settings of the TensorRT-LLM engine: the section `trt`, read and checked by `settings`."""

from typing import Literal

import msgspec

from antiphon.errors import SettingsError


class TrtSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What only the TensorRT-LLM engine asks for. The largest batch is `engine.slots`."""

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    kv_fraction: float = 0.9
    """Of the GPU memory that is free once the weights are loaded."""
    kv_cache_dtype: Literal["auto", "fp8"] = "auto"
    block_reuse: bool = True
    """Whether prompts find the KV blocks of earlier ones, of the same tenant only."""
    chunked_prefill: bool = True
    """Without it a prompt longer than `max_step_tokens` is refused."""
    max_step_tokens: int = 8192
    cuda_graphs: bool = True
    guided_decoding: Literal["xgrammar", "llguidance", "off"] = "xgrammar"
    iteration_statistics: bool = True
    """Tells how many KV blocks there are and how many are used; costs a little each iteration."""
    abort: bool = True
    """Whether answers nobody wants are aborted, or run on unread to their longest length. Some
    releases wedge on aborts (NVIDIA Dynamo #5844)."""
    abort_wait_s: float = 2.0
    """How long an aborted request may take to say that it has ended, before the engine must prove
    with another one that it still works. Twice this without a proof, and the host is replaced."""
    idle_s: float = 60.0
    """A request without a token for this long, while others get theirs, is given up."""


def check_trt(settings: TrtSettings) -> None:
    """What no single field's type can tell. Raises SettingsError."""
    if settings.kv_fraction > 1:
        raise SettingsError("trt.kv_fraction", "must be at most 1")
