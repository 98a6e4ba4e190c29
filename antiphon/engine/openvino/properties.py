"""Our settings in the words of OpenVINO's CPU plugin.

The plugin takes some values that it then ignores or replaces, so each is asked for before a model
is loaded, and one that doesn't count is told by the setting's own name.
"""

import openvino

from antiphon.engine.config import HostConfig
from antiphon.engine.cores import inference_threads
from antiphon.engine.openvino.sampling import NATIVE_ERRORS, plain_reason
from antiphon.errors import HostStartFailed

_COMPUTE = "INFERENCE_PRECISION_HINT"
_GROUP = "VALUE_CACHE_GROUP_SIZE"
_CORE_TYPES = {"any": "ANY_CORE", "performance": "PCORE_ONLY", "efficiency": "ECORE_ONLY"}
_SETTINGS = {
    "KV_CACHE_PRECISION": "engine.kv_precision",
    "INFERENCE_NUM_THREADS": "engine.threads",
    _GROUP: "openvino.kv_group",
    _COMPUTE: "openvino.compute_precision",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "openvino.activation_group",
    "ENABLE_CPU_PINNING": "openvino.pin_threads",
    "SCHEDULING_CORE_TYPE": "openvino.core_type",
}


def plugin_properties(config: HostConfig) -> dict[str, object]:
    """What the pipeline is built with, of the plugin's."""
    own = config.openvino
    properties: dict[str, object] = {
        "KV_CACHE_PRECISION": config.kv_precision,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": own.activation_group,
        "ENABLE_CPU_PINNING": own.pin_threads,
        "SCHEDULING_CORE_TYPE": _CORE_TYPES[own.core_type],
    }
    if own.kv_group and config.kv_precision == "u8":
        # Keys have a scale for each channel of a block: the size that the plugin takes for them
        # changes nothing.
        properties[_GROUP] = own.kv_group
    if own.compute_precision != "auto":
        properties[_COMPUTE] = own.compute_precision
    if threads := inference_threads(config.threads):
        properties["INFERENCE_NUM_THREADS"] = threads
    return properties


def check_properties(config: HostConfig) -> None:
    """Ask the plugin whether it will do as it is told. Raises HostStartFailed."""
    core = openvino.Core()
    # Until the plugin has been used, it is not asked but only noted what it shall be told.
    core.get_property("CPU", _COMPUTE)
    for name, value in plugin_properties(config).items():
        try:
            core.set_property("CPU", {name: value})
        except NATIVE_ERRORS as error:
            raise _refused(name, value, plain_reason(error)) from error
    wanted = config.openvino.compute_precision
    computes = core.get_property("CPU", _COMPUTE).to_string()
    if wanted not in ("auto", computes):
        raise _refused(_COMPUTE, wanted, f"this processor would compute in {computes}")


def check_heads(config: HostConfig, sizes: set[int]) -> None:
    """Raises HostStartFailed when a head of one of these sizes can't be cut into groups."""
    group = config.openvino.kv_group
    if group and config.kv_precision == "u8" and any(size % group for size in sizes):
        raise _refused(_GROUP, group, f"it does not divide the model's heads of {max(sizes)}")


def _refused(name: str, value: object, reason: str) -> HostStartFailed:
    return HostStartFailed(f"{_SETTINGS[name]} can't be {value}: {reason}")
