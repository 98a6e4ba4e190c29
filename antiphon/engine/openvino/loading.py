"""Builds the pipeline: a KV cache of fixed size that fits its memory, and one warm step run.

Raises HostStartFailed for whatever the library refuses.
"""

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import openvino
import openvino_genai
import structlog

from antiphon.engine.config import HostConfig
from antiphon.engine.cores import usable_cores
from antiphon.engine.openvino.aliases import Salter, alias_bits
from antiphon.engine.openvino.kv import BLOCK_TOKENS, MIB, KvHeads, block_bytes, blocks_in
from antiphon.engine.openvino.properties import (
    check_heads,
    check_properties,
    plugin_properties,
)
from antiphon.engine.openvino.sampling import NATIVE_ERRORS, plain_reason, prompt_tensor
from antiphon.errors import HostStartFailed

log = structlog.get_logger(__name__)

_VALUE = re.compile(r"past_key_values\.\d+\.value")
_TOLERANCE = 1.02
_PROBE_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class Loaded:
    """A pipeline that has run a step. `vocabulary` is the width of the logits."""

    pipeline: Any
    kv_blocks: int
    vocabulary: int
    prefix_cache: bool
    salter: Salter | None
    """None where prompts share their blocks with everybody, or with nobody."""


@dataclass(frozen=True, slots=True)
class _Graph:
    bytes_of_block: int | None
    vocabulary: int
    alias_bits: int | None


def load(config: HostConfig) -> Loaded:
    """Load the model folder and warm it up. Raises HostStartFailed."""
    try:
        return _load(config)
    except NATIVE_ERRORS as error:
        raise HostStartFailed(
            f"OpenVINO refused {config.model_dir}: {plain_reason(error)}"
        ) from error


def _load(config: HostConfig) -> Loaded:
    check_properties(config)
    graph = _read_graph(config)
    salter = None
    if config.prefix_cache == "tenant":
        if graph.alias_bits is None:
            log.warning("prefix_cache_off", reason="the model's ids leave no room for a salt")
            config = msgspec.structs.replace(config, prefix_cache="off")
        else:
            salter = Salter(graph.alias_bits)
    expected = graph.bytes_of_block
    blocks = blocks_in(config.kv_cache_mib, expected) if expected else _PROBE_BLOCKS
    pipeline = build_pipeline(config, blocks)
    actual = _warm_up(pipeline, config) // blocks
    # The layout of a quantised block is the plugin's own affair, so believe what it allocates.
    if expected is None or actual > expected * _TOLERANCE:
        log.warning("kv_block_size_unexpected", expected=expected, actual=actual)
        del pipeline
        blocks = blocks_in(config.kv_cache_mib, actual)
        pipeline = build_pipeline(config, blocks)
        _warm_up(pipeline, config)
    log.info("kv_cache_allocated", blocks=blocks, mib=round(blocks * actual / MIB))
    return Loaded(
        pipeline,
        blocks,
        graph.vocabulary,
        prefix_cache=config.prefix_cache != "off",
        salter=salter,
    )


def build_pipeline(config: HostConfig, blocks: int) -> Any:
    """The pipeline as every host runs it; what measures the bare engine builds the same."""
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.num_kv_blocks = blocks
    scheduler.max_num_batched_tokens = config.step_tokens
    scheduler.max_num_seqs = config.slots
    scheduler.enable_prefix_caching = config.prefix_cache != "off"
    # Sampling comes after computing, never beside it, so it may use the same cores; with one
    # thread, drawing 32 tokens by top_p took a quarter of every step.
    samplers = config.threads or usable_cores()
    properties = plugin_properties(config) | {"sampler_num_threads": samplers}
    return openvino_genai.ContinuousBatchingPipeline(
        str(config.model_dir), scheduler, "CPU", properties
    )


def _warm_up(pipeline: Any, config: HostConfig) -> int:
    """Run one full prompt chunk and one decode step, which allocates the cache and compiles the
    kernels; the bytes the cache takes."""
    sampling = openvino_genai.GenerationConfig()
    sampling.max_new_tokens = 2
    sampling.ignore_eos = True
    length = max(1, min(config.step_tokens, config.window // 2, _PROBE_BLOCKS * BLOCK_TOKENS // 2))
    handle = pipeline.add_request(0, prompt_tensor([0] * length), sampling)
    while pipeline.has_non_finished_requests():
        pipeline.step()
    del handle
    return int(pipeline.get_metrics().kv_cache_size_in_bytes)


def _read_graph(config: HostConfig) -> _Graph:
    model = openvino.Core().read_model(str(config.model_dir / "openvino_model.xml"))
    keys: list[KvHeads] = []
    values: list[KvHeads] = []
    for variable in model.get_variables():
        info = variable.get_info()
        shape = info.data_shape
        if shape.rank.is_dynamic or len(shape) != 4 or shape[1].is_dynamic or shape[3].is_dynamic:
            continue
        heads = KvHeads(heads=shape[1].get_length(), size=shape[3].get_length())
        # Only the first word counts: a value's full id is "past_key_values.0.valuepresent.0.key".
        (values if _VALUE.match(info.variable_id) else keys).append(heads)
    width = model.output("logits").partial_shape[2]
    if width.is_dynamic:
        raise HostStartFailed(f"{config.model_dir} does not say the size of its vocabulary")
    check_heads(config, {part.size for part in values})
    size = _bytes_of_block(keys, values, config)
    return _Graph(bytes_of_block=size, vocabulary=width.get_length(), alias_bits=alias_bits(model))


def _bytes_of_block(keys: list[KvHeads], values: list[KvHeads], config: HostConfig) -> int | None:
    """None when the graph keeps its cache in a form that this doesn't recognise."""
    if not keys or len(keys) != len(values):
        return None
    return block_bytes(keys, values, config.kv_precision, config.openvino.kv_group)
