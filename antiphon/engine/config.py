"""What a host process is told when it starts: one frozen value, passed as JSON on its command line.

It names the model and the resources; requests come later, as frames.
"""

import enum
from pathlib import Path
from typing import Literal

import msgspec

from antiphon.openvino_settings import OpenVinoSettings
from antiphon.trt_settings import TrtSettings

KvPrecision = Literal["u8", "f16"]
PrefixCache = Literal["tenant", "shared", "off"]


class EngineKind(enum.StrEnum):
    """Which engine the host process loads."""

    OPENVINO = "openvino"
    TENSORRT_LLM = "tensorrt-llm"


class HostConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model folder and what the engine may use of the machine.

    `threads` 0 is all cores. `window` is prompt plus answer in tokens: the prepared folder no
    longer says it.
    `stop_token_ids` end an answer unless `ignore_eos`; none of their text ever leaves.
    `openvino` and `trt` are each only that engine's.
    `faults` is a plan for tests of the server (`antiphon.faults`).
    """

    model_dir: Path
    slots: int
    window: int
    stop_token_ids: tuple[int, ...]
    engine: EngineKind = EngineKind.OPENVINO
    threads: int = 0
    kv_cache_mib: int = 1024
    kv_precision: KvPrecision = "u8"
    step_tokens: int = 128
    prefix_cache: PrefixCache = "tenant"
    openvino: OpenVinoSettings = OpenVinoSettings()
    trt: TrtSettings = TrtSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    faults: str | None = None


def encode_config(config: HostConfig) -> str:
    return msgspec.json.encode(config, enc_hook=_path_to_text).decode()


def decode_config(text: str) -> HostConfig:
    """Raises msgspec.ValidationError; only a launcher of another version could cause it."""
    return msgspec.json.decode(text, type=HostConfig, dec_hook=_path_from_text)


def _path_to_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def _path_from_text(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)
