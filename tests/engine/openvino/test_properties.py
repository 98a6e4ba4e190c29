"""Settings in the plugin's words, and what the plugin says to them."""

from pathlib import Path

import msgspec
import openvino
import pytest

from antiphon.engine.config import HostConfig
from antiphon.engine.openvino import properties
from antiphon.engine.openvino.properties import check_heads, check_properties, plugin_properties
from antiphon.errors import HostStartFailed
from antiphon.openvino_settings import OpenVinoSettings

CONFIG = HostConfig(model_dir=Path("/m"), slots=2, window=64, stop_token_ids=(2,))


def config(threads: int = 0, **own: object) -> HostConfig:
    return msgspec.structs.replace(CONFIG, threads=threads, openvino=OpenVinoSettings(**own))


def test_the_plugin_decides_what_is_left_at_its_default():
    told = plugin_properties(CONFIG)

    assert "INFERENCE_NUM_THREADS" not in told
    assert "INFERENCE_PRECISION_HINT" not in told
    assert "VALUE_CACHE_GROUP_SIZE" not in told


def test_every_setting_has_its_property():
    told = plugin_properties(
        config(
            threads=3,
            kv_group=32,
            compute_precision="f32",
            activation_group=64,
            pin_threads=False,
            core_type="performance",
        )
    )

    assert told == {
        "KV_CACHE_PRECISION": "u8",
        "INFERENCE_NUM_THREADS": 3,
        "VALUE_CACHE_GROUP_SIZE": 32,
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 64,
        "ENABLE_CPU_PINNING": False,
        "SCHEDULING_CORE_TYPE": "PCORE_ONLY",
    }


def test_groups_mean_nothing_to_a_cache_that_is_not_quantised():
    exact = msgspec.structs.replace(config(kv_group=48), kv_precision="f16")

    assert "VALUE_CACHE_GROUP_SIZE" not in plugin_properties(exact)
    check_heads(exact, {64})


def test_the_plugin_takes_what_it_is_told_by_default():
    check_properties(CONFIG)
    check_properties(config(threads=1, kv_group=32, compute_precision="f32", core_type="any"))


def test_a_precision_that_the_processor_would_replace_is_refused():
    if "FP16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor computes in f16")

    with pytest.raises(
        HostStartFailed, match=r"openvino\.compute_precision can't be f16: .*(f32|bf16)"
    ):
        check_properties(config(compute_precision="f16"))


def test_a_value_that_the_plugin_refuses_is_told_by_its_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(properties._CORE_TYPES, "any", "NO_SUCH_CORE")

    with pytest.raises(HostStartFailed, match=r"openvino\.core_type can't be NO_SUCH_CORE"):
        check_properties(CONFIG)


def test_a_group_that_does_not_divide_a_head_is_refused():
    check_heads(config(kv_group=16), {64, 80})

    with pytest.raises(HostStartFailed, match=r"openvino\.kv_group can't be 32: .* heads of 80"):
        check_heads(config(kv_group=32), {64, 80})
