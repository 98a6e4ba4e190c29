"""The settings of engines: the section `engine`, and those of each further pool; read and checked
by `settings`."""

from typing import Literal

import msgspec

from antiphon.errors import SettingsError
from antiphon.openvino_settings import OpenVinoSettings, check_openvino
from antiphon.trt_settings import TrtSettings, check_trt
from antiphon.upstream_settings import UpstreamSettings, check_upstream


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The engine host of a model. 0 means "let the host choose" where it says so."""

    kind: Literal["openvino", "tensorrt-llm", "upstream"] = "openvino"
    """OpenVINO runs on any CPU; TensorRT-LLM needs an NVIDIA GPU and the extra `trt`; `upstream`
    is somebody else's OpenAI-compatible server."""
    slots: int = 32
    """Generations at once; measured on two cores, tokens/s stop rising there."""
    threads: int = 0
    """Inference threads; 0 is all cores."""
    kv_cache_mib: int = 1024
    """Memory for the KV cache. Blocks are reserved for prompt plus longest answer, so this
    bounds admission."""
    kv_precision: Literal["u8", "f16"] = "u8"
    """One byte a value holds nearly twice the tokens of two."""
    step_tokens: int = 128
    """Tokens a step may process: smaller keeps other streams smooth during a long prefill,
    larger prefills faster."""
    prefix_cache: Literal["tenant", "shared", "off"] = "tenant"
    """Which prompts find the KV blocks of earlier ones, and so have their first token sooner: those
    of the same tenant; anybody's, so that one can time what others have asked; or none."""
    start_timeout_s: float = 120.0
    """Loading a large model from a slow disk takes long; past this the host is killed."""
    silence_s: float = 20.0
    """A host that has work and reports no step for this long is hung and is killed."""
    stop_grace_s: float = 5.0


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One more model, served beside the first one."""

    model: str
    """As the setting `model`."""
    model_name: str | None = None
    engine: EngineSettings = EngineSettings()
    openvino: OpenVinoSettings = OpenVinoSettings()
    upstream: UpstreamSettings = UpstreamSettings()
    trt: TrtSettings = TrtSettings()
    smaller: str | None = None
    """The model that may answer instead when this one is overloaded, by its name."""
    cost: float = 1.0
    """Of a token, relative to other pools."""


def check_engine(
    engine: EngineSettings,
    openvino: OpenVinoSettings,
    trt: TrtSettings,
    upstream: UpstreamSettings,
) -> None:
    """What no single field's type can tell. Raises SettingsError with the key of the first pool."""
    if engine.step_tokens < engine.slots:
        # Each running stream takes one token of a step, so some would wait for ever.
        raise SettingsError("engine.step_tokens", "must be at least engine.slots")
    check_openvino(openvino)
    check_trt(trt)
    if engine.kind == "upstream":
        check_upstream(upstream)
