from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from antiphon.engine.contract import AdmitRefused
from antiphon.engine_trt.library import Library, keywords_of
from antiphon.engine_trt.options import construction
from antiphon.engine_trt.sampling import sampling_keywords, sampling_params
from antiphon.errors import HostStartFailed
from antiphon.events import Admit, Sampling
from antiphon.ids import EngineRequest, SlotIndex
from antiphon.testing.trt import trt_config


def admit(**sampling: object) -> Admit:
    return Admit(
        request=EngineRequest(1),
        slot=SlotIndex(0),
        prompt=[5, 6],
        max_tokens=20,
        sampling=Sampling(**{"temperature": 0.0, "seed": 7, **sampling}),
        stop=["never the engine's"],
    )


def test_every_setting_has_its_option_and_the_wrong_defaults_are_overruled(
    tmp_path: Path, library: Library
):
    config = trt_config(tmp_path, slots=7, tensor_parallel=2, pipeline_parallel=3, kv_fraction=0.5)
    config = msgspec.structs.replace(
        config, trt=msgspec.structs.replace(config.trt, kv_cache_dtype="fp8")
    )

    options = construction(config, library)
    keywords = options.keywords

    assert options.left_out == ()
    assert options.json_schema
    assert keywords["model"] == str(tmp_path)
    assert (keywords["tensor_parallel_size"], keywords["pipeline_parallel_size"]) == (2, 3)
    assert keywords["max_batch_size"] == 7
    assert keywords["max_seq_len"] == keywords["max_input_len"] == config.window
    assert keywords["enable_chunked_prefill"] is True
    assert keywords["enable_iter_perf_stats"] is True
    assert keywords["guided_decoding_backend"] == "xgrammar"
    cache = keywords["kv_cache_config"]
    assert (cache.free_gpu_memory_fraction, cache.dtype) == (0.5, "fp8")
    assert cache.enable_block_reuse is True
    assert keywords["cuda_graph_config"].max_batch_size == 7


def test_without_a_prefix_cache_no_block_is_used_again(tmp_path: Path, library: Library):
    config = msgspec.structs.replace(trt_config(tmp_path), prefix_cache="off")

    options = construction(config, library)

    assert options.keywords["kv_cache_config"].enable_block_reuse is False
    assert (options.block_reuse, options.left_out) == (False, ())


def test_what_is_off_is_off(tmp_path: Path, library: Library):
    config = trt_config(tmp_path, cuda_graphs=False, guided_decoding="off", chunked_prefill=False)

    options = construction(config, library)

    assert options.keywords["cuda_graph_config"] is None
    assert options.keywords["guided_decoding_backend"] is None
    assert options.keywords["enable_chunked_prefill"] is False
    assert not options.json_schema


def test_an_option_that_a_version_does_not_know_is_left_out_and_named(
    tmp_path: Path, library: Library
):
    assert library.llm_keywords is not None
    older = replace(library, llm_keywords=library.llm_keywords - {"enable_iter_perf_stats"})

    options = construction(trt_config(tmp_path), older)

    assert options.left_out == ("enable_iter_perf_stats",)
    assert "enable_iter_perf_stats" not in options.keywords


def test_a_version_without_the_bound_on_its_batch_is_refused(tmp_path: Path, library: Library):
    assert library.llm_keywords is not None
    strange = replace(library, llm_keywords=library.llm_keywords - {"max_batch_size"})

    with pytest.raises(HostStartFailed, match="max_batch_size"):
        construction(trt_config(tmp_path), strange)


def test_blocks_are_not_reused_where_tenants_could_not_be_told_apart(
    tmp_path: Path, library: Library
):
    older = replace(library, submit_keywords=library.submit_keywords - {"cache_salt"})

    options = construction(trt_config(tmp_path), older)

    assert options.keywords["kv_cache_config"].enable_block_reuse is False
    assert options.left_out == ("kv_cache_config.enable_block_reuse",)


def test_each_request_has_parameters_of_its_own(library: Library):
    first, second = (sampling_params(admit(), library, (0,)) for _ in range(2))

    assert first is not second
    assert first.end_id is None
    assert first.stop is None
    assert first.detokenize is False


def test_greedy_and_sampled_requests_say_so():
    greedy = sampling_keywords(admit(), (0, 2), 0)
    sampled = sampling_keywords(
        admit(temperature=0.5, top_p=0.9, top_k=3, min_p=0.1, logprobs=True), (0,), 0
    )

    assert greedy == {
        "max_tokens": 20,
        "n": 1,
        "detokenize": False,
        "add_special_tokens": False,
        "seed": 7,
        "top_k": 1,
        "stop_token_ids": [0, 2],
    }
    assert (sampled["temperature"], sampled["top_p"], sampled["top_k"]) == (0.5, 0.9, 3)
    assert (sampled["min_p"], sampled["logprobs"]) == (0.1, 1)


def test_what_was_generated_counts_as_prompt():
    resumed = sampling_keywords(admit(min_tokens=8), (0,), 5)

    assert (resumed["max_tokens"], resumed["min_tokens"], resumed["seed"]) == (15, 3, 12)


def test_an_answer_that_ignores_its_end_has_no_stop_tokens():
    keywords = sampling_keywords(admit(ignore_eos=True), (0,), 0)

    assert keywords["ignore_eos"] is True
    assert "stop_token_ids" not in keywords


def test_a_schema_becomes_a_guide(library: Library):
    params = sampling_params(admit(json_schema='{"type": "object"}'), library, (0,))

    assert params.guided_decoding.json == '{"type": "object"}'


def test_a_parameter_that_a_version_does_not_know_is_refused_not_ignored(library: Library):
    older = replace(library, sampling_keywords=library.sampling_keywords - {"min_p"})

    sampling_params(admit(), older, (0,))
    with pytest.raises(AdmitRefused, match="min_p"):
        sampling_params(admit(temperature=1.0, min_p=0.1), older, (0,))


def test_retention_is_asked_for_where_the_version_has_it(library: Library):
    kept = library.retained(64, 80).token_range_retention_configs[0]
    without = replace(library, submit_keywords=frozenset())
    nameless = replace(library, llmapi=SimpleNamespace())

    assert (kept.token_start, kept.token_end, kept.priority) == (0, 64, 80)
    assert without.retained(64, 80) is None
    assert nameless.retained(64, 80) is None


def test_a_signature_that_can_not_be_read_has_no_keywords():
    assert keywords_of(dict.fromkeys) == frozenset()
