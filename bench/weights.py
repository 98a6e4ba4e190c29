"""Other weights of the same model, for `bench.sweep --weights`: the prepared model's own are made
plain again, then compressed by NNCF as int8 and as 4 bits.

    python -m venv /tmp/nncf && /tmp/nncf/bin/pip install nncf openvino==2026.4.1
    /tmp/nncf/bin/python bench/weights.py MODEL_FOLDER OUT_FOLDER

What the first quantisation lost stays lost: these are for speed, and say nothing of quality.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy
import openvino
from openvino import opset13 as ops

_MODEL = "openvino_model.xml"
_SMALL = 10_000
"""Constants of fewer numbers are no weights."""


def plain_model(folder: Path) -> Any:
    """The model with every compressed weight computed to f32."""
    core = openvino.Core()
    model = core.read_model(str(folder / _MODEL))
    constant: set[str] = set()
    for node in model.get_ordered_ops():
        inputs = [node.input_value(index).get_node() for index in range(node.get_input_size())]
        known = all(each.get_friendly_name() in constant for each in inputs)
        if node.get_type_name() == "Constant" or (inputs and known):
            constant.add(node.get_friendly_name())
    for node in list(model.get_ordered_ops()):
        if node.get_type_name() == "Constant" or node.get_friendly_name() not in constant:
            continue
        output = node.output(0)
        readers = list(output.get_target_inputs())
        last = any(each.get_node().get_friendly_name() not in constant for each in readers)
        if not last or output.partial_shape.is_dynamic or numpy.prod(output.shape) < _SMALL:
            continue
        part = openvino.Model([ops.result(output)], [], "weight")
        compiled = core.compile_model(part, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        plain = ops.constant(compiled([])[0].astype(numpy.float32))
        for reader in readers:
            reader.replace_source_output(plain.output(0))
    model.validate_nodes_and_infer_types()
    return model


def save(model: Any, source: Path, folder: Path, *, as_f16: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if not file.name.startswith("openvino_model"):
            shutil.copy(file, folder / file.name)
    openvino.save_model(model, str(folder / _MODEL), compress_to_fp16=as_f16)


def main() -> None:
    import nncf

    source, out = map(Path, sys.argv[1:])
    save(plain_model(source), source, out / "f16", as_f16=True)
    mode = nncf.CompressWeightsMode
    kinds = {
        "int8": {"mode": mode.INT8_SYM},
        "int8-asym": {"mode": mode.INT8_ASYM},
        "int4": {"mode": mode.INT4_SYM, "group_size": 64, "ratio": 1.0},
        "int4-asym": {"mode": mode.INT4_ASYM, "group_size": 32, "ratio": 1.0},
    }
    for name, options in kinds.items():
        model = openvino.Core().read_model(str(out / "f16" / _MODEL))
        save(nncf.compress_weights(model, **options), source, out / name, as_f16=False)


if __name__ == "__main__":
    main()
