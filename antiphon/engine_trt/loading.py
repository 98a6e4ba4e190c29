"""Builds the engine and has it answer once: what it says about itself then is what it can do."""

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog

from antiphon.engine.config import HostConfig
from antiphon.engine_trt.library import Library, load_library, plain_reason
from antiphon.engine_trt.options import construction
from antiphon.engine_trt.sampling import probe_params
from antiphon.engine_trt.statistics import Statistics
from antiphon.errors import HostStartFailed
from antiphon.events import Capabilities

log = structlog.get_logger(__name__)

_BLOCK_TOKENS = 32
"""The library's default, where it doesn't say."""
_STATISTICS_S = 3.0
_STATISTICS_EVERY_S = 0.05
_SPARE_BLOCKS = 1
"""For a probe, which must find room whatever runs."""
_ERRORS = (RuntimeError, ValueError, TypeError, AssertionError, LookupError, OSError, MemoryError)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A constructed engine. `json_schema`: answers can be held to one. `block_reuse`: what it keeps
    of prompts is found again, by their salt."""

    llm: Any
    library: Library
    json_schema: bool
    block_reuse: bool


def load(config: HostConfig) -> Loaded:
    """Construct it, which takes up to minutes and must not happen inside an event loop. Raises
    HostStartFailed."""
    library = load_library()
    try:
        options = construction(config, library)
        if options.left_out:
            log.warning("engine_options_left_out", options=list(options.left_out))
        llm = library.llm(**options.keywords)
    except _ERRORS as error:
        raise HostStartFailed(
            f"TensorRT-LLM refused {config.model_dir}: {plain_reason(error)}"
        ) from error
    return Loaded(llm, library, options.json_schema, options.block_reuse)


async def warmed_up(loaded: Loaded, config: HostConfig, statistics: Statistics) -> Capabilities:
    """Have it generate a token, on the loop that all later requests run on. Raises
    HostStartFailed."""
    try:
        output = loaded.llm.generate_async(
            [config.stop_token_ids[0]], probe_params(loaded.library), streaming=True
        )
        async for _ in output:
            break  # its last word may never come, as with any other
    except _ERRORS as error:
        raise HostStartFailed(f"TensorRT-LLM gave no token: {plain_reason(error)}") from error
    blocks, block_size = await _capacity(loaded.llm, config, statistics)
    return Capabilities(
        engine="tensorrt-llm",
        engine_version=loaded.library.version,
        slots=config.slots,
        kv_blocks=max(1, blocks - _SPARE_BLOCKS),
        block_size=block_size,
        window=min(config.window, max(1, blocks - _SPARE_BLOCKS) * block_size),
        special_tokens=list(config.stop_token_ids),
        logprobs="logprobs" in loaded.library.sampling_keywords,
        json_schema=loaded.json_schema,
        min_tokens="min_tokens" in loaded.library.sampling_keywords,
        prefix_cache=loaded.block_reuse,
        priority="priority" in loaded.library.submit_keywords,
        abort_proof=True,  # its final response, or a later request's token
        isolates_tenants=True,  # by salts, and there is no reuse without them
        # Without aborts a slot would be used to the end of an answer that nobody hears.
        pausable=config.trt.abort,
    )


async def _capacity(llm: Any, config: HostConfig, statistics: Statistics) -> tuple[int, int]:
    """KV blocks, and tokens in one: from the engine, or else as many as all slots can use, and then
    the engine's own scheduler keeps some waiting when there are fewer."""
    if (ask := getattr(llm, "get_kv_cache_capacity", None)) is not None:
        told = ask()
        return int(told["maxNumBlocks"]), int(told["tokensPerBlock"])
    if config.trt.iteration_statistics:
        # They arrive a moment after the iteration.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _STATISTICS_S
        while statistics.blocks is None and not statistics.failing and loop.time() < deadline:
            statistics.poll()
            await asyncio.sleep(_STATISTICS_EVERY_S)
        if statistics.blocks is not None:
            return statistics.blocks.total, statistics.blocks.block_size
    log.warning("kv_blocks_unknown")
    blocks_of_one = -(-config.window // _BLOCK_TOKENS)
    return config.slots * blocks_of_one + _SPARE_BLOCKS, _BLOCK_TOKENS
