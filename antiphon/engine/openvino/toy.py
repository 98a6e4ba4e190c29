"""The smallest language model the pipeline accepts: one layer of one attention head, all zeros.

It has the inputs, the state and the attention that the paged-attention transformation looks for.
"""

from pathlib import Path
from typing import Any

import numpy
import openvino
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo

_WIDTH = 16


def toy_model(vocabulary: int, folder: Path) -> None:
    """Write `openvino_model.xml` and `.bin` with logits of that width."""
    tokens = _input("input_ids", [-1, -1], openvino.Type.i64)
    mask = _input("attention_mask", [-1, -1], openvino.Type.i64)
    positions = _input("position_ids", [-1, -1], openvino.Type.i64)
    beams = _input("beam_idx", [-1], openvino.Type.i32)

    zeros = ops.multiply(tokens, _integers(0))
    hidden = ops.gather(_zeros(1, _WIDTH), zeros, _integers(0))
    placed = ops.multiply(ops.convert(positions, "f32"), _zeros())
    hidden = ops.add(hidden, ops.unsqueeze(placed, _integers(2)))
    query = _by_head(hidden)
    batch = ops.gather(ops.shape_of(tokens), _integers([0]), _integers(0))
    keys, keep_keys = _remembered("key", query, batch, beams)
    values, keep_values = _remembered("value", query, batch, beams)
    flat_mask = ops.convert(ops.multiply(mask, _integers(0)), "f32")
    wide_mask = ops.unsqueeze(ops.unsqueeze(flat_mask, _integers(1)), _integers(1))
    attended = ops.scaled_dot_product_attention(query, keys, values, wide_mask)
    merged = ops.transpose(attended, _integers([0, 2, 1, 3]))
    merged = ops.reshape(merged, _integers([0, 0, _WIDTH]), True)
    logits = ops.result(ops.matmul(merged, _zeros(vocabulary, _WIDTH), False, True))
    logits.output(0).tensor.set_names({"logits"})

    inputs = [tokens, mask, positions, beams]
    model = openvino.Model([logits], [keep_keys, keep_values], inputs, "toy")
    openvino.save_model(model, str(folder / "openvino_model.xml"))


def _input(name: str, shape: list[int], kind: Any) -> Any:
    node = ops.parameter(shape, kind, name=name)
    node.output(0).tensor.set_names({name})
    return node


def _by_head(hidden: Any) -> Any:
    split = ops.reshape(hidden, _integers([0, 0, 1, _WIDTH]), True)
    return ops.transpose(split, _integers([0, 2, 1, 3]))


def _remembered(name: str, new: Any, batch: Any, beams: Any) -> tuple[Any, Any]:
    info = VariableInfo()
    info.data_shape = openvino.PartialShape([-1, 1, -1, _WIDTH])
    info.data_type = openvino.Type.f32
    info.variable_id = f"past_key_values.0.{name}present.0.{name}"
    variable = Variable(info)
    empty = ops.broadcast(_zeros(), ops.concat([batch, _integers([1, 0, _WIDTH])], 0))
    past = ops.gather(ops.read_value(empty, variable), beams, _integers(0))
    joined = ops.concat([past, new], 2)
    return joined, ops.assign(joined, variable)


def _integers(value: int | list[int]) -> Any:
    return ops.constant(numpy.array(value, dtype=numpy.int64))


def _zeros(*shape: int) -> Any:
    return ops.constant(numpy.zeros(shape, dtype=numpy.float32))
