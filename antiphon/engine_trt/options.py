"""Our settings in the words of `tensorrt_llm.LLM`, and which of them this version doesn't know.

Every default that is wrong for a server is set: batch, lengths, chunked prefill. Pure, but for the
library's own configuration classes.
"""

from dataclasses import dataclass
from typing import Any

from antiphon.engine.config import HostConfig
from antiphon.engine_trt.library import Library
from antiphon.errors import HostStartFailed


@dataclass(frozen=True, slots=True)
class Options:
    """Keywords for the constructor; `left_out` names what it would have refused."""

    keywords: dict[str, Any]
    left_out: tuple[str, ...]
    json_schema: bool
    """Whether answers can be held to a schema."""
    block_reuse: bool


def construction(config: HostConfig, library: Library) -> Options:
    """Raises HostStartFailed when what can't be done without is unknown or refused."""
    trt = config.trt
    guided = trt.guided_decoding != "off"
    # Blocks that are found by every tenant would tell one what another has asked.
    wants_reuse = trt.block_reuse and config.prefix_cache != "off"
    reuse = wants_reuse and "cache_salt" in library.submit_keywords
    wanted: dict[str, Any] = {
        "model": str(config.model_dir),
        "tensor_parallel_size": trt.tensor_parallel,
        "pipeline_parallel_size": trt.pipeline_parallel,
        "kv_cache_config": library.configured(
            "KvCacheConfig",
            {
                "free_gpu_memory_fraction": trt.kv_fraction,
                "enable_block_reuse": reuse,
                "dtype": trt.kv_cache_dtype,
            },
        ),
        # 2048 by default: what doesn't fit waits inside, where a cancel may get no answer.
        "max_batch_size": config.slots,
        "max_num_tokens": trt.max_step_tokens,
        # 1024 by default.
        "max_input_len": config.window,
        "max_seq_len": config.window,
        "enable_chunked_prefill": trt.chunked_prefill,
        "cuda_graph_config": _graphs(config, library),
        "enable_iter_perf_stats": trt.iteration_statistics,
        "guided_decoding_backend": trt.guided_decoding if guided else None,
    }
    known = library.llm_keywords
    left_out = [] if known is None else sorted(wanted.keys() - known)
    if missing := sorted(_INDISPENSABLE & set(left_out)):
        raise HostStartFailed(
            f"this tensorrt_llm ({library.version}) has no option {', '.join(missing)}"
        )
    if wants_reuse and not reuse:
        left_out.append("kv_cache_config.enable_block_reuse")
    return Options(
        keywords={key: value for key, value in wanted.items() if key not in left_out},
        left_out=tuple(left_out),
        json_schema=guided
        and "guided_decoding_backend" not in left_out
        and hasattr(library.llmapi, "GuidedDecodingParams")
        and "guided_decoding" in library.sampling_keywords,
        block_reuse=reuse,
    )


def _graphs(config: HostConfig, library: Library) -> Any:
    if not config.trt.cuda_graphs:
        return None
    wanted = {"max_batch_size": config.slots, "enable_padding": True}
    return library.configured("CudaGraphConfig", wanted)


_INDISPENSABLE = {"max_batch_size", "max_seq_len", "kv_cache_config"}
"""Without these bounds the engine would queue and run out of memory by its own rules."""
